// A UC session against a peer that says anything, from each state that a peer can bring it to
// (wire.md 9.2, 9.3, part IV). First byte: Start. Second: CRC. Then steps.

#include "base/log.h"
#include "fuzz/wdp/uc_peer.h"

namespace {

using namespace std::chrono_literals;
using weft::Duration;
using weft::fuzz::Input;
using weft::fuzz::UcPeer;
using weft::rdmap::Operation;
using weft::wire::CtlType;
using weft::wire::Opcode;
using Region = UcPeer::Region;

enum class Start : uint8_t {
  fresh,
  static_session,
  between_messages,
  send_open,
  send_without_receive,
  write_with_immediate_open,
  all_contexts_open,
  behind_a_gap,
  gap_given_up,
  read_asked,
  read_half_there,
  answering_a_read,
  far_jump_begun,
  sending,
  closing,
  time_wait,
};

// New ones at the end, or the corpus changes its meaning.
enum class Step : uint8_t {
  bytes,
  header,
  send,
  write,
  read_request,
  read_response,
  ctl,
  repeat,
  post_receive,
  post,
  listen,
  later,
  deregister,
  close,
  abort,
  own_memory_lost,
  hold,
  path_carries,
  trim,
};
constexpr unsigned kSteps = 19;

constexpr uint32_t kSizes[] = {0, 1, 4, 63, 64, 65, 200, 599, 600, 601};
constexpr uint16_t kStrides[] = {64, 64, 64, 16, 1, 100, 600, 0};
constexpr int32_t kPsnSteps[] = {
    0, 0, 0, 0, 1, 2, -1, -2, 40, -200, -5000, 1 << 20, 1 << 21, -(1 << 21), INT32_MAX, INT32_MIN};
constexpr Duration kWaits[] = {1us, 249us, 250us, 5ms, 80ms, 1s, 2s, 11s};
constexpr Opcode kSends[] = {Opcode::send, Opcode::send_inv, Opcode::send_se, Opcode::send_se_inv};
constexpr Operation kOperations[] = {
    Operation::send,           Operation::write,           Operation::read,
    Operation::send_immediate, Operation::write_immediate, Operation::send_invalidate,
    Operation::fetch_add,      Operation::local_invalidate};

void begin(UcPeer& p, Start start) {
  switch (start) {
    case Start::fresh:
    case Start::static_session:
      return;
    case Start::between_messages:
      p.post_receive(200);
      p.say_all({.mlen = 150});
      return p.say_all({.opcode = Opcode::write, .msn = 2, .mlen = 150});
    case Start::send_open:
      p.post_receive(200);
      p.post_receive(200);
      return p.say({.mlen = 150});
    case Start::send_without_receive:
      return p.say({.mlen = 150});
    case Start::write_with_immediate_open:
      p.post_receive(0);
      p.post_receive(200);
      return p.say({.opcode = Opcode::write, .mlen = 150, .immediate = true});
    case Start::all_contexts_open:
      for (int i = 0; i < 18; ++i) p.post_receive(200);
      for (uint32_t i = 1; i <= 16; ++i) {
        p.say({.opcode = Opcode::write, .msn = i, .mlen = 150, .immediate = true});
      }
      return;
    case Start::behind_a_gap:
      for (int i = 0; i < 4; ++i) p.post_receive(200);
      p.say_all({.msn = 2, .mlen = 150, .psn = 3});
      return p.say_all({.opcode = Opcode::write, .msn = 3, .mlen = 60, .immediate = true});
    case Start::gap_given_up:
      begin(p, Start::behind_a_gap);
      return p.later(250us);
    case Start::read_asked:
      p.post(Operation::read, 200, false);
      return p.listen(4);
    case Start::read_half_there:
      begin(p, Start::read_asked);
      p.respond(0, 0);
      return p.respond(0, 2);
    case Start::answering_a_read:
      p.say(
          {.opcode = Opcode::read_request, .mlen = 600, .region = Region::readable, .range = 600});
      return p.say({.opcode = Opcode::read_request, .msn = 2, .mlen = 64, .rid = 1, .range = 64});
    case Start::far_jump_begun:
      p.post_receive(200);
      p.say({.mlen = 150});
      p.say({.mlen = 150, .psn = 1 << 22});
      for (uint32_t i = 0; i < 14; ++i) p.say({.msn = 2 + i, .mlen = 10});
      return;
    case Start::sending:
      for (int i = 0; i < 4; ++i) p.post(Operation::send, 200, false);
      return p.listen(1);
    case Start::closing:
      p.close();
      return p.listen(1);
    case Start::time_wait:
      begin(p, Start::closing);
      return p.say_ctl(CtlType::drep, 0, 0, {});
  }
}

UcPeer::Segment segment_of(UcPeer& p, Input& in, Opcode op) {
  const uint8_t which = in.u8();
  const uint8_t bits = in.u8();
  UcPeer::Segment s{.opcode = op,
                    .msn = p.next_msn() - which % 8,
                    .mlen = kSizes[in.u8() % std::size(kSizes)],
                    .stride = kStrides[(which >> 5) % std::size(kStrides)],
                    .psn = kPsnSteps[bits & 15],
                    .immediate = (bits & 16) != 0,
                    .solicited = (bits & 32) != 0,
                    .in_two_steps = (bits & 64) != 0};
  if ((which & 8) != 0) s.msn += in.u16() * 64U;
  s.mo = in.u8() % 16U * s.stride;
  const uint8_t where = in.u8();
  s.region = static_cast<Region>(where % 5);
  if (where >= 128) s.offset = static_cast<uint64_t>(in.u16()) - 0x8000;
  return s;
}

void play(UcPeer& p, Input& in) {
  const uint8_t first = in.u8();
  const auto step = static_cast<Step>((first & 31U) % kSteps);
  const bool whole = (first & 32) != 0;
  switch (step) {
    case Step::bytes:
      return p.say_bytes(in.take(in.u8()));
    case Step::header: {
      const size_t more = in.u8();
      return p.say_header(in.take(weft::wire::WdpData::kSize), weft::wire::WdpData::kSize + more);
    }
    case Step::send: {
      const auto s = segment_of(p, in, kSends[(first >> 6) % std::size(kSends)]);
      return whole ? p.say_all(s) : p.say(s);
    }
    case Step::write: {
      const auto s = segment_of(p, in, Opcode::write);
      return whole ? p.say_all(s) : p.say(s);
    }
    case Step::read_request: {
      auto s = segment_of(p, in, Opcode::read_request);
      s.rid = in.u8();
      s.range = whole ? s.mlen - std::min(s.mo, s.mlen) : in.u16();
      return p.say(s);
    }
    case Step::read_response: {
      const uint8_t which = in.u8();
      return p.respond(which, in.u8());
    }
    case Step::ctl: {
      const auto type = static_cast<CtlType>(7 + in.u8() % 7);
      const uint32_t reason = in.u16() * 0x0101U;
      const uint32_t psn = in.u16();
      return p.say_ctl(type, reason, psn, in.take(first >> 5));
    }
    case Step::repeat:
      return p.repeat_last();
    case Step::post_receive:
      return p.post_receive(kSizes[in.u8() % std::size(kSizes)]);
    case Step::post: {
      const auto op = kOperations[in.u8() % std::size(kOperations)];
      return p.post(op, kSizes[in.u8() % std::size(kSizes)], (first >> 5) == 7);
    }
    case Step::listen:
      return p.listen(whole ? 100 : 1);
    case Step::later:
      return p.later(kWaits[in.u8() % std::size(kWaits)]);
    case Step::deregister:
      return p.deregister(in.choice(Region::none));
    case Step::close:
      return p.close();
    case Step::abort:
      return p.abort();
    case Step::own_memory_lost:
      return p.own_memory_lost();
    case Step::hold:
      return p.hold(whole);
    case Step::path_carries:
      return p.path_carries(in.u8());
    case Step::trim:
      return p.trim();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::log::set_level(weft::log::Level::off);
  Input input{weft::fuzz::as_bytes(data, size)};
  const auto start = input.choice(Start::time_wait);
  UcPeer peer(input.flag(), start == Start::static_session);
  begin(peer, start);
  peer.check();
  while (!input.empty()) {
    play(peer, input);
    peer.check();
  }
  peer.finish();
  return 0;
}
