// What carries the messages of a stream that may lose some: a UDP socket, a queue pair of UC or UD.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "bench/work.h"

namespace weft::bench {

struct Received {
  uint64_t bytes = 0;
  uint64_t messages = 0;  // whole ones
};

// One side's end. All functions throw kit::Failure.
class Carrier {
 public:
  Carrier() = default;
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;
  virtual ~Carrier() = default;

  virtual void connect(const Channel& peer) = 0;
  // Forgets what was received so far.
  virtual void clear() = 0;

  // --- the initiator
  // Starts the next message. With `ask` the target's program is to answer it.
  virtual void start(bool ask) = 0;
  // Returns when all that was started has left, or, of Reads, has come or is lost.
  virtual void finish() = 0;
  // How many answers have come. Waits up to so many milliseconds for the first one.
  virtual unsigned answers(int most_ms) = 0;

  // --- the target
  // Takes what has come and answers what asks. Sleeps until something comes, or `other_fd` turns
  // readable; looks at that one now and then in any case, and at the clock: 20 ms at most.
  virtual void take(int other_fd) = 0;
  static constexpr unsigned kTakenAtOnce = 64;  // messages between two looks at something else

  // --- the side that gets the data
  virtual Received received() const = 0;
  virtual bool intact() const = 0;

  // Figures of this side since clear(), as far as the carrier knows more.
  virtual std::map<std::string, double> extra() const { return {}; }
};

std::unique_ptr<Carrier> make_udp_carrier(const Order& order);
std::unique_ptr<Carrier> make_verbs_carrier(const Order& order);

}  // namespace weft::bench
