#include "wdp/rd_receive_path.h"

#include <algorithm>
#include <utility>

namespace weft::wdp {

using wire::WdpDrop;

Result<Ok, WdpDrop> RdReceivePath::admit(Csn csn, size_t bytes) {
  ++counters_.received;
  switch (csns_.look(csn)) {
    case CsnWindow::Seen::before:
      // What acknowledged it may be lost.
      acknowledge_now();
      return fail(WdpDrop::duplicate);
    case CsnWindow::Seen::too_far:
      return fail(WdpDrop::window_exceeded);
    case CsnWindow::Seen::first_time:
      break;
  }
  // More than any honest sender has under way: nobody makes us keep more.
  if (order_.held_bytes() + bytes > 2 * kChannelHold + extra_.bytes()) {
    return fail(WdpDrop::window_exceeded);
  }
  return Ok{};
}

Result<Ok, WdpDrop> RdReceivePath::accept(const RdArrival& arrival, Bytes payload, RdSink& sink,
                                          Time now) {
  partly_ = true;
  switch (order_.accept(arrival, payload, sink)) {
    case FlowOrder::Fate::delivered:
      return Ok{};
    case FlowOrder::Fate::held:
      ++counters_.held;
      watch_patience(now);
      return Ok{};
    case FlowOrder::Fate::repeated:
      return fail(WdpDrop::stale_msn);
    case FlowOrder::Fate::too_far:
      return fail(WdpDrop::msn_jump);
  }
  return Ok{};
}

void RdReceivePath::taken(Csn csn, size_t weight, uint32_t messages, bool ack_requested,
                          bool marked, Time now) {
  const bool in_turn = csn == csns_.cum();
  csns_.take(csn);
  partly_ = false;
  newest_ = csn;
  newest_at_ = now;
  if (sizing_.came(weight, now)) widen();
  if (!in_turn) ++counters_.reordered;
  // RFC 9000 13.2.1: a mark is told at once.
  if (marked) ++counters_.marked;
  // spec/wdp-rd 4.1: at once on a gap, so that it is found; and where one has just closed.
  pending_ += messages;
  due_ = due_ || !in_turn || marked || csns_.gaps() || ack_requested || pending_ >= kAckEvery;
  if (!due_) due_at_ = std::min(due_at_, now + kAckDelay);
}

// spec/wdp-rd 4.5. Not while anything waits for receives: those are what is missing then.
void RdReceivePath::widen() {
  if (order_.waiting_bytes() > 0) return;
  extra_.grow_to(std::min(2 * most(), kLongestWindow) - usual_);
}

void RdReceivePath::watch_patience(Time now) {
  if (order_.waiting_bytes() > 0 && tick_at_.is_never()) {
    patience_ = 0;
    tick_at_ = now + kPatienceTick;
  }
}

void RdReceivePath::resume(uint8_t index, RdSink& sink) {
  const size_t before = order_.waiting_bytes();
  order_.resume(index, sink);
  if (order_.waiting_bytes() != before) patience_ = 0;
  // A window that was small and is open again is news.
  if (told_ < most() / 2 && window() >= most() / 2) acknowledge_now();
}

// What waits for receives is not wanted any more.
void RdReceivePath::give_up() {
  std::vector<uint8_t> all;
  order_.each_waiting([&](uint8_t index, size_t) { all.push_back(index); });
  for (const uint8_t index : all) counters_.given_up += order_.give_up(index);
}

wire::WdpAck RdReceivePath::acknowledgement(Duration trip, Time now) {
  wire::WdpAck ack;
  csns_.tell(ack);
  sizing_.met(trip);
  // What was taken for a long path may turn out to be a slow program.
  if (sizing_.is_short()) extra_.release();
  told_ = window();
  sizing_.told(told_, now);
  ack.timestamp = static_cast<uint32_t>(now.ns() / 1000);
  ack.trigger = newest_;
  ack.window = static_cast<uint32_t>(told_ / 1024);
  const auto waited = (now - newest_at_) / std::chrono::microseconds{8};
  ack.delay = static_cast<uint16_t>(std::min<int64_t>(waited, UINT16_MAX));
  ack.ce = marked();
  pending_ = 0;
  due_ = false;
  due_at_ = Time::never();
  return ack;
}

// spec/wdp-rd 4.4. Counted in ticks, and not by the clock: a program that was stopped has had no
// time to post anything.
void RdReceivePath::tick(Time now) {
  if (now >= due_at_) acknowledge_now();
  if (now >= rests_at()) {
    extra_.release();
    acknowledge_now();
  }
  if (now < tick_at_) return;
  tick_at_ = Time::never();
  if (order_.waiting_bytes() == 0) return;
  tick_at_ = now + kPatienceTick;
  if (order_.waiting_bytes() <= most() / 2) {
    patience_ = 0;
  } else if (++patience_ >= kPatience) {
    std::pair<uint8_t, size_t> longest{0, 0};
    order_.each_waiting([&](uint8_t index, size_t count) {
      if (count > longest.second) longest = {index, count};
    });
    counters_.given_up += order_.give_up(longest.first);
    patience_ = 0;
    acknowledge_now();
  }
}

}  // namespace weft::wdp
