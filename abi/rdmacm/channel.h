// Event channels, found by the struct that the program holds. Programs use a channel that they have
// destroyed: rping destroys it under a thread that goes round for the next event. The kernel's
// answer to that is EBADF, for a descriptor that is closed; so is ours, as long as no new channel
// has the same address (as the kernel's, as long as no new descriptor has the same number).
#pragma once

#include <rdma/rdma_cma.h>

#include <memory>

#include "cm/service.h"

namespace weft::abi {

// nullptr with errno where there is none to be had. Throws std::bad_alloc.
rdma_event_channel* create_channel();
// Nothing happens to one that is destroyed already.
void destroy_channel(rdma_event_channel* channel);
// Is destroyed unless it is released.
struct DestroyChannel {
  void operator()(rdma_event_channel* channel) const { destroy_channel(channel); }
};
using OwnedChannel = std::unique_ptr<rdma_event_channel, DestroyChannel>;
// nullptr for a channel that is destroyed, or never was one. Any thread.
std::shared_ptr<cm::Channel> core_of(rdma_event_channel* channel);

}  // namespace weft::abi
