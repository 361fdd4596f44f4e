#include "fuzz/rdmap/start.h"

namespace weft::fuzz {

using wire::Opcode;
using work::Operation;
using Region = Session::Region;

namespace {

constexpr uint16_t kReads = 3;
// Tagged buffer, base or bounds (spec/errors 2), without headers.
constexpr std::array kTerminate = {std::byte{0x11}, std::byte{0x01}, std::byte{0}, std::byte{0}};
constexpr size_t kLarge = 20'000;  // its FPDU is received straight to its place

bool is_responder(Start s) {
  return s >= Start::responder && s <= Start::rtr_fpdu_due;
}
mpa::Rtr rtr_of(Start s) {
  switch (s) {
    case Start::rtr_write_due:
      return mpa::Rtr::write;
    case Start::rtr_read_due:
    case Start::rtr_read_out:
      return mpa::Rtr::read;
    case Start::rtr_fpdu_due:
    case Start::rtr_fpdu_out:
      return mpa::Rtr::fpdu;
    default:
      return mpa::Rtr::none;
  }
}

rdmap::StreamConfig config_for(Start start, uint8_t agreed) {
  const auto bit = [&](unsigned n) { return (agreed >> n & 1U) != 0; };
  rdmap::StreamConfig c{.mpa = {.crc = !bit(0),
                                .send_markers = bit(1),
                                .extension = !bit(2),
                                .peer_to_peer = rtr_of(start) != mpa::Rtr::none,
                                .rtr = rtr_of(start),
                                .ird = kReads,
                                .ord = kReads},
                        .initiator = !is_responder(start) && !bit(3),
                        .llp_completion = bit(5),
                        .big_fpdu = bit(6),
                        .rnr_retry = static_cast<uint8_t>(bit(7) ? 1 : 7)};
  if (start == Start::initiator || c.mpa.peer_to_peer) c.initiator = !is_responder(start);
  if (start == Start::rtr_read_due && bit(7)) c.mpa.ird = 0;
  if (start == Start::rtr_read_out && bit(7)) c.mpa.ord = 0;
  return c;
}

// The first FPDU of each side.
void speak(Session& s) {
  s.write({});
  s.hand_over(SIZE_MAX, SIZE_MAX);
  s.listen();
}

// `message` with all but its last `without` bytes; 0: all but the first `first`.
void hand_over_part(Session& s, size_t first, size_t without = 0) {
  const size_t all = s.waiting();
  s.hand_over(without > 0 ? all - std::min(without, all) : first, SIZE_MAX);
}

void post(Session& s, Operation op, size_t size) {
  s.post({.operation = op, .size = size});
}

void bring_inside(Session& s, Start start) {
  switch (start) {
    case Start::in_length:
      s.send(Opcode::send, 40, true, 0, false);
      return hand_over_part(s, 1);
    case Start::in_header:
      s.send(Opcode::send, 40, true, 0, false);
      return hand_over_part(s, 9);
    case Start::in_payload:
      s.write({.size = 200});
      return hand_over_part(s, 50);
    case Start::in_crc:
      s.write({.size = 200});
      return hand_over_part(s, 0, 2);
    case Start::in_placed_write:
      s.write({.size = kLarge});
      return hand_over_part(s, 17'000);
    case Start::in_placed_send:
      s.post_receive(kLarge);
      s.send(Opcode::send, kLarge, true, 0, true);
      return hand_over_part(s, 100);
    case Start::in_placed_response:
      post(s, Operation::read, kLarge);
      s.listen();
      s.respond(kLarge);
      return hand_over_part(s, 5000);
    case Start::in_placed_early:
      s.send(Opcode::send_se, kLarge, true, 0, true);
      return hand_over_part(s, 5000);
    case Start::in_placed_crc:
      s.write({.size = kLarge});
      return hand_over_part(s, 0, 3);
    case Start::in_send:
      s.post_receive(300);
      return s.send(Opcode::send, 100, false, 0, false);
    case Start::in_early_send:
      return s.send(Opcode::send, 100, false, 0, false);
    case Start::in_write:
      return s.write({.size = 100, .last = false});
    case Start::in_response:
      post(s, Operation::read, 300);
      s.listen();
      return s.respond(100);
    default:
      return;
  }
}

void bring_waiting(Session& s, Start start) {
  switch (start) {
    case Start::read_out:
      post(s, Operation::read, 200);
      return s.listen();
    case Start::atomic_out:
      post(s, Operation::fetch_add, 8);
      return s.listen();
    case Start::reads_out:
      for (int i = 0; i <= kReads; ++i) post(s, Operation::read, 100);
      post(s, Operation::write, 100);
      return s.listen();
    case Start::sends_out:
    case Start::not_ready_told:
      for (int i = 0; i < 3; ++i) post(s, Operation::send, 100);
      post(s, Operation::write_immediate, 100);
      s.listen();
      if (start == Start::not_ready_told) s.delivered(4, 0x101);
      return;
    case Start::reads_to_answer:
      s.read(Region::open, 0, 5000);
      s.read(Region::read_only, 8, 100);
      return s.read(Region::open, 8, 0);
    case Start::parked:
      s.send(Opcode::send, 100, true, 0, true);
      s.immediate(false);
      s.read(Region::open, 0, 100);
      s.atomic(Region::open, 8, 0);
      return s.send(Opcode::send_inv, 10, true, s.stag(Region::write_only).value(), false);
    default:
      return;
  }
}

void bring_to_end(Session& s, Start start) {
  switch (start) {
    case Start::closing:
      post(s, Operation::read, 200);
      s.listen();
      return s.close();
    case Start::shut:
      s.close();
      return s.listen();
    case Start::leaving:
      s.write({.ack_wanted = true});
      s.hand_over(SIZE_MAX, SIZE_MAX);
      return s.leave();
    case Start::terminate_due:
    case Start::terminate_sent:
      post(s, Operation::send, 100);
      s.write({.region = Region::read_only, .size = 10});
      s.hand_over(SIZE_MAX, SIZE_MAX);
      if (start == Start::terminate_sent) s.listen();
      return;
    case Start::terminate_received:
      post(s, Operation::send, 100);
      post(s, Operation::read, 100);
      s.listen();
      return s.terminate(kTerminate);
    case Start::local_error:
      s.post({.operation = Operation::send, .size = 100, .bad_key = true});
      return s.listen();
    default:
      return;
  }
}

}  // namespace

Setup begin(Input& input) {
  const auto start = input.choice(kLastStart);
  Setup made{.start = start, .session = std::make_unique<Session>(config_for(start, input.u8()))};
  Session& s = *made.session;
  if (start >= Start::between_fpdus) speak(s);
  if (start == Start::rtr_read_out || start == Start::rtr_fpdu_out) s.listen();
  bring_inside(s, start);
  bring_waiting(s, start);
  bring_to_end(s, start);
  // What is to wait inside an FPDU was handed over in part.
  const bool inside = start >= Start::in_length && start <= Start::in_placed_crc;
  if (!inside) s.hand_over(SIZE_MAX, SIZE_MAX);
  s.check();
  return made;
}

}  // namespace weft::fuzz
