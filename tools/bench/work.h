// What the two sides of a case do. One object on each side; the side's main function leads both
// through the same steps.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "bench/channel.h"
#include "bench/spec.h"
#include "kit/clock.h"

namespace weft::bench {

enum class Role : uint8_t { initiator, target };
NLOHMANN_JSON_SERIALIZE_ENUM(Role, {{Role::initiator, "initiator"}, {Role::target, "target"}})

// What a side is told when it starts.
struct Order {
  Spec spec;
  Role role = Role::initiator;
  std::string address;  // of this side, IPv4
  std::string library;  // path of the libibverbs to measure
  double seconds = 0.5;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Order, spec, role, address, library, seconds)

// Traffic flows twice: some messages to warm up, then for the time of the measurement.
struct Phase {
  bool warm_up;
  uint64_t messages;    // of the warm-up
  int64_t duration_ns;  // of the measurement
};

struct Done {
  uint64_t messages = 0;
  double seconds = 0;
  std::map<std::string, double> extra;
};

// All functions throw kit::Failure.
class Work {
 public:
  Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  virtual ~Work() = default;

  virtual void connect(const Channel& peer) = 0;
  // Before the measurement, while nothing is in flight: forgets the data that arrived so far.
  virtual void clear() {}
  // The initiator's part of a phase. Everything has reached the target when it returns.
  virtual Done initiate(const Phase& phase) = 0;
  // The target's part, until the initiator's last message. Returns at once when it has none.
  virtual void serve(const Phase& phase) = 0;
  // Whether messages `first` to `first + count - 1`, counted from the warm-up on, left at this side
  // what was sent, and nothing else arrived since clear().
  virtual bool intact(uint64_t first, uint64_t count) const = 0;
  // Figures of this side that need no traffic.
  virtual std::map<std::string, double> extra() const { return {}; }
  // TCP congestion control of this side's connection, if it can tell.
  virtual std::string congestion() const { return {}; }
};

std::unique_ptr<Work> make_work(const Order& order);
// What it is made of.
std::unique_ptr<Work> make_verbs_stream(const Order& order);
std::unique_ptr<Work> make_verbs_many(const Order& order);
std::unique_ptr<Work> make_verbs_ping_pong(const Order& order);
std::unique_ptr<Work> make_tcp_stream(const Order& order);
std::unique_ptr<Work> make_tcp_threads(const Order& order);
std::unique_ptr<Work> make_tcp_many(const Order& order);
std::unique_ptr<Work> make_tcp_fpdus(const Order& order);
std::unique_ptr<Work> make_tcp_ping_pong(const Order& order);
std::unique_ptr<Work> make_unix_stream(const Order& order);
std::unique_ptr<Work> make_unix_ping_pong(const Order& order);
std::unique_ptr<Work> make_line_ping_pong(const Order& order);
std::unique_ptr<Work> make_pull(const Order& order);
std::unique_ptr<Work> make_udp_ping_pong(const Order& order);
std::unique_ptr<Work> make_verbs_chunks(const Order& order);
std::unique_ptr<Work> make_tcp_chunks(const Order& order);
std::unique_ptr<Work> make_lossy_stream(const Order& order);
std::unique_ptr<Work> make_idle(const Order& order);
std::unique_ptr<Work> make_memory(const Order& order);
std::unique_ptr<Work> make_verbs_peers(const Order& order);
std::unique_ptr<Work> make_verbs_setup(const Order& order);

// Messages of the warm-up.
uint64_t warm_up_messages(const Spec& spec);

// Round trips of a ping-pong, by their ends.
class RoundTrips {
 public:
  void start(int64_t ns) { last_ = ns; }
  void add(int64_t ns) {
    us_.push_back(static_cast<double>(ns - last_) * 1e-3);
    last_ = ns;
  }
  // rtt_us and its like, as measurement.h lists them.
  std::map<std::string, double> figures();

 private:
  int64_t last_ = 0;
  std::vector<double> us_;
};

// The initiator's part of a ping-pong: there(last) sends a message, or the last one, and returns
// when its answer is here; after() makes ready for the next, at the cost of the next.
template <class There, class After>
Done ping_pong(const Phase& phase, There&& there, After&& after) {
  RoundTrips trips;
  const int64_t start = kit::now_ns();
  const int64_t end = start + phase.duration_ns;
  trips.start(start);
  uint64_t messages = 0;
  int64_t now = start;
  for (bool last = false; !last;) {
    ++messages;
    last = phase.warm_up ? messages >= phase.messages : now >= end;
    there(last);
    now = kit::now_ns();
    trips.add(now);
    after();
  }
  return {
      .messages = messages, .seconds = kit::seconds_between(start, now), .extra = trips.figures()};
}

}  // namespace weft::bench
