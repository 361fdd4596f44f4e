// A queue pair without an adapter: queues, a little registered memory and a diary, so that a
// protocol test can put a Stream between two of them.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/pattern.h"
#include "work/consumer.h"

namespace weft::test {

class Host final : public work::Consumer, public work::Memory {
 public:
  explicit Host(uint32_t send_capacity = 256) : queue_(send_capacity, work::kMostSegments, 256) {}

  // --- memory: `rights` are work::Access bits
  struct Region {
    std::byte* base;
    uint64_t iova;
    uint64_t length;
    uint8_t rights;
    bool foreign = false;  // belongs to another protection domain
  };
  Stag add_region(Buffer& memory, uint8_t rights = 15, std::optional<uint64_t> iova = {}) {
    const Stag stag{next_stag_ += 0x101};
    const auto address = reinterpret_cast<uintptr_t>(memory.data());
    regions[stag] = {memory.data(), iova.value_or(address), memory.size(), rights};
    return stag;
  }
  std::map<Stag, Region> regions;

  // --- posting
  work::SendWqe& post(const work::SendWqe& wqe,
                      const std::vector<work::LocalSegment>& segments = {}) {
    work::SendWqe* w = queue_.reserve(0);
    if (w == nullptr) std::abort();  // the test posts more than the queue holds
    *w = wqe;
    w->segments = static_cast<uint8_t>(segments.size());
    if (!wqe.inlined) w->length = 0;
    for (size_t i = 0; i < segments.size(); ++i) {
      w->segment()[i] = segments[i];
      w->length += segments[i].length;
    }
    queue_.publish(1);
    return *w;
  }
  void post_receive(uint64_t wr_id, const std::vector<work::LocalSegment>& segments) {
    work::Receive r;
    r.wr_id = wr_id;
    r.segments = static_cast<uint32_t>(segments.size());
    for (size_t i = 0; i < segments.size(); ++i) {
      r.segment[i] = segments[i];
      r.length += segments[i].length;
    }
    receives.push_back(r);
  }
  std::deque<work::Receive> receives;

  // --- the diary
  struct Done {
    uint64_t wr_id;
    work::Status status;
  };
  struct Arrived {
    uint64_t wr_id;
    work::Status status;
    work::Arrival arrival;
  };
  std::vector<Done> sent;
  std::vector<Arrived> received;
  std::vector<Stag> invalidated;
  std::function<void()> on_invalidate;
  bool ready = false;
  std::optional<work::StreamEnd> end;
  work::Status local_result = work::Status::success;

  // As a queue pair in error does.
  void flush() {
    while (queue_.head() < queue_.tail()) {
      const work::SendWqe& w = queue_.at(queue_.head());
      sent.push_back(
          {w.wr_id, w.status == work::Status::success ? work::Status::flushed : w.status});
      queue_.free_head();
    }
  }

  // work::Consumer
  work::Memory& memory() override { return *this; }
  work::SendQueue& send_queue() override { return queue_; }
  bool take_receive(work::Receive& out) override {
    if (receives.empty()) return false;
    out = receives.front();
    receives.pop_front();
    return true;
  }
  // As consumers have it whose protocol gives receives back.
  void give_back(const work::TakenReceive& r) { receives.push_front(r.front()); }
  void receive_done(const work::Receive& r, work::Status status, const work::Arrival& a) override {
    received.push_back({r.wr_id, status, a});
  }
  void send_done(const work::SendWqe& w, work::Status status) override {
    sent.push_back({w.wr_id, status});
  }
  work::Status execute(work::SendWqe&) override { return local_result; }
  void stream_ready() override { ready = true; }
  void stream_ended(const work::StreamEnd& e) override {
    end = e;
    flush();
  }

  // work::Memory
  Result<std::byte*, work::MemoryFault> local(Stag lkey, uint64_t address, uint64_t length,
                                              work::Access need) override {
    return find(lkey, address, length, need);
  }
  Result<std::byte*, work::MemoryFault> remote(Stag stag, TaggedOffset to, uint64_t length,
                                               work::Access need) override {
    return find(stag, to.value(), length, need);
  }
  Result<Ok, work::MemoryFault> invalidate(Stag stag) override {
    if (!regions.contains(stag)) return fail(work::MemoryFault::invalid_stag);
    if (regions[stag].foreign) return fail(work::MemoryFault::not_on_stream);
    regions.erase(stag);
    invalidated.push_back(stag);
    if (on_invalidate) on_invalidate();
    return Ok{};
  }

 private:
  Result<std::byte*, work::MemoryFault> find(Stag stag, uint64_t address, uint64_t length,
                                             work::Access need) {
    const auto it = regions.find(stag);
    if (it == regions.end()) return fail(work::MemoryFault::invalid_stag);
    const Region& r = it->second;
    if (r.foreign) return fail(work::MemoryFault::not_on_stream);
    const auto bits = static_cast<uint8_t>(need);
    if ((r.rights & bits) != bits) return fail(work::MemoryFault::access);
    if (address + length < address) return fail(work::MemoryFault::wraps);
    if (address < r.iova || address - r.iova > r.length || length > r.length - (address - r.iova)) {
      return fail(work::MemoryFault::bounds);
    }
    return r.base + (address - r.iova);
  }

  work::SendQueue queue_;
  uint32_t next_stag_ = 0x10000;
};

inline TaggedOffset address_of(const Buffer& b, size_t offset = 0) {
  return TaggedOffset{reinterpret_cast<uintptr_t>(b.data()) + offset};
}
// A segment over all of `b`, registered for it.
inline work::LocalSegment segment(Host& host, Buffer& b) {
  return {address_of(b).value(), static_cast<uint32_t>(b.size()), host.add_region(b)};
}

}  // namespace weft::test
