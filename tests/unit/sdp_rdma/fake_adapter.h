// Queues of a test's own, in the place of an adapter's.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <list>
#include <mutex>

#include "sdp/rdma/completions.h"

namespace weft::sdp::testing {

// A queue that keeps what a queue pair leaves behind, as some adapters do.
struct FakeQueue {
  ibv_cq cq{};
  uint32_t entries = 0;
  std::mutex lock;
  std::deque<ibv_wc> completions;
  int armed = 0;
  bool broken = false;
  std::function<void()> on_poll;

  // False: there is no room.
  bool complete(const ibv_wc& wc) {
    const std::lock_guard holding{lock};
    if (completions.size() == entries) return false;
    completions.push_back(wc);
    return true;
  }
};

class FakeAdapter final : public QueueSource {
 public:
  FakeAdapter() {
    device.ops.poll_cq = [](ibv_cq* cq, int most, ibv_wc* wc) {
      auto& queue = *static_cast<FakeQueue*>(cq->cq_context);
      if (queue.on_poll) queue.on_poll();
      if (queue.broken) return -1;
      const std::lock_guard holding{queue.lock};
      const int n = std::min(most, static_cast<int>(queue.completions.size()));
      std::copy_n(queue.completions.begin(), n, wc);
      queue.completions.erase(queue.completions.begin(), queue.completions.begin() + n);
      return n;
    };
    device.ops.req_notify_cq = [](ibv_cq* cq, int) {
      ++static_cast<FakeQueue*>(cq->cq_context)->armed;
      return 0;
    };
  }
  ibv_cq* make_queue(ibv_context*, uint32_t entries) override {
    FakeQueue& queue = queues.emplace_back();
    queue.cq.context = &device;
    queue.cq.cq_context = &queue;
    queue.entries = entries;
    return &queue.cq;
  }
  bool resize_queue(ibv_cq* cq, uint32_t entries) override {
    if (resizes) of(cq).entries = entries;
    return resizes;
  }
  void end_queue(ibv_cq*) override { ++ended; }
  uint32_t largest_queue(ibv_context*) override { return largest; }
  static FakeQueue& of(ibv_cq* cq) { return *static_cast<FakeQueue*>(cq->cq_context); }

  ibv_context device{};
  std::list<FakeQueue> queues;
  bool resizes = true;
  uint32_t largest = 1 << 20;
  int ended = 0;
};

}  // namespace weft::sdp::testing
