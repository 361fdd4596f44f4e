#include "wire/opcode.h"

namespace weft::wire {

const char* to_string(Opcode op) {
  switch (op) {
    case Opcode::write:
      return "RDMA Write";
    case Opcode::read_request:
      return "RDMA Read Request";
    case Opcode::read_response:
      return "RDMA Read Response";
    case Opcode::send:
      return "Send";
    case Opcode::send_inv:
      return "Send with Invalidate";
    case Opcode::send_se:
      return "Send with Solicited Event";
    case Opcode::send_se_inv:
      return "Send with Solicited Event and Invalidate";
    case Opcode::terminate:
      return "Terminate";
    case Opcode::immediate:
      return "Immediate Data";
    case Opcode::immediate_se:
      return "Immediate Data with Solicited Event";
    case Opcode::atomic_request:
      return "Atomic Request";
    case Opcode::atomic_response:
      return "Atomic Response";
    case Opcode::send_imm:
      return "Send with Immediate";
    case Opcode::send_se_imm:
      return "Send with Solicited Event and Immediate";
    case Opcode::delivered:
      return "Delivered";
  }
  return "unassigned opcode";
}

}  // namespace weft::wire
