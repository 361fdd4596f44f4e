// Words for the enums.
#include <infiniband/verbs.h>

#include <array>
#include <cstddef>

#include "abi/ibverbs/enums.h"
#include "abi/ibverbs/private_nodes.h"

namespace {

// The word of a value that counts from 0, or "unknown".
template <size_t N>
const char* word(const std::array<const char*, N>& words, int value) {
  const bool known = value >= 0 && value < static_cast<int>(N);
  const char* w = known ? words[static_cast<size_t>(value)] : nullptr;
  return w == nullptr ? "unknown" : w;
}

// Programs show these words and scripts look for them: they are the ones of rdma-core.
constexpr std::array kNodeTypes{static_cast<const char*>(nullptr),
                                "InfiniBand channel adapter",
                                "InfiniBand switch",
                                "InfiniBand router",
                                "iWARP NIC",
                                "usNIC",
                                "usNIC UDP",
                                "unspecified"};
constexpr std::array kPortStates{"no state change (NOP)", "down", "init", "armed", "active",
                                 "active defer"};
constexpr std::array kEventTypes{"CQ error",
                                 "local work queue catastrophic error",
                                 "invalid request local work queue error",
                                 "local access violation work queue error",
                                 "communication established",
                                 "send queue drained",
                                 "path migrated",
                                 "path migration request error",
                                 "local catastrophic error",
                                 "port active",
                                 "port error",
                                 "LID change",
                                 "P_Key change",
                                 "SM change",
                                 "SRQ catastrophic error",
                                 "SRQ limit reached",
                                 "last WQE reached",
                                 "client reregistration",
                                 "GID table change",
                                 "WQ fatal"};
constexpr std::array kStatuses{"success",
                               "local length error",
                               "local QP operation error",
                               "local EE context operation error",
                               "local protection error",
                               "Work Request Flushed Error",
                               "memory management operation error",
                               "bad response error",
                               "local access error",
                               "remote invalid request error",
                               "remote access error",
                               "remote operation error",
                               "transport retry counter exceeded",
                               "RNR retry counter exceeded",
                               "local RDD violation error",
                               "remote invalid RD request",
                               "aborted error",
                               "invalid EE context number",
                               "invalid EE context state",
                               "fatal error",
                               "response timeout error",
                               "general error",
                               "TM error",
                               "TM software rendezvous"};
// 12 and 13 are of no opcode that programs have. 14 has a name in headers of rdma-core 45 and
// later.
constexpr std::array kOpcodes{"rdma-write",
                              "rdma-write-with-imm",
                              "send",
                              "send-with-imm",
                              "rdma-read",
                              "atomic-cmp-and-swp",
                              "atomic-fetch-and-add",
                              "local-inv",
                              "bind-mw",
                              "send-with-inv",
                              "tso",
                              "driver1",
                              static_cast<const char*>(nullptr),
                              static_cast<const char*>(nullptr),
                              "flush",
                              "atomic-write"};
static_assert(kNodeTypes.size() == IBV_NODE_UNSPECIFIED + 1);
static_assert(kPortStates.size() == IBV_PORT_ACTIVE_DEFER + 1);
static_assert(kEventTypes.size() == IBV_EVENT_WQ_FATAL + 1);
static_assert(kStatuses.size() == IBV_WC_TM_RNDV_INCOMPLETE + 1);
static_assert(kOpcodes.size() == IBV_WR_ATOMIC_WRITE + 1);

}  // namespace

using weft::abi::number_of;

extern "C" {

const char* ibv_node_type_str(ibv_node_type type) {
  return word(kNodeTypes, number_of(type));
}
const char* ibv_port_state_str(ibv_port_state state) {
  return word(kPortStates, number_of(state));
}
const char* ibv_event_type_str(ibv_event_type event) {
  return word(kEventTypes, number_of(event));
}
const char* ibv_wc_status_str(ibv_wc_status status) {
  return word(kStatuses, number_of(status));
}
// Declared by rdma-core 49 and later.
const char* ibv_wr_opcode_str(ibv_wr_opcode opcode) {
  return word(kOpcodes, number_of(opcode));
}
WEFT_IN_PRIVATE_NODES(ibv_wr_opcode_str)

}  // extern "C"
