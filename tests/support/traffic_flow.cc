// When the requests of a flow are posted, and the receives for them.

#include "tests/support/traffic_flow.h"

#include <algorithm>

namespace weft::test {

using work::Operation;

Traffic::Flow::Flow(Pair& pair, Side& from, Side& to, const TrafficOptions& options, uint64_t salt)
    : scheduler_(pair.scheduler),
      from_(from),
      to_(to),
      options_(options),
      random_(options.seed * 7919 + salt),
      source_(salt + 1),
      sink_(salt + 2),
      target_(salt + 3),
      inbox_(salt + 4) {
  extension_ = from.stream.parameters().extension;
  reads_ = from.stream.parameters().ord > 0;
  for (size_t i = 0; i < options.requests; ++i) plan(i);
  // The last one asks for all before it.
  requests_.back().signaled = true;
  source_.make(from.host, 0);
  sink_.make(from.host, 1);
  target_.make(to.host, 15);
  inbox_.make(to.host, 1);
  predict();
  schedule();
}

void Traffic::Flow::schedule() {
  std::vector<Time> when;
  for (size_t i = 0; i < requests_.size(); ++i) when.push_back(some_time());
  std::sort(when.begin(), when.end());
  for (const Time t : when) {
    scheduler_.at(t, [this] {
      post();
      from_.pump();
    });
  }
  std::vector<Time> receives;
  for (size_t i = 0; i < receives_.size(); ++i) {
    receives.push_back(sim::draw_chance(random_, options_.late_receives) ? some_time()
                                                                         : scheduler_.now());
  }
  std::sort(receives.begin(), receives.end());
  for (const Time t : receives) {
    scheduler_.at(t, [this] {
      post_receive();
      to_.receives_posted();
    });
  }
}

// The bytes [place, place + n) of an arena in segments of any size.
std::vector<work::LocalSegment> Traffic::Flow::cut(const Arena& arena, size_t place, size_t n) {
  std::vector<work::LocalSegment> list;
  size_t at = 0;
  while (at < n || sim::draw_below(random_, 4) == 0) {
    size_t part = n - at;
    if (list.size() < 10 && sim::draw_below(random_, 2) == 0)
      part = sim::draw_below(random_, part + 1);
    list.push_back({arena.address(place + at), static_cast<uint32_t>(part), arena.stag});
    at += part;
    if (list.size() == 12) break;
  }
  return list;
}

void Traffic::Flow::post() {
  if (from_.host.end || from_.gone) return;
  const Request& r = requests_[posted_];
  const Arena& remote = target_;
  const bool to_sink = has_response(r.operation);
  work::SendWqe w{.wr_id = posted_,
                  .operation = r.operation,
                  .signaled = r.signaled,
                  .fence = r.fence,
                  .solicited = r.solicited,
                  .inlined = r.inlined,
                  .length = r.length,
                  .remote_stag = remote.stag,
                  .remote_to = TaggedOffset{remote.address(to_sink ? r.from : r.to)},
                  .immediate = r.immediate,
                  .compare_add = r.compare_add,
                  .swap = r.swap};
  if (r.operation == Operation::send_invalidate) w.remote_stag = r.victim;
  ++posted_;
  if (r.inlined) {
    work::SendWqe& slot = from_.host.post(w);
    std::copy_n(source_.at(r.from), r.length, slot.payload());
  } else if (is_local(r.operation)) {
    from_.host.post(w);
  } else if (to_sink) {
    from_.host.post(w, cut(sink_, r.to, r.length));
  } else {
    from_.host.post(w, cut(r.from_sink ? sink_ : source_, r.from, r.length));
  }
}

void Traffic::Flow::post_receive() {
  const Receive& r = receives_[received_];
  to_.host.post_receive(received_++, cut(inbox_, r.place, r.room));
}

}  // namespace weft::test
