// What has to be true of a flow at the end of a run.

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/traffic_flow.h"

namespace weft::test {

using work::Operation;
using work::Status;

namespace {

bool equal(Bytes a, Bytes b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

}  // namespace

void Traffic::Flow::expect_complete() const {
  EXPECT_TRUE(sink_.as_expected()) << "bytes of Reads and Atomics";
  EXPECT_TRUE(target_.as_expected()) << "bytes of Writes and Atomics";
  EXPECT_TRUE(inbox_.as_expected()) << "bytes of Sends";
  EXPECT_TRUE(source_.as_expected());
  ASSERT_EQ(from_.host.sent.size(), requests_.size());
  for (size_t i = 0; i < requests_.size(); ++i) {
    EXPECT_EQ(from_.host.sent[i].wr_id, i) << "completions in the order of posting";
    EXPECT_EQ(from_.host.sent[i].status, Status::success) << i;
  }
  ASSERT_EQ(to_.host.received.size(), receives_.size());
  for (size_t i = 0; i < receives_.size(); ++i) expect_arrival(i);
  EXPECT_EQ(to_.host.invalidated, victims_);
}

void Traffic::Flow::expect_sound() const {
  EXPECT_TRUE(sink_.nothing_foreign());
  EXPECT_TRUE(target_.nothing_foreign());
  EXPECT_TRUE(inbox_.nothing_foreign(true));
  EXPECT_TRUE(source_.as_expected());
  ASSERT_LE(from_.host.sent.size(), posted_);
  size_t good = 0;
  for (size_t i = 0; i < from_.host.sent.size(); ++i) {
    ASSERT_EQ(from_.host.sent[i].wr_id, i) << "each once, in the order of posting";
    const bool success = from_.host.sent[i].status == Status::success;
    EXPECT_TRUE(!success || good == i) << "a success behind a failure";
    if (success) ++good;
  }
  if (from_.host.end || from_.gone) {
    EXPECT_EQ(from_.host.sent.size(), posted_) << "flushed, all of them";
  }
  for (size_t i = 0; i < good; ++i) expect_done(requests_[i]);
  for (size_t i = 0; i < to_.host.received.size(); ++i) {
    if (to_.host.received[i].status != Status::success) {
      EXPECT_EQ(i + 1, to_.host.received.size()) << "nothing is received behind a failure";
      break;
    }
    expect_arrival(i);
  }
}

void Traffic::Flow::expect_arrival(size_t i) const {
  const Host::Arrived& got = to_.host.received[i];
  const Request& r = requests_[receives_[i].request];
  EXPECT_EQ(got.wr_id, i) << "receives in the order of posting";
  EXPECT_EQ(got.status, Status::success) << i;
  EXPECT_EQ(got.arrival.length, r.length) << i;
  EXPECT_EQ(got.arrival.solicited, r.solicited) << i;
  EXPECT_EQ(got.arrival.write_with_immediate, r.operation == Operation::write_immediate) << i;
  const bool immediate =
      r.operation == Operation::write_immediate || r.operation == Operation::send_immediate;
  EXPECT_EQ(got.arrival.has_immediate, immediate) << i;
  if (immediate) {
    EXPECT_EQ(got.arrival.immediate, r.immediate) << i;
  }
  if (r.operation == Operation::send_invalidate) {
    EXPECT_EQ(got.arrival.invalidated_stag, r.victim) << i;
  }
  if (is_send(r.operation)) {
    EXPECT_TRUE(equal(inbox_.now(receives_[i].place, r.length),
                      inbox_.finally(receives_[i].place, r.length)))
        << "bytes of receive " << i;
  } else {
    EXPECT_TRUE(equal(target_.now(r.to, r.length), target_.finally(r.to, r.length)))
        << "bytes of the Write before immediate " << i;
  }
}

// It completed well: its effect is there.
void Traffic::Flow::expect_done(const Request& r) const {
  if (has_response(r.operation)) {
    EXPECT_TRUE(equal(sink_.now(r.to, r.length), sink_.finally(r.to, r.length)))
        << "a Read completed without its bytes";
  }
  // Towards a plain peer, and with completion=llp, the others say nothing about the peer.
  if (!extension_ || from_.completes_early) return;
  if (is_write(r.operation)) {
    EXPECT_TRUE(equal(target_.now(r.to, r.length), target_.finally(r.to, r.length)))
        << "a Write completed without its bytes";
  }
  if (r.receive != SIZE_MAX) {
    EXPECT_GT(to_.host.received.size(), r.receive) << "a Send completed without its receive";
  }
}

}  // namespace weft::test
