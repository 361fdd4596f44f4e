// Queue pairs of tools: brought up in InfiniBand's way, by GID and queue pair number.
#pragma once

#include <array>
#include <cerrno>
#include <cstdint>

#include "kit/failure.h"
#include "kit/verbs_library.h"

namespace weft::kit {

// What a call of libibverbs gave, or a Failure with the reason in errno.
template <class T>
T* needed(T* object, const char* what) {
  if (object == nullptr) throw system_failure(what);
  return object;
}
// The same of calls that return an error's number.
inline void needed(int error, const char* what) {
  if (error == 0) return;
  errno = error;
  throw system_failure(what);
}

using RawGid = std::array<uint8_t, 16>;

// All functions below throw Failure. Of the device, its first port is used.

ibv_context* open_first_device(const VerbsLibrary& verbs);
RawGid own_gid(const VerbsLibrary& verbs, ibv_context* device);
ibv_ah_attr path_to(const RawGid& peer);

// `access`: of remote peers. `qkey`: of UD and RD alone.
void to_init(const VerbsLibrary& verbs, ibv_qp* qp, unsigned access, uint32_t qkey = 0);
// To RTR and on to RTS. A queue pair of datagrams is connected to nobody. `reads`: of RC, how many
// may be in flight each way.
void to_rts(const VerbsLibrary& verbs, ibv_qp* qp, const RawGid& peer, uint32_t peer_qpn,
            uint8_t reads = 1);

}  // namespace weft::kit
