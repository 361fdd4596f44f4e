// A UDP-like path between two ends, A and B: whole datagrams or none, some lost, doubled, late or
// damaged as a FaultSpec says.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/fault_plan.h"
#include "sim/scheduler.h"

namespace weft::sim {

struct DatagramOptions {
  Duration delay = std::chrono::microseconds{25};  // one way, least
  size_t mtu = 1472;                               // most payload of a datagram
  size_t queue = 1024;  // datagrams that wait to be read; the next one is dropped
  // How far apart two datagrams leave at least: the line's rate. What is sent faster queues up.
  Duration spacing{0};
  bool checksum = false;  // what was damaged does not arrive, as with UDP's checksum
  // As WEFT_FAULT at end A: `way:out` is what A sends, `way:in` what comes to it.
  FaultSpec faults;
};

// What became of the datagrams of one direction.
struct DatagramCounters {
  uint64_t sent = 0;
  FaultCounts faults;
  uint64_t damaged = 0;  // dropped for their checksum
  uint64_t overflowed = 0;
  uint64_t delivered = 0;  // into the queue
};

class DatagramLink;

// One end, in the manner of a non-blocking UDP socket. Belongs to its DatagramLink.
class DatagramEnd {
 public:
  // False when the datagram is larger than the MTU, as EMSGSIZE; a lost one was sent all the same.
  bool send(Bytes datagram);
  // Datagrams that have arrived.
  size_t readable() const { return arrived_.size(); }
  std::optional<std::vector<std::byte>> receive();
  // Called from the scheduler for each datagram that arrives. May use both ends.
  void on_event(std::function<void()> f) { on_event_ = std::move(f); }
  // Of what this end sent.
  DatagramCounters counters() const;

  // Sees every datagram that this end sends, before the faults; false: it is lost. For tests that
  // want one certain datagram lost, or to know what was said.
  void watch(std::function<bool(Bytes)> f) { watch_ = std::move(f); }

 private:
  friend class DatagramLink;
  DatagramEnd(DatagramLink& link, const FaultSpec& faults, uint64_t direction)
      : link_(link), plan_(faults, direction) {}

  DatagramLink& link_;
  FaultPlan plan_;
  std::function<bool(Bytes)> watch_;
  std::deque<std::vector<std::byte>> arrived_;
  std::function<void()> on_event_;
  DatagramCounters counters_;
  Time last_departure_ = Time::from_ns(INT64_MIN / 2);
  Time last_arrival_;  // at the peer, of those that keep their order
};

// All randomness comes from `seed` and that of the spec, 1 unless it names one: the same calls at
// the same virtual times make the same run. Each pair of seeds makes another one.
class DatagramLink {
 public:
  DatagramLink(Scheduler& scheduler, uint64_t seed, const DatagramOptions& options = {});
  ~DatagramLink();
  DatagramLink(const DatagramLink&) = delete;
  DatagramLink& operator=(const DatagramLink&) = delete;

  DatagramEnd& a() { return a_; }
  DatagramEnd& b() { return b_; }
  // From now on; what is on the way is not touched.
  void set_options(const DatagramOptions& options);

 private:
  friend class DatagramEnd;
  bool send(DatagramEnd& from, Bytes datagram);
  void forward(DatagramEnd& from, const DatagramFate::Copy& way, std::vector<std::byte> datagram);
  void arrive(DatagramEnd& from, bool damaged, std::vector<std::byte> datagram);
  DatagramEnd& peer_of(DatagramEnd& end) { return &end == &a_ ? b_ : a_; }

  Scheduler& scheduler_;
  DatagramOptions options_;
  DatagramEnd a_;
  DatagramEnd b_;
  // Actions on the way hold a weak reference, so that they find out when the link is gone.
  std::shared_ptr<DatagramLink*> self_;
};

}  // namespace weft::sim
