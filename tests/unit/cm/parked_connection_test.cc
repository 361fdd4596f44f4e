#include "cm/parked_connection.h"

#include <atomic>

#include "tests/unit/cm/started_pair.h"

namespace weft::cm {
namespace {

struct Lost final : ParkedConnectionHandler {
  void parked_connection_lost(engine::Token&) override { ++times; }
  std::atomic<int> times{0};  // by whoever holds the engine
};

class ParkedConnectionTest : public StartedTest {
 protected:
  ParkedConnection& park() {
    auto h = engine_->hold();
    return ParkedConnection::start(h.token(), lost_, std::move(started_));
  }
  Lost lost_;
};

TEST_F(ParkedConnectionTest, KeepsWhatThePeerSendsMeanwhile) {
  started_.early = {std::byte{1}};
  ParkedConnection& parked = park();
  std::byte bytes[] = {std::byte{2}, std::byte{3}};
  const IoVec piece{bytes, sizeof bytes};
  ASSERT_EQ(peer_.send({&piece, 1}).bytes, 2U);
  for (int i = 0; i < 200; ++i) engine_->progress();
  std::optional<Started> back;
  {
    auto h = engine_->hold();
    back = parked.release(h.token());
  }
  EXPECT_EQ(back->early, (std::vector{std::byte{1}, std::byte{2}, std::byte{3}}));
  EXPECT_TRUE(back->tcp.valid());
  EXPECT_EQ(lost_.times, 0);
}

TEST_F(ParkedConnectionTest, HearsThatThePeerHasGone) {
  park();
  peer_.close();
  EXPECT_TRUE(soon([&] { return lost_.times > 0; }));
  EXPECT_EQ(lost_.times, 1);
}

TEST_F(ParkedConnectionTest, ThePeerHearsThatItIsGivenUp) {
  ParkedConnection& parked = park();
  {
    auto h = engine_->hold();
    parked.close(h.token());
  }
  EXPECT_TRUE(all_that_comes().empty());
  EXPECT_EQ(lost_.times, 0) << "who gives it up knows";
}

}  // namespace
}  // namespace weft::cm
