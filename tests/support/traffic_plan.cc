// The requests of a flow, drawn at random, and the bytes that must come of them.

#include "tests/support/traffic_flow.h"

namespace weft::test {

using work::Operation;

uint32_t Traffic::Flow::draw_length() {
  if (sim::draw_chance(random_, options_.huge_share))
    return static_cast<uint32_t>(sim::draw_below(random_, options_.huge));
  if (sim::draw_below(random_, 12) == 0) return 0;
  return static_cast<uint32_t>(sim::draw_size(random_, options_.most));
}

void Traffic::Flow::plan(size_t index) {
  static constexpr Operation kPlain[] = {Operation::write, Operation::send,
                                         Operation::send_invalidate, Operation::read,
                                         Operation::local_invalidate};
  static constexpr Operation kAll[] = {
      Operation::write,          Operation::write_immediate, Operation::send,
      Operation::send_immediate, Operation::send_invalidate, Operation::read,
      Operation::fetch_add,      Operation::compare_swap,    Operation::bind_window};
  Request r;
  r.operation = extension_ ? kAll[sim::draw_below(random_, std::size(kAll))]
                           : kPlain[sim::draw_below(random_, std::size(kPlain))];
  if (has_response(r.operation) && !reads_) r.operation = Operation::write;
  r.length = is_atomic(r.operation) ? 8 : is_local(r.operation) ? 0 : draw_length();
  r.signaled = !options_.unsignaled || sim::draw_below(random_, 3) != 0;
  r.fence = sim::draw_below(random_, 8) == 0;
  r.solicited = sim::draw_below(random_, 2) == 0;
  r.immediate = static_cast<uint32_t>(random_.next());
  r.inlined = r.length <= 200 && !has_response(r.operation) && !is_local(r.operation) &&
              sim::draw_below(random_, 3) == 0;
  // Now and then a fenced Write sends on what the Read before it brings.
  if (r.operation == Operation::write && index > 0 &&
      requests_.back().operation == Operation::read && sim::draw_below(random_, 2) == 0) {
    r.fence = r.from_sink = true;
    r.inlined = false;
    r.length = requests_.back().length;
    r.from = requests_.back().to;
  } else if (!has_response(r.operation)) {
    r.from = source_.place(r.length);
  }
  if (has_response(r.operation)) {
    r.from = target_.place(r.length, is_atomic(r.operation) ? 8 : 1);
    r.to = sink_.place(r.length);
  } else if (is_write(r.operation)) {
    r.to = target_.place(r.length);
  }
  if (is_send(r.operation) || r.operation == Operation::write_immediate) {
    const uint32_t bytes = is_send(r.operation) ? r.length : 0;
    const uint32_t room =
        bytes +
        static_cast<uint32_t>(sim::draw_below(random_, 3) == 0 ? sim::draw_below(random_, 500) : 0);
    r.receive = receives_.size();
    receives_.push_back({.request = index, .place = inbox_.place(room), .room = room});
  }
  requests_.push_back(r);
}

void Traffic::Flow::predict() {
  for (Request& r : requests_) {
    switch (r.operation) {
      case Operation::write:
      case Operation::write_immediate:
        target_.expect(r.to, r.from_sink ? sink_.finally(r.from, r.length)
                                         : source_.initially(r.from, r.length));
        break;
      case Operation::read:
        sink_.expect(r.to, target_.initially(r.from, r.length));
        break;
      case Operation::fetch_add:
      case Operation::compare_swap:
        predict_atomic(r);
        break;
      case Operation::send_invalidate: {
        victims_memory_.push_back(std::make_unique<Buffer>(16));
        r.victim = to_.host.add_region(*victims_memory_.back());
        victims_.push_back(r.victim);
        inbox_.expect(receives_[r.receive].place, source_.initially(r.from, r.length));
        break;
      }
      case Operation::send:
      case Operation::send_immediate:
        inbox_.expect(receives_[r.receive].place, source_.initially(r.from, r.length));
        break;
      case Operation::local_invalidate:
      case Operation::bind_window:
        break;
    }
  }
}

void Traffic::Flow::predict_atomic(Request& r) {
  uint64_t old = 0;
  std::memcpy(&old, target_.at(r.from), 8);
  sink_.expect(r.to, target_.initially(r.from, 8));
  r.compare_add = random_.next();
  r.swap = random_.next();
  uint64_t fresh = old + r.compare_add;
  if (r.operation == Operation::compare_swap) {
    if (sim::draw_below(random_, 2) == 0) r.compare_add = old;
    fresh = r.compare_add == old ? r.swap : old;
  }
  target_.expect(r.from, std::as_bytes(std::span{&fresh, 1}));
}

}  // namespace weft::test
