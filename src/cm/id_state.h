// The life of an Id of rdma_cm(7) (iw_cm(4) and the kernel's rdma_cm agree on it).
//
//   active
//     idle --bind--> bound --resolve_address--> addr_resolved --resolve_route--> route_resolved
//       \----------------resolve_address-----------^                               |
//                                                                                connect
//                                                                                  v
//     connected <--establish-- responded <--reply, the program has the QP---- connecting
//         ^--------------------------------------reply------------------------------|
//                                                          failed <----failure------/
//   listener
//     idle, bound --listen--> listening
//   passive
//     requested --accept--> connected
//       |--answer--> accepting --reply--> connected      (the reply is the peer's RTU)
//       |              \--failure--> failed
//       |  \--peer gone--> deserted --reject--> closed
//       \--reject--> closed
//   both
//     connected, responded --disconnect--> closing --stream ended--> closed
//     connected, responded --stream ended--> closed
//
// Steps that the table does not have are refused with EINVAL when the program asks for them. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace weft::cm {

enum class IdState : uint8_t {
  idle,
  bound,
  addr_resolved,
  route_resolved,
  listening,
  connecting,
  responded,  // the peer accepted; the program has yet to bring its own queue pair along
  requested,  // a peer wants to connect
  deserted,   // and has gone away over the wait
  accepting,  // and the peer has yet to be heard: of UC, or without a queue pair
  connected,
  closing,
  closed,
  failed,
};

enum class Step : uint8_t {
  // The program's
  bind,
  resolve_address,
  resolve_route,
  listen,
  connect,
  establish,
  accept,
  reject,
  disconnect,
  // What happens
  answer,             // accepted, and the peer has yet to confirm
  reply,              // with a queue pair to connect
  reply_for_program,  // without
  failure,
  peer_gone,
  stream_ended,
};

// The state after `step`, or nothing where the step has no place.
std::optional<IdState> after(IdState state, Step step);

const char* to_string(IdState state);
// The program's steps by the names of librdmacm's functions.
const char* to_string(Step step);
// The states in which the step has its place: "bound or idle".
std::string states_for(Step step);

}  // namespace weft::cm
