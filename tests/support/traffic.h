// Work for a Pair: random requests of all kinds from both sides at once, and a model of what must
// come of them. Every byte that a request may touch has a place of its own, so the outcome does not
// depend on timing.
//
//   Pair p{options};
//   Traffic t{p, {.seed = seed}};
//   p.drive();
//   t.expect_complete();
#pragma once

#include <memory>

#include "tests/support/pair.h"

namespace weft::test {

struct TrafficOptions {
  uint64_t seed = 1;
  size_t requests = 60;     // of each side
  size_t most = 16 * 1024;  // bytes of most messages; small as likely as large
  size_t huge = 1 << 20;    // bytes of a few
  double huge_share = 0.03;
  Duration spread = std::chrono::milliseconds{5};  // they are posted within this time
  double late_receives = 0.5;  // share of receives that are posted late or just in time
  bool unsignaled = true;
};

class Traffic {
 public:
  Traffic(Pair& pair, const TrafficOptions& options);
  ~Traffic();
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  // Every request completed once, in order and well; every receive; every byte of memory is as it
  // must be.
  void expect_complete() const;
  // The run broke off: what completed well did so in order and is done; nothing completed twice;
  // nothing else happened; a side that knows of the end has completed all its requests one way or
  // the other.
  void expect_sound() const;
  // Requests that `side` has posted by now, and those that completed well.
  size_t posted(const Side& side) const;
  size_t succeeded(const Side& side) const;

 private:
  class Flow;  // the requests of one side and their targets at the other
  const Flow& flow(const Side& side) const;
  std::unique_ptr<Flow> forth_;
  std::unique_ptr<Flow> back_;
};

}  // namespace weft::test
