// An open device: its asynchronous events and what it showed of the host when it was opened.
#pragma once

#include <memory>

#include "device/device.h"
#include "verbs/event_fd.h"
#include "verbs/types.h"

namespace weft::verbs {

class Adapter;

// Something happened that no call asked for. `object`: the ABI's object that it is about, by type.
struct AsyncEvent {
  EventType type{};
  void* object = nullptr;
  friend bool operator==(const AsyncEvent&, const AsyncEvent&) = default;
};

// A thread that waits for the next one shares the queue: the program may close the device
// meanwhile.
using AsyncEvents = EventQueue<AsyncEvent>;

class Context {
 public:
  explicit Context(Adapter& adapter, device::Device device)
      : adapter_(adapter), device_(std::move(device)) {}

  Adapter& adapter() const { return adapter_; }
  const device::Device& device() const { return device_; }
  AsyncEvents& events() { return *events_; }
  std::shared_ptr<AsyncEvents> shared_events() const { return events_; }

  // The host's address of an address vector; nothing when it leads nowhere.
  std::optional<Gid> destination(const AddressVector& av) const {
    if (av.global) return av.dgid.is_zero() ? std::nullopt : std::optional{av.dgid};
    return device_.resolve_lid(av.dlid);
  }
  const device::GidEntry* source(uint8_t sgid_index) const {
    return sgid_index < device_.gids.size() ? &device_.gids[sgid_index] : nullptr;
  }

 private:
  Adapter& adapter_;
  const device::Device device_;
  const std::shared_ptr<AsyncEvents> events_ = std::make_shared<AsyncEvents>();
};

}  // namespace weft::verbs
