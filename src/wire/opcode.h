// RDMAP opcodes: RFC 5040 section 4.1, RFC 7306 section 4, and weft's own 12 to 14
// (spec/rdmap 1.4).
#pragma once

#include <cstdint>

namespace weft::wire {

enum class Opcode : uint8_t {
  write = 0,
  read_request = 1,
  read_response = 2,
  send = 3,
  send_inv = 4,
  send_se = 5,
  send_se_inv = 6,
  terminate = 7,
  immediate = 8,
  immediate_se = 9,
  atomic_request = 10,
  atomic_response = 11,
  // Only where both sides agreed on the X extension (spec/mpa 2.7).
  send_imm = 12,
  send_se_imm = 13,
  delivered = 14,
};

const char* to_string(Opcode op);

// Opcodes 8 to 14 exist on a stream only when X was negotiated.
constexpr bool needs_extension(Opcode op) {
  return op >= Opcode::immediate && op <= Opcode::delivered;
}
constexpr bool is_tagged(Opcode op) {
  return op == Opcode::write || op == Opcode::read_response || op == Opcode::delivered;
}
constexpr bool is_send(Opcode op) {
  return (op >= Opcode::send && op <= Opcode::send_se_inv) || op == Opcode::send_imm ||
         op == Opcode::send_se_imm;
}
constexpr bool is_immediate(Opcode op) {
  return op == Opcode::immediate || op == Opcode::immediate_se;
}
constexpr bool is_solicited(Opcode op) {
  return op == Opcode::send_se || op == Opcode::send_se_inv || op == Opcode::immediate_se ||
         op == Opcode::send_se_imm;
}
constexpr bool invalidates(Opcode op) {
  return op == Opcode::send_inv || op == Opcode::send_se_inv;
}
constexpr bool send_carries_immediate(Opcode op) {
  return op == Opcode::send_imm || op == Opcode::send_se_imm;
}
// A message that the sender waits to see covered by a Delivered (spec/rdmap 4.1).
constexpr bool is_request(Opcode op) {
  return op == Opcode::write || op == Opcode::read_request || is_send(op) || is_immediate(op) ||
         op == Opcode::atomic_request;
}

}  // namespace weft::wire
