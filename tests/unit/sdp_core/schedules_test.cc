// Any order of what two sides may do, from a seed: the stream arrives whole and in order, no
// message comes without a receive, and both come to an end.
#include <gtest/gtest.h>

#include "tests/unit/sdp_core/pair.h"

namespace weft::sdp {
namespace {

using testing::Side;

constexpr uint64_t kStream = 20'000;

void change_mode(Side& self, std::mt19937_64& draw) {
  if (draw() % 8 == 0) {
    (void)self.connection.change_send_mode(draw() % 2 == 0 ? Mode::pipelined : Mode::combined);
  } else {
    self.connection.ask_for_pipelined();
  }
}

void act(Side& self, std::mt19937_64& draw) {
  const uint64_t left = kStream - self.sent;
  const auto up_to = [&draw](uint64_t most) { return static_cast<uint32_t>(1 + draw() % most); };
  switch (draw() % 13) {
    case 0:
    case 1:
      if (left > 0) self.send_data(up_to(std::min<uint64_t>(left, self.connection.max_payload())));
      break;
    case 2:
      if (left > 1) self.advertise(1 + up_to(std::min<uint64_t>(left - 1, 3000)));
      break;
    case 3:
      self.start_read(up_to(1000));
      break;
    case 4:
      self.finish_read();
      break;
    case 5:
      if (draw() % 4 == 0) self.connection.refuse_src_avail();
      break;
    case 6:
      if (draw() % 4 == 0) self.connection.cancel_src_avail();
      break;
    case 7:
      if (self.receives < Side::kBufs) ++self.receives, self.connection.posted();
      break;
    case 8:
      if (left > 0) self.write(up_to(std::min<uint64_t>(left, 3000)));
      break;
    case 9:
      self.offer(Side::kReceive + up_to(3000));
      break;
    case 10:
      if (draw() % 4 == 0) self.connection.cancel_sink_avail();
      break;
    case 11:
      change_mode(self, draw);
      break;
    default:
      self.send_controls();
  }
  if (self.sent == kStream && !self.connection.advertising()) {
    self.connection.end_sending();
    self.connection.everything_is_sent();
  }
}

class SdpSchedules : public ::testing::TestWithParam<int> {};

TEST_P(SdpSchedules, BringBothStreamsWhole) {
  for (int run = 0; run < 40; ++run) {
    std::mt19937_64 draw(static_cast<uint64_t>(GetParam()) * 1000 + static_cast<uint64_t>(run));
    Side sides[2] = {Side{0}, Side{1}};
    sides[0].peer = &sides[1], sides[1].peer = &sides[0];
    const auto ended = [&sides] {
      return sides[0].connection.got_end() && sides[1].connection.got_end();
    };
    for (int step = 0; step < 400'000 && !ended(); ++step) {
      const size_t who = draw() % 2;
      Side& self = sides[who];
      Side& peer = sides[1 - who];
      if (draw() % 3 == 0 && !self.out.empty()) {
        peer.take(self.out.front());
        self.out.pop_front();
      } else {
        act(self, draw);
      }
      if (::testing::Test::HasFatalFailure()) FAIL() << "run " << run << ", step " << step;
    }
    ASSERT_TRUE(ended()) << "run " << run << ": sent " << sides[0].sent << " and " << sides[1].sent;
    EXPECT_EQ(sides[0].received, kStream);
    EXPECT_EQ(sides[1].received, kStream);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, SdpSchedules, ::testing::Range(0, 8));

}  // namespace
}  // namespace weft::sdp
