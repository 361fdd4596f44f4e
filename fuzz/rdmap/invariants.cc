// What a peer must not be able to break, held after every step.

#include "fuzz/rdmap/session.h"

namespace weft::fuzz {

using work::Status;

void Session::check() {
  if (host_.end) {
    FUZZ_CHECK(!ended_ && !gone_);  // the end is told once, and not to somebody who left
    ended_ = true;
    host_.end.reset();
    if (const auto r = stream_.abandon_receive()) host_.receive_done(*r, Status::flushed, {});
    batch_.detach();
  }
  FUZZ_CHECK(stream_.ended() || !ended_);
  if (stream_.ended()) FUZZ_CHECK(ended_ || gone_);
  check_memory();
  check_requests();
  check_receives();
}

void Session::check_memory() {
  for (Registered& r : regions_) {
    FUZZ_CHECK(r.area.guards_intact());
    if (!r.gone && !host_.regions.contains(r.area.stag)) {
      r.gone = true;
      const Bytes now = r.area.bytes();
      r.then.assign(now.begin(), now.end());
    }
    if (r.gone) FUZZ_CHECK(same(r.area.bytes(), r.then));
  }
  FUZZ_CHECK(regions_[static_cast<size_t>(Region::read_only)].area.untouched());
  FUZZ_CHECK(regions_[static_cast<size_t>(Region::foreign)].area.untouched());
  FUZZ_CHECK(source_.untouched());
  FUZZ_CHECK(sink_.guards_intact());
}

// Work requests complete once, in the order of posting, and none well after one that did not. One
// at most is to blame (work/consumer.h); the others are flushed.
void Session::check_requests() {
  FUZZ_CHECK(host_.sent.size() <= posted_);
  bool failed = false;
  bool blamed = false;
  for (size_t i = 0; i < host_.sent.size(); ++i) {
    FUZZ_CHECK(host_.sent[i].wr_id == i);
    const Status status = host_.sent[i].status;
    FUZZ_CHECK(!failed || status != Status::success);
    failed = status != Status::success;
    if (failed && status != Status::flushed) FUZZ_CHECK(!std::exchange(blamed, true));
  }
  if (ended_ || gone_) {
    FUZZ_CHECK(host_.sent.size() == posted_);
  } else {
    FUZZ_CHECK(!failed);
  }
}

void Session::check_receives() {
  const size_t taken = receives_.size() - host_.receives.size();
  FUZZ_CHECK(host_.received.size() <= taken);
  // One at most is in use by a message that is arriving.
  FUZZ_CHECK(taken - host_.received.size() <= (ended_ || gone_ ? 0U : 1U));
  if (ended_ || gone_) {
    FUZZ_CHECK(taken == taken_at_end_.value_or(taken));  // nothing arrives any more
    taken_at_end_ = taken;
  }
  size_t i = 0;
  for (const Area& a : receives_) {
    FUZZ_CHECK(a.guards_intact());
    if (i >= taken) {
      FUZZ_CHECK(a.untouched());
    } else if (i < host_.received.size()) {
      const auto& done = host_.received[i];
      FUZZ_CHECK(done.wr_id == i);
      if (done.status == Status::success) {
        const bool bytes = !done.arrival.write_with_immediate;
        FUZZ_CHECK(!bytes || done.arrival.length <= a.size());
        FUZZ_CHECK(a.untouched(bytes ? done.arrival.length : 0));
      }
    }
    ++i;
  }
}

}  // namespace weft::fuzz
