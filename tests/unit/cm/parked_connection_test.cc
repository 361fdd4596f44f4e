#include "cm/parked_connection.h"

#include <atomic>

#include "tests/support/hex.h"
#include "tests/unit/cm/started_pair.h"

namespace weft::cm {
namespace {

// Counts, by whoever holds the engine.
struct Told final : ParkedConnectionHandler {
  void parked_connection_heard(engine::Token&) override { ++heard; }
  void parked_connection_lost(engine::Token&) override { ++lost; }
  std::atomic<int> heard{0};
  std::atomic<int> lost{0};
};

class ParkedConnectionTest : public StartedTest {
 protected:
  ParkedConnection& park() {
    auto h = engine_->hold();
    return ParkedConnection::start(h.token(), told_, std::move(started_));
  }
  void send(std::vector<std::byte> bytes) {
    const IoVec piece{bytes.data(), bytes.size()};
    ASSERT_EQ(peer_.send({&piece, 1}).bytes, bytes.size());
    for (int i = 0; i < 200; ++i) engine_->progress();
  }
  Told told_;
};

TEST_F(ParkedConnectionTest, KeepsWhatThePeerSendsMeanwhile) {
  started_.early = {std::byte{1}};
  ParkedConnection& parked = park();
  send({std::byte{2}, std::byte{3}});
  std::optional<Started> back;
  {
    auto h = engine_->hold();
    back = parked.release(h.token());
  }
  EXPECT_EQ(back->early, (std::vector{std::byte{1}, std::byte{2}, std::byte{3}}));
  EXPECT_TRUE(back->tcp.valid());
  EXPECT_EQ(told_.lost, 0);
}

TEST_F(ParkedConnectionTest, HearsThatThePeerHasGone) {
  park();
  peer_.close();
  EXPECT_TRUE(soon([&] { return told_.lost > 0; }));
  EXPECT_EQ(told_.lost, 1);
  EXPECT_EQ(told_.heard, 0);
}

TEST_F(ParkedConnectionTest, ThePeerHearsThatItIsGivenUp) {
  ParkedConnection& parked = park();
  {
    auto h = engine_->hold();
    parked.close(h.token());
  }
  EXPECT_TRUE(all_that_comes().empty());
  EXPECT_EQ(told_.lost, 0) << "who gives it up knows";
}

TEST_F(ParkedConnectionTest, TellsOfThePeersFirstBytesOnce) {
  park();
  send({std::byte{1}});
  EXPECT_EQ(told_.heard, 1);
  send({std::byte{2}});
  EXPECT_EQ(told_.heard, 1);
}

// spec/same-host 2.2: the first byte is the Initiator's answer to the offer of memory.
TEST_F(ParkedConnectionTest, TheAnswerToAnOfferIsNotTheStream) {
  started_.segment = std::move(*shared::Segment::make());
  park();
  send({std::byte{1}});
  EXPECT_EQ(told_.heard, 0);
  send({std::byte{0}});
  EXPECT_EQ(told_.heard, 1);
}

// What the peer gets from a program that is ready.
class ReadyTest : public ParkedConnectionTest {
 protected:
  std::string said(const mpa::Parameters& parameters) {
    started_.parameters = parameters;
    ParkedConnection& parked = park();
    parked.say_ready();
    {
      auto h = engine_->hold();
      parked.close(h.token());
    }
    return test::to_hex(all_that_comes());
  }
};

TEST_F(ReadyTest, APeerThatWaitsGetsAnEmptyWrite) {
  // Length 14, tagged and last, a Write; STag 1, TO 0; no CRC: spec/mpa 2.4, 3.1.
  EXPECT_EQ(said({.crc = false, .extension = true, .established_later = true}),
            test::to_hex(test::from_hex("000e c140 00000001 0000000000000000 00000000")));
}

TEST_F(ReadyTest, OrTheFrameThatWasAgreedOn) {
  EXPECT_EQ(said({.crc = false,
                  .extension = true,
                  .peer_to_peer = true,
                  .rtr = mpa::Rtr::fpdu,
                  .established_later = true}),
            test::to_hex(test::from_hex("0000 0000 00000000")));
}

TEST_F(ReadyTest, WithMemoryAgreedOnAByteThatWakesIt) {
  started_.segment = std::move(*shared::Segment::make());
  EXPECT_EQ(said({.extension = true, .established_later = true}), "00");
}

TEST_F(ReadyTest, APeerThatDoesNotWaitGetsNothing) {
  EXPECT_EQ(said({.extension = true}), "");
}

}  // namespace
}  // namespace weft::cm
