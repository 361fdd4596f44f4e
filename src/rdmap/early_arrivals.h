// Messages that came before there was a receive for them, and the requests behind them
// (spec/rdmap 4.7). In order of arrival; nothing overtakes, except Writes, which need no receive.
#pragma once

#include <algorithm>
#include <vector>

#include "base/fixed_ring.h"
#include "ddp/segment.h"

namespace weft::rdmap {

struct EarlyArrival {
  enum class Kind : uint8_t { send, immediate, read_request, atomic_request };
  Kind kind{};
  ddp::Segment first;     // the message's first segment; the only one unless it is a Send
  bool complete = false;  // Send: its last segment is here
  bool ack_wanted = false;
  std::vector<std::byte> data;  // payload
  uint32_t write_length = 0;    // Immediate: bytes of the Write right before it
  uint64_t followers =
      0;  // Writes that came whole after this one and before the next early arrival
  bool followers_ack_wanted = false;
};

class EarlyArrivals {
 public:
  // A message without bytes costs memory too, and the credit does not count it.
  static constexpr size_t kMost = 65536;

  bool empty() const { return queue_.empty(); }
  bool full() const { return queue_.full(); }
  EarlyArrival& front() { return queue_.front(); }
  const EarlyArrival& front() const { return queue_.front(); }
  EarlyArrival& back() { return queue_.back(); }
  // Callers ask full() first, but for what is in the bounce buffer already.
  EarlyArrival& add(EarlyArrival::Kind kind, const ddp::Segment& first) {
    requests_ += is_request(kind) ? 1 : 0;
    return queue_.push_back(EarlyArrival{.kind = kind, .first = first});
  }
  // Room for `n` more bytes of the last message; the caller fills it.
  std::byte* extend(size_t n) {
    auto& data = queue_.back().data;
    // Doubling, so that a long message is not copied at every segment.
    if (data.size() + n > data.capacity())
      data.reserve(std::max(data.size() + n, 2 * data.capacity()));
    data.resize(data.size() + n);
    bytes_ += n;
    return data.data() + data.size() - n;
  }
  void pop_front() {
    bytes_ -= queue_.front().data.size();
    requests_ -= is_request(queue_.front().kind) ? 1 : 0;
    queue_.pop_front();
  }
  uint64_t bytes() const { return bytes_; }
  size_t size() const { return queue_.size(); }
  void trim() { queue_.trim(); }
  // Read and Atomic Requests among them.
  size_t requests() const { return requests_; }

 private:
  static bool is_request(EarlyArrival::Kind kind) {
    return kind == EarlyArrival::Kind::read_request || kind == EarlyArrival::Kind::atomic_request;
  }

  FixedRing<EarlyArrival> queue_{kMost};
  uint64_t bytes_ = 0;
  size_t requests_ = 0;
};

}  // namespace weft::rdmap
