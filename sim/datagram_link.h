// A UDP-like path between two ends, A and B: whole datagrams or none, some lost, doubled, late or
// damaged.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "sim/scheduler.h"

namespace weft::sim {

struct DatagramOptions {
  Duration delay = std::chrono::microseconds{25};  // one way, least
  Duration jitter{0};                              // added, 0 to this much; order is kept
  size_t mtu = 1472;                               // most payload of a datagram
  size_t queue = 1024;  // datagrams that wait to be read; the next one is dropped
  // Chances for each datagram.
  double loss = 0;
  double duplicate = 0;  // the copy takes a way of its own
  double reorder = 0;    // takes up to reorder_delay longer, and others overtake it
  Duration reorder_delay = std::chrono::microseconds{200};
  double corrupt = 0;  // 1 to 3 bits flipped
};

// What became of the datagrams of one direction.
struct DatagramCounters {
  uint64_t sent = 0;
  uint64_t lost = 0;
  uint64_t duplicated = 0;
  uint64_t reordered = 0;  // held back; whether another one overtook it depends on the traffic
  uint64_t corrupted = 0;
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
  const DatagramCounters& counters() const { return counters_; }

 private:
  friend class DatagramLink;
  DatagramLink* link_ = nullptr;
  std::deque<std::vector<std::byte>> arrived_;
  std::function<void()> on_event_;
  DatagramCounters counters_;
  Time last_arrival_;  // at the peer, of those that keep their order
};

// All randomness comes from `seed`: the same calls at the same virtual times make the same run.
class DatagramLink {
 public:
  DatagramLink(Scheduler& scheduler, uint64_t seed, const DatagramOptions& options = {});
  ~DatagramLink();
  DatagramLink(const DatagramLink&) = delete;
  DatagramLink& operator=(const DatagramLink&) = delete;

  DatagramEnd& a() { return a_; }
  DatagramEnd& b() { return b_; }
  // From now on; what is on the way is not touched.
  void set_options(const DatagramOptions& options) { options_ = options; }

 private:
  friend class DatagramEnd;
  bool send(DatagramEnd& from, Bytes datagram);
  void forward(DatagramEnd& from, std::vector<std::byte> datagram);
  void arrive(DatagramEnd& from, std::vector<std::byte> datagram);
  DatagramEnd& peer_of(DatagramEnd& end) { return &end == &a_ ? b_ : a_; }

  Scheduler& scheduler_;
  SeededRandom random_;
  DatagramOptions options_;
  DatagramEnd a_;
  DatagramEnd b_;
  // Actions on the way hold a weak reference, so that they find out when the link is gone.
  std::shared_ptr<DatagramLink*> self_;
};

}  // namespace weft::sim
