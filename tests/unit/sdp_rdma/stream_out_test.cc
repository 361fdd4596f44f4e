#include "sdp/rdma/stream_out.h"

#include <array>
#include <cerrno>

#include "tests/unit/sdp_rdma/two_ends.h"

namespace weft::sdp {
namespace {

using testing::stream_byte;
constexpr uint32_t kPayload = Link::kMessage - Bsdh::kSize;

class StreamOutTest : public testing::TwoEnds {
 protected:
  void SetUp() override {
    TwoEnds::SetUp();
    for (size_t i = 0; i < memory.size(); ++i) memory[i] = stream_byte(i);
  }
  // Its program waits with a buffer of its own.
  void offer_of_other() {
    other.in.ask_for_offers();
    carry_all();
    ASSERT_TRUE(other.in.offer(target.data(), static_cast<uint32_t>(target.size()), 8));
    carry_all();
  }

  std::array<std::byte, 40'000> memory{};
  std::array<std::byte, 40'000> target{};
};

TEST_F(StreamOutTest, SendsAStreamInWholeMessages) {
  EXPECT_EQ(one.fill(2 * kPayload), 2 * kPayload);
  EXPECT_EQ(one.out.unsent(), 2 * kPayload);
  one.out.send();
  EXPECT_EQ(one.posted.size(), 2U);
  EXPECT_EQ(one.out.unsent(), 0U);
  EXPECT_EQ(one.out.unacknowledged(), 2 * kPayload);
  carry_all();
  EXPECT_EQ(one.out.unacknowledged(), 0U);
  const auto bytes = other.drain();
  EXPECT_EQ(bytes.size(), 2 * kPayload);
  EXPECT_TRUE(are_stream(bytes));
}

TEST_F(StreamOutTest, DataWaitsForThePeersReceives) {
  size_t sent = 0;
  for (size_t i = 0; i < 2 * QueuePair::kReceives; ++i) sent += one.fill(kPayload), carry_all();
  EXPECT_TRUE(one.out.waiting());
  EXPECT_TRUE(one.out.busy());
  const size_t had = other.in.received().bytes();
  EXPECT_LT(had, sent);
  EXPECT_TRUE(are_stream(other.drain()));
  carry_all();
  EXPECT_FALSE(one.out.waiting());
  const auto rest = other.drain();
  EXPECT_EQ(had + rest.size(), sent);
  EXPECT_TRUE(are_stream(rest, had));
}

TEST_F(StreamOutTest, TakesNoMoreThanItsLimit) {
  one.out.limit_bytes(1000);
  EXPECT_EQ(one.fill(5000), 1000U);
  carry_all();
  EXPECT_EQ(one.fill(5000), 1000U);
  one.out.limit_bytes(0);
  EXPECT_EQ(one.fill(5000), 5000U);
}

TEST_F(StreamOutTest, TheEndGoesBehindAllThatWaits) {
  for (size_t i = 0; i < 2 * QueuePair::kReceives; ++i) one.fill(kPayload), carry_all();
  one.out.end_sending();
  EXPECT_FALSE(one.out.writable());
  EXPECT_TRUE(one.out.room().empty());
  carry_all();
  EXPECT_FALSE(other.in.got_end());
  EXPECT_FALSE(one.out.has_sent_all());
  while (!other.in.received().empty()) other.drain(), carry_all();
  EXPECT_TRUE(other.in.at_end());
  EXPECT_TRUE(one.out.has_said_all());
  EXPECT_FALSE(one.out.busy());
}

TEST_F(StreamOutTest, HasSentAllWhenTheLastRequestHasCompleted) {
  EXPECT_TRUE(one.out.has_sent_all());
  EXPECT_FALSE(one.out.has_said_all()) << "it has no end yet";
  one.fill(10);
  EXPECT_FALSE(one.out.has_sent_all());
  one.out.send();
  EXPECT_FALSE(one.out.has_sent_all());
  carry_all();
  EXPECT_TRUE(one.out.has_sent_all());
}

TEST_F(StreamOutTest, HasSentAllWhenTheConnectionBroke) {
  one.fill(10);
  one.link.abort();
  EXPECT_FALSE(one.out.has_sent_all()) << "what says so is on its way";
  (void)one.carry_one(other);
  EXPECT_TRUE(one.out.has_said_all());
  other.fill(10);
  other.link.queue_pair().set_down();
  EXPECT_TRUE(other.out.has_said_all());
}

TEST_F(StreamOutTest, AnUrgentByteEndsItsMessage) {
  one.fill(10);
  one.out.mark_urgent();
  one.fill(20);
  carry_all();
  EXPECT_EQ(other.in.received().bytes(), 30U);
  EXPECT_EQ(other.in.urgent().until(30), 9U);
}

TEST_F(StreamOutTest, AdvertisesMemoryThatThePeerReads) {
  ASSERT_TRUE(one.out.may_advertise());
  ASSERT_TRUE(one.out.advertise(memory.data(), 40'000, 8));
  EXPECT_TRUE(one.out.advertising());
  EXPECT_TRUE(one.out.busy());
  EXPECT_FALSE(one.out.take_outcome().has_value());
  carry_all();
  ASSERT_EQ(other.in.read(target.data(), 40'000, 7), 40'000U);
  carry_all();
  EXPECT_EQ(one.out.take_outcome(), 40'000U);
  EXPECT_FALSE(one.out.take_outcome().has_value()) << "once";
  EXPECT_EQ(one.link.traffic().bytes_sent, 40'000U);
}

TEST_F(StreamOutTest, AdvertisesNothingInFrontOfWhatWaits) {
  one.fill(10);
  EXPECT_FALSE(one.out.may_advertise());
  carry_all();
  EXPECT_TRUE(one.out.may_advertise());
  one.out.end_sending();
  EXPECT_FALSE(one.out.may_advertise());
}

TEST_F(StreamOutTest, CopiesWhatThePeerHasNotReadWhenItCancels) {
  ASSERT_TRUE(one.out.advertise(memory.data(), 40'000, 8));
  carry_all();
  ASSERT_EQ(other.in.read(target.data(), 3000, 7), 3000U);
  carry_all();
  one.out.cancel_advertising();
  carry_all();
  EXPECT_EQ(one.out.take_outcome(), 3000U);
  EXPECT_EQ(other.in.offered(), 0U);
}

TEST_F(StreamOutTest, WritesToAnOfferedBuffer) {
  EXPECT_FALSE(one.out.may_write());
  offer_of_other();
  EXPECT_TRUE(one.out.pipelined());
  ASSERT_TRUE(one.out.may_write());
  EXPECT_EQ(one.out.write(memory.data(), 0, 7), 0U);
  EXPECT_EQ(one.out.write(memory.data(), 35'000, 7), 35'000U);
  EXPECT_TRUE(one.out.writing());
  EXPECT_EQ(one.posted.size(), 2U) << "the Write, and what tells of it right behind";
  carry_all();
  EXPECT_FALSE(one.out.writing());
  EXPECT_EQ(other.in.take_written(), 35'000U);
  EXPECT_TRUE(std::equal(target.begin(), target.begin() + 35'000, memory.begin()));
}

TEST_F(StreamOutTest, WritesNothingInFrontOfWhatWaits) {
  offer_of_other();
  one.fill(10);
  EXPECT_FALSE(one.out.may_write());
  EXPECT_EQ(one.out.write(memory.data(), 35'000, 7), 0U);
  EXPECT_TRUE(one.posted.empty());
}

TEST_F(StreamOutTest, AWriteNeedsAPlaceForWhatTellsOfIt) {
  offer_of_other();
  while (one.link.queue_pair().places() > 1) (void)one.link.queue_pair().send({});
  EXPECT_FALSE(one.out.may_write());
  one.link.queue_pair().completed(QueuePair::Work::data, true);
  EXPECT_TRUE(one.out.may_write());
}

}  // namespace
}  // namespace weft::sdp
