#include "fuzz/wdp/uc_start.h"

namespace weft::fuzz {

using namespace std::chrono_literals;
using wdp::PathProbe;
using wire::CtlType;
using wire::Opcode;
using work::Operation;
using Region = UcPeer::Region;

namespace {

// So many rounds in which the small probe alone comes through.
void lose_large_probes(UcPeer& p, uint32_t rounds) {
  p.hear_control();  // the first one has no small probe
  for (uint32_t i = 0; i < rounds; ++i) {
    p.later(PathProbe::kEvery);
    p.hear_control();
    p.say_ctl(CtlType::probea, UcPeer::kSmallProbe, 0, {});
  }
}

void lead(UcPeer& p, Start start) {
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
      lead(p, Start::behind_a_gap);
      return p.later(250us);
    case Start::read_asked:
      p.post(Operation::read, 200, false);
      return p.listen(4);
    case Start::read_half_there:
      lead(p, Start::read_asked);
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
      lead(p, Start::closing);
      return p.say_ctl(CtlType::drep, 0, 0, {});
    case Start::peer_left:
      for (int i = 0; i < 3; ++i) p.post_receive(200);
      p.say({.mlen = 65});
      p.say({.msn = 2, .mlen = 60, .psn = 1});
      // The end of its first message and all of its third are still on their way.
      p.say_ctl(CtlType::dreq, 0, 0, {});
      p.hear_control();
      return p.post(Operation::send, 200, false);
    case Start::probing:
      p.hear_control();
      return p.post(Operation::send, 600, false);
    case Start::small_probe_answered:
      return lose_large_probes(p, PathProbe::kTries - 1);
    case Start::path_narrowed_in_message:
      // Two trains' worth; the third message is half sent when the first one is full.
      for (int i = 0; i < 3; ++i) p.post(Operation::send, 20 * 1424, false);
      p.hear_control();
      p.listen(1);
      lose_large_probes(p, PathProbe::kTries);
      p.later(PathProbe::kEvery);
      p.hear_control();
      return p.post(Operation::send, 600, false);
    case Start::path_narrowed_in_read:
      lose_large_probes(p, PathProbe::kTries);
      p.post(Operation::read, 5000, false);
      p.listen(1);
      p.later(PathProbe::kEvery);
      p.hear_control();
      return p.listen(1);
    case Start::requests_held:
      p.hold(true);
      p.post(Operation::read, 200, false);
      p.post(Operation::send, 200, false);
      return p.listen(1);
    case Start::requests_stopped:
      p.post(Operation::read, 200, false);
      p.post(Operation::read, 200, false);
      p.listen(2);
      p.respond(1, 0);
      p.withdraw(0);
      p.respond(0, 0);
      return p.post(Operation::send, 64, false);
    case Start::requests_resumed:
      lead(p, Start::requests_stopped);
      p.resume();
      p.post(Operation::read, 200, false);
      return p.listen(1);
    case Start::window_closed:
      for (int i = 0; i < 8; ++i) p.post(Operation::send, 600, false);
      return p.listen(100);
    case Start::window_asked_again:
      lead(p, Start::window_closed);
      p.later(2ms);
      return p.hear_control();
  }
}

// Of those that a mistake on the way would miss without a word.
bool reached(UcPeer& p, Start start) {
  const size_t carried = p.session().parameters().max_payload;
  switch (start) {
    case Start::peer_left:
      return p.said_goodbye() && !p.session().ended() && p.waits();
    case Start::probing:
    case Start::small_probe_answered:
      return p.probed() && carried == UcPeer::kProbed;
    case Start::path_narrowed_in_message:
      return carried == UcPeer::kNarrowed && p.requests_under_way() == 1;
    case Start::path_narrowed_in_read:
      return carried == UcPeer::kNarrowed && p.reads_heard() == 2;
    case Start::requests_held:
      return p.waits() && p.reads_heard() == 0;
    case Start::requests_stopped:
      return p.stopped() && p.waits();
    case Start::requests_resumed:
      return !p.stopped() && p.failures() == 1 && p.reads_heard() == 3;
    case Start::window_closed:
      return p.waits() && p.questions() == 1;
    case Start::window_asked_again:
      return p.waits() && p.questions() == 2;
    default:
      return true;
  }
}

}  // namespace

UcPeer::Shape shape_of(Start start, bool crc) {
  const bool probes = start >= Start::probing && start <= Start::path_narrowed_in_read;
  return {.crc = crc, .is_static = start == Start::static_session, .probes_path = probes};
}

void begin(UcPeer& p, Start start) {
  lead(p, start);
  p.check();
  FUZZ_CHECK(reached(p, start));
}

}  // namespace weft::fuzz
