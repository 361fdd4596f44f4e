// A link that is as long, narrow and lossy as is wanted, for whatever goes over IP: a TUN device at
// each end, and a thread that carries packets from one to the other.
//
//   read ─ lost? ─► queue, as long as the link is busy; full: lost ─► on the way ─► write
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "port/fd.h"

namespace weft::bench {

// Each way the same.
struct Link {
  std::chrono::nanoseconds delay{0};
  double loss = 0;            // share of the packets
  double bits_per_s = 0;      // 0: as many as come
  size_t queue = 64U << 20U;  // bytes that wait for the link at most

  // A queue of twice the round trip at that rate, and of 20 ms at least, as routers have it.
  static Link of(double delay_ms, double loss, double mbps);
};

// One way of a link: what comes when, without sockets. Times are of one clock, in ns.
class LinkQueue {
 public:
  explicit LinkQueue(uint64_t seed) : random_(seed) {}
  void shape(const Link& link);
  // False: it is lost.
  bool take(std::vector<std::byte> packet, int64_t now);
  // The next one that has arrived by now; empty: none.
  std::vector<std::byte> arrived(int64_t now);
  // When the next one does; INT64_MAX: there is none.
  int64_t next() const { return way_.empty() ? INT64_MAX : way_.front().due; }

 private:
  struct Packet {
    int64_t leaves;
    int64_t due;
    std::vector<std::byte> bytes;
  };
  void forget_what_left(int64_t now);

  Link link_;
  std::mt19937_64 random_;
  std::deque<Packet> way_;
  size_t left_ = 0;     // of these: no longer in the queue
  size_t waiting_ = 0;  // bytes in it
  int64_t free_at_ = 0;
};

class Relay {
 public:
  // Of two TUN devices, that do not block.
  Relay(port::Fd one, port::Fd other);
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;
  ~Relay();

  // What is on its way is lost.
  void shape(const Link& link);

 private:
  struct Direction {
    int from;
    int to;
    LinkQueue queue;
  };
  void run();
  static bool carry(Direction& direction, int64_t now);

  const port::Fd one_;
  const port::Fd other_;
  const port::Fd stop_;  // an eventfd
  std::mutex mutex_;     // of the directions
  std::vector<Direction> directions_;
  std::thread thread_;
};

// The device `name` in the network namespace of this thread. Throws kit::Failure.
port::Fd open_tun(const char* name);

}  // namespace weft::bench
