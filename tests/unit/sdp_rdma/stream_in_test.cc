#include "sdp/rdma/stream_in.h"

#include <array>
#include <cerrno>

#include "tests/unit/sdp_rdma/two_ends.h"

namespace weft::sdp {
namespace {

using testing::stream_byte;

class StreamInTest : public testing::TwoEnds {
 protected:
  void SetUp() override {
    TwoEnds::SetUp();
    for (size_t i = 0; i < memory.size(); ++i) memory[i] = stream_byte(i);
  }

  std::array<std::byte, 70'000> memory{};
  std::array<std::byte, 70'000> target{};
};

TEST_F(StreamInTest, PostsABufferAgainWhenItsBytesWereTaken) {
  const size_t all = other.receives.size();
  EXPECT_EQ(all, QueuePair::kReceives);
  one.fill(100);
  carry_all();
  EXPECT_EQ(other.receives.size(), all - 1);
  other.in.take(99);
  EXPECT_EQ(other.receives.size(), all - 1);
  other.in.take(1);
  EXPECT_EQ(other.receives.size(), all);
}

TEST_F(StreamInTest, PostsABufferWithoutPayloadAgainAtOnce) {
  one.link.connection().greet();
  one.out.send();
  (void)one.carry_one(other);
  EXPECT_EQ(other.receives.size(), QueuePair::kReceives);
  EXPECT_FALSE(other.in.readable());
}

TEST_F(StreamInTest, PostsFewerForASmallReceiveBuffer) {
  testing::End small;
  small.allocate(10 * Link::kMessage);
  EXPECT_EQ(small.in.count_posted(), 10);
  testing::End least;
  least.allocate(1);
  EXPECT_EQ(least.in.count_posted(), 6) << "data needs what control messages leave over";
  least.open(other);
  least.in.limit_bytes(0);
  EXPECT_EQ(least.in.count_posted(), QueuePair::kReceives);
}

TEST_F(StreamInTest, SaysHowThePeerBreaksTheProtocol) {
  std::array<std::byte, Bsdh::kSize> wrong{};
  Bsdh{.mid = MessageId::hello, .length = Bsdh::kSize, .mseq = 1}.encode(wrong.data());
  EXPECT_TRUE(other.receive(wrong).has_value());
}

TEST_F(StreamInTest, TakesNoMessageOfAConnectionThatFailed) {
  one.fill(100);
  one.out.send();
  other.link.fail(ECONNRESET);
  EXPECT_FALSE(one.carry_one(other).has_value());
  EXPECT_TRUE(other.in.received().empty());
  EXPECT_TRUE(other.in.at_end());
}

TEST_F(StreamInTest, BreaksWhenThePeerAborts) {
  one.link.abort();
  (void)one.carry_one(other);
  EXPECT_EQ(other.link.error(), ECONNRESET);
  EXPECT_EQ(other.in.take_error(), ECONNRESET);
}

TEST_F(StreamInTest, BreaksForTheWriterAloneBehindThePeersEnd) {
  one.out.end_sending();
  carry_all();
  EXPECT_TRUE(other.in.at_end());
  one.link.abort();
  (void)one.carry_one(other);
  EXPECT_EQ(other.link.error(), EPIPE);
  EXPECT_EQ(other.in.take_error(), 0) << "who reads has an end";
  EXPECT_EQ(other.link.take_error(), EPIPE);
}

TEST_F(StreamInTest, DataThatIsRefusedResetsTheConnection) {
  other.in.refuse_data();
  one.link.connection().greet();
  carry_all();
  EXPECT_FALSE(other.link.broken()) << "what has no data is taken";
  one.fill(1);
  carry_all();
  EXPECT_EQ(other.link.error(), ECONNRESET);
  EXPECT_EQ(one.link.error(), ECONNRESET);
}

TEST_F(StreamInTest, TheUrgentByteHasItsPlaceAmongTheOthers) {
  one.fill(10);
  carry_all();
  one.fill(5);
  one.out.mark_urgent();
  carry_all();
  EXPECT_TRUE(other.in.urgent().waits());
  EXPECT_EQ(other.in.urgent().until(15), 14U);
  EXPECT_EQ(other.in.urgent().byte(), stream_byte(14));
  other.in.take(14);
  EXPECT_TRUE(other.in.urgent().is_next());
  EXPECT_TRUE(other.in.readable());
  EXPECT_FALSE(other.in.shows_data()) << "a read would leave it out";
}

TEST_F(StreamInTest, AnOlderUrgentByteThatWouldBeLeftOutGoesWithTheNewer) {
  one.fill(1);
  one.out.mark_urgent();
  carry_all();
  one.fill(3);
  one.out.mark_urgent();
  carry_all();
  EXPECT_EQ(other.in.urgent().byte(), stream_byte(3));
  const auto bytes = other.drain();
  EXPECT_EQ(bytes.size(), 3U);
  EXPECT_TRUE(are_stream(bytes, 1));
  EXPECT_EQ(other.receives.size(), QueuePair::kReceives) << "its buffer is free, too";
}

TEST_F(StreamInTest, ReadsWhatIsOfferedBehindWhatWasReceived) {
  one.fill(100);
  carry_all();
  ASSERT_TRUE(one.out.advertise(memory.data(), 60'000, 8));
  carry_all();
  EXPECT_EQ(other.in.offered(), 60'000U);
  EXPECT_EQ(other.in.read(target.data(), 50'000, 7), 0U);
  EXPECT_EQ(other.drain().size(), 100U);
  EXPECT_EQ(other.in.read(target.data(), 50'000, 7), 50'000U);
  EXPECT_TRUE(other.in.reading());
  EXPECT_EQ(other.in.offered(), 0U) << "one Read at a time";
  (void)other.carry_one(one);
  EXPECT_FALSE(other.in.reading());
  EXPECT_EQ(other.in.take_arrived(), 50'000U);
  EXPECT_EQ(other.in.offered(), 10'000U);
  EXPECT_TRUE(std::equal(target.begin(), target.begin() + 50'000, memory.begin()));
  EXPECT_EQ(other.link.traffic().bytes_read, 50'000U);
}

TEST_F(StreamInTest, StagesWhatIsOfferedWhereNobodyWaitsForIt) {
  ASSERT_TRUE(one.out.advertise(memory.data(), 60'000, 8));
  carry_all();
  other.in.stage_by_itself();
  EXPECT_FALSE(other.in.reading()) << "it was not asked to";
  other.in.set_stages_by_itself(true);
  other.in.stage_by_itself();
  EXPECT_TRUE(other.in.reading());
  carry_all();
  EXPECT_EQ(one.out.take_outcome(), 60'000U);
  EXPECT_EQ(other.in.stage(), 0U) << "what was staged is not taken yet";
  const auto bytes = other.drain();
  EXPECT_EQ(bytes.size(), 60'000U);
  EXPECT_TRUE(are_stream(bytes));
}

TEST_F(StreamInTest, EndsBehindWhatIsOffered) {
  ASSERT_TRUE(one.out.advertise(memory.data(), 60'000, 8));
  one.out.end_sending();
  carry_all();
  EXPECT_FALSE(other.in.at_end());
  EXPECT_EQ(other.in.stage(), 60'000U);
  carry_all();
  (void)other.drain();
  EXPECT_TRUE(other.in.at_end());
}

TEST_F(StreamInTest, OffersABufferWhenNothingCanBeRead) {
  other.in.ask_for_offers();
  carry_all();
  EXPECT_FALSE(other.in.offer(target.data(), StreamIn::kLeastOffer - 1, 8));
  one.fill(10);
  carry_all();
  EXPECT_FALSE(other.in.may_offer());
  (void)other.drain();
  ASSERT_TRUE(other.in.may_offer());
  ASSERT_TRUE(other.in.offer(target.data(), 70'000, 8));
  carry_all();
  EXPECT_FALSE(other.in.take_written().has_value());
  EXPECT_EQ(one.out.write(memory.data(), 50'000, 7), 50'000U);
  carry_all();
  EXPECT_EQ(other.in.take_written(), 50'000U);
  EXPECT_FALSE(other.in.take_written().has_value()) << "once";
  EXPECT_EQ(other.link.traffic().bytes_written, 50'000U);
}

TEST_F(StreamInTest, HasItsBufferBackWhenItCancelsTheOffer) {
  other.in.ask_for_offers();
  carry_all();
  ASSERT_TRUE(other.in.offer(target.data(), 70'000, 8));
  carry_all();
  other.in.cancel_offer();
  carry_all();
  EXPECT_EQ(other.in.take_written(), 0U);
  EXPECT_FALSE(one.out.may_write());
}

}  // namespace
}  // namespace weft::sdp
