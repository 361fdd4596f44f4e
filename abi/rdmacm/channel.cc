#include "abi/rdmacm/channel.h"

#include <cerrno>
#include <mutex>
#include <new>
#include <unordered_map>

#include "abi/rdmacm/ids.h"
#include "base/fork_lock.h"

namespace weft::abi {
namespace {

std::mutex g_channels_lock;
const HeldOverFork<g_channels_lock> g_channels_over_fork;

class Channels {
 public:
  void add(rdma_event_channel* channel, std::shared_ptr<cm::Channel> core) {
    const std::lock_guard guard{g_channels_lock};
    live_[channel] = std::move(core);
  }
  std::shared_ptr<cm::Channel> find(rdma_event_channel* channel) {
    const std::lock_guard guard{g_channels_lock};
    const auto found = live_.find(channel);
    return found == live_.end() ? nullptr : found->second;
  }
  std::shared_ptr<cm::Channel> remove(rdma_event_channel* channel) {
    const std::lock_guard guard{g_channels_lock};
    const auto found = live_.extract(channel);
    return found.empty() ? nullptr : std::move(found.mapped());
  }

 private:
  std::unordered_map<rdma_event_channel*, std::shared_ptr<cm::Channel>> live_;
};
// Never destroyed: threads of the program go on while it exits.
Channels& g_channels = *new Channels;

}  // namespace

rdma_event_channel* create_channel() {
  std::shared_ptr<cm::Channel> core;
  if (const int error = connections().create_channel(core); error != 0) {
    errno = error;
    return nullptr;
  }
  auto channel = std::make_unique<rdma_event_channel>(rdma_event_channel{core->fd()});
  g_channels.add(channel.get(), std::move(core));
  return channel.release();
}

std::shared_ptr<cm::Channel> core_of(rdma_event_channel* channel) {
  return g_channels.find(channel);
}

void destroy_channel(rdma_event_channel* channel) {
  const std::shared_ptr<cm::Channel> core = core_of(channel);
  if (core == nullptr) return;
  // A thread may find its way back there meanwhile.
  core->destroy();
  if (g_channels.remove(channel) != nullptr) delete channel;
}

}  // namespace weft::abi

using namespace weft::abi;

extern "C" {

rdma_event_channel* rdma_create_event_channel() try {
  return create_channel();
} catch (const std::bad_alloc&) {
  errno = ENOMEM;
  return nullptr;
}

void rdma_destroy_event_channel(rdma_event_channel* channel) {
  destroy_channel(channel);
}

}  // extern "C"
