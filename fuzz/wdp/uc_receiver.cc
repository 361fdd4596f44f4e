// A UC session against a peer that says anything, from each state that a peer can bring it to
// (spec/wdp-uc 3, spec/wdp-uc 5, spec/threats 2). First byte: Start. Second: CRC. Then steps.

#include "base/log.h"
#include "fuzz/wdp/uc_start.h"

namespace {

using namespace std::chrono_literals;
using weft::Duration;
using weft::fuzz::Input;
using weft::fuzz::Start;
using weft::fuzz::UcPeer;
using weft::wire::CtlType;
using weft::wire::Opcode;
using weft::work::Operation;
using Region = UcPeer::Region;

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
  resume,
  withdraw,
};
constexpr unsigned kSteps = 21;

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
    case Step::resume:
      return p.resume();
    case Step::withdraw:
      return p.withdraw(in.u8());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::log::set_level(weft::log::Level::off);
  Input input{weft::fuzz::as_bytes(data, size)};
  const auto start = input.choice(Start::window_asked_again);
  UcPeer peer(weft::fuzz::shape_of(start, input.flag()));
  weft::fuzz::begin(peer, start);
  peer.check();
  while (!input.empty()) {
    play(peer, input);
    peer.check();
  }
  peer.finish();
  return 0;
}
