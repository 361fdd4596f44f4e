// Where a send request goes that has an address handle: at the end of its slot in the send queue.
#pragma once

#include <new>

#include "verbs/address_handle.h"
#include "wdp/ud_consumer.h"

namespace weft::verbs {

inline constexpr uint32_t kDestinationBytes = sizeof(wdp::UdDestination);
static_assert(alignof(wdp::UdDestination) <= 8 && kDestinationBytes % 8 == 0,
              "it stands at the end of a slot");

inline void store_destination(std::byte* extra, const AddressHandle& handle, Qpn qpn, QKey q_key) {
  new (extra)
      wdp::UdDestination{.path = handle.to(qpn), .qpn = qpn, .q_key = q_key, .room = handle.room};
}

inline const wdp::UdDestination& destination_in(const std::byte* extra) {
  return *std::launder(reinterpret_cast<const wdp::UdDestination*>(extra));
}

}  // namespace weft::verbs
