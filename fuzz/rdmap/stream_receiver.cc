// A whole RDMAP stream against a peer that says anything, from each state that a peer can bring it
// to (docs/spec/mpa.md, rdmap.md). First byte: Start. Second: what the start-up agreed on. Then
// steps.

#include "base/log.h"
#include "fuzz/rdmap/start.h"

namespace {

using namespace std::chrono_literals;
using weft::Bytes;
using weft::Duration;
using weft::fuzz::Input;
using weft::fuzz::Session;
using weft::wire::Opcode;
using weft::work::Operation;
using Region = Session::Region;

// What a step does: the low bits of its first byte. New ones at the end, or the corpus changes its
// meaning.
enum class Step : uint8_t {
  raw_bytes,
  raw_fpdu,
  write,
  send,
  read_request,
  atomic_request,
  immediate,
  respond,
  delivered,
  terminate,
  damage_next,
  hand_over,
  listen,
  later,
  post_receive,
  post,
  deregister,
  set_rnr,
  close,
  abort,
  leave,
  own_memory_lost,
  local_operations_fail,
  trim,
  fin,
  reset,
};
constexpr unsigned kSteps = 26;

// The high bits: how the bytes of the step reach the stream.
constexpr size_t kPiece[] = {SIZE_MAX, 1, 7, 1400};
constexpr unsigned kHold = 7;  // not now

constexpr size_t kSizes[] = {0, 1, 8, 100, 299, 300, 1500, 16'362, 20'000};
size_t size_of(Input& in) {
  return kSizes[in.u8() % std::size(kSizes)];
}

constexpr Opcode kSends[] = {Opcode::send,        Opcode::send_inv, Opcode::send_se,
                             Opcode::send_se_inv, Opcode::send_imm, Opcode::send_se_imm};
constexpr Duration kWaits[] = {50us, 5ms, 80ms, 1s, 2s, 11s};

Region region(Input& in) {
  return in.choice(Region::none);
}

// Messages of the peer. False: it is no such step.
bool say(Session& s, Step step, Input& in) {
  switch (step) {
    case Step::raw_bytes:
      s.say_bytes(in.take(in.u8()));
      return true;
    case Step::raw_fpdu:
      s.say(in.take(in.u8()));
      return true;
    case Step::write: {
      const Region r = region(in);
      const uint64_t offset = in.u16();
      const uint8_t bits = in.u8();
      s.write({.region = r,
               .offset = (bits & 4) != 0 ? offset - 0x8000 : offset,
               .size = size_of(in),
               .last = (bits & 1) == 0,
               .ack_wanted = (bits & 2) != 0});
      return true;
    }
    case Step::send: {
      const Opcode op = kSends[in.u8() % std::size(kSends)];
      const uint32_t word = s.stag(region(in)).value();
      const uint8_t bits = in.u8();
      s.send(op, size_of(in), (bits & 1) == 0, word, (bits & 2) != 0);
      return true;
    }
    case Step::read_request: {
      const Region r = region(in);
      const uint64_t offset = in.u16();
      s.read(r, offset, static_cast<uint32_t>(size_of(in)));
      return true;
    }
    case Step::atomic_request: {
      const Region r = region(in);
      const uint64_t offset = in.u16();
      s.atomic(r, offset, in.u8());
      return true;
    }
    case Step::immediate:
      s.immediate(in.flag());
      return true;
    case Step::respond:
      s.respond(size_of(in));
      return true;
    case Step::delivered: {
      const uint64_t less = in.u8();
      s.delivered(less, in.u16());
      return true;
    }
    case Step::terminate:
      s.terminate(in.take(in.u8() % 80));
      return true;
    default:
      return false;
  }
}

void act(Session& s, Step step, Input& in) {
  switch (step) {
    case Step::damage_next: {
      const uint8_t at = in.u8();
      return s.damage_next(at, in.u8());
    }
    case Step::listen:
      return s.listen(in.flag() ? 100 : SIZE_MAX);
    case Step::later:
      return s.later(kWaits[in.u8() % std::size(kWaits)]);
    case Step::post_receive:
      return s.post_receive(size_of(in));
    case Step::post: {
      const auto op = in.choice(Operation::bind_window);
      const uint8_t bits = in.u8();
      return s.post({.operation = op,
                     .size = size_of(in),
                     .signaled = (bits & 1) == 0,
                     .fence = (bits & 2) != 0,
                     .inlined = (bits & 4) != 0,
                     .bad_key = (bits & 0x38) == 0x38});
    }
    case Step::deregister:
      return s.deregister(region(in));
    case Step::set_rnr: {
      const uint8_t both = in.u8();
      return s.set_rnr(both & 7, both >> 3);
    }
    case Step::close:
      return s.close();
    case Step::abort:
      return s.abort();
    case Step::leave:
      return s.leave();
    case Step::own_memory_lost:
      return s.own_memory_lost();
    case Step::local_operations_fail:
      return s.local_operations_fail();
    case Step::trim:
      return s.trim();
    case Step::fin:
      return s.fin();
    case Step::reset:
      return s.reset();
    default:
      return;
  }
}

void play(Session& s, Input& in) {
  const uint8_t first = in.u8();
  const auto step = static_cast<Step>((first & 31U) % kSteps);
  const unsigned how = first >> 5;
  if (step == Step::hand_over) {
    s.hand_over(in.u16(), kPiece[how % std::size(kPiece)]);
  } else if (!say(s, step, in)) {
    act(s, step, in);
  } else if (how != kHold) {
    s.hand_over(SIZE_MAX, kPiece[how % std::size(kPiece)]);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  testing::GTEST_FLAG(break_on_failure) = true;  // the harness is shared with the tests
  weft::log::set_level(weft::log::Level::off);
  Input input{weft::fuzz::as_bytes(data, size)};
  const auto setup = weft::fuzz::begin(input);
  Session& s = *setup.session;
  while (!input.empty()) {
    play(s, input);
    s.check();
  }
  s.finish(size % 2 == 1);
  return 0;
}
