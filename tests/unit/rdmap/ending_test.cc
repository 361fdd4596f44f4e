#include "rdmap/ending.h"

#include <gtest/gtest.h>

#include <vector>

#include "rdmap/limits.h"

namespace weft::rdmap {
namespace {

using namespace std::chrono_literals;
using State = Ending::State;
using Event = Ending::Event;
using Wish = Ending::Wish;

class EndingTest : public ::testing::Test {
 protected:
  void on(std::initializer_list<Event> events) {
    for (const Event e : events) ending.on(e, now);
  }
  // Up to its next deadline.
  std::optional<work::StreamEnd::Kind> wait() {
    now = ending.deadline();
    return ending.tick(now);
  }

  Ending ending;
  Time now = Time::from_ns(5'000'000'000);
};

TEST_F(EndingTest, AnOrderlyEndSaysAllAndWaitsForTheFin) {
  EXPECT_TRUE(ending.deadline().is_never());
  on({Event::close});
  EXPECT_TRUE(ending.closing());
  EXPECT_EQ(ending.wish(false), Wish::none);
  EXPECT_EQ(ending.wish(true), Wish::shutdown_write);
  on({Event::shut});
  EXPECT_EQ(ending.wish(true), Wish::none) << "the peer has not closed";
  on({Event::peer_fin});
  EXPECT_EQ(ending.wish(true), Wish::close);
  EXPECT_FALSE(ending.live());
}

TEST_F(EndingTest, APeerThatTakesNothingIsGivenUp) {
  on({Event::close});
  EXPECT_EQ(ending.deadline(), now + kLinger);
  EXPECT_FALSE(wait());
  EXPECT_EQ(ending.state(), State::drained);
  EXPECT_EQ(ending.wish(false), Wish::shutdown_write) << "answers are not waited for any more";
  EXPECT_EQ(ending.deadline(), now + kDrainStuck);
  EXPECT_EQ(wait(), work::StreamEnd::Kind::lost);
  EXPECT_EQ(ending.wish(false), Wish::reset);
  EXPECT_TRUE(ending.hopeless());
  EXPECT_TRUE(ending.deadline().is_never());
}

TEST_F(EndingTest, RequestsThatMoveOnAreWaitedFor) {
  on({Event::close});
  EXPECT_FALSE(wait());
  now = now + 3s;
  on({Event::moved});
  EXPECT_EQ(ending.state(), State::draining);
  EXPECT_EQ(ending.deadline(), now + kLinger);
}

TEST_F(EndingTest, AFinThatIsNotAnsweredIsAnEndAllTheSame) {
  on({Event::close, Event::shut});
  EXPECT_EQ(wait(), work::StreamEnd::Kind::closed);
  EXPECT_EQ(ending.wish(true), Wish::close);
}

TEST_F(EndingTest, ATerminateGoesOutBeforeTheFin) {
  on({Event::failed});
  EXPECT_EQ(ending.wish(true), Wish::none);
  on({Event::terminate_written});
  EXPECT_EQ(ending.wish(true), Wish::shutdown_write);
  on({Event::shut});
  EXPECT_EQ(ending.wish(true), Wish::none) << "closing now would take the Terminate with it";
  on({Event::peer_fin});
  EXPECT_EQ(ending.wish(true), Wish::close);
}

TEST_F(EndingTest, ATerminateThatNobodyTakesEndsInAReset) {
  on({Event::failed});
  EXPECT_FALSE(wait());
  EXPECT_EQ(ending.wish(true), Wish::reset);
  EXPECT_TRUE(ending.hopeless());
}

TEST_F(EndingTest, BehindAFinNoTerminateCanFollow) {
  on({Event::close, Event::shut, Event::failed});
  EXPECT_EQ(ending.state(), State::ended);
  EXPECT_EQ(ending.wish(true), Wish::close);
}

TEST_F(EndingTest, ATerminateOfThePeerIsAnsweredByAFin) {
  on({Event::terminated});
  EXPECT_EQ(ending.wish(true), Wish::shutdown_write);
  on({Event::shut, Event::peer_fin});
  EXPECT_EQ(ending.wish(true), Wish::close);
}

TEST_F(EndingTest, WhatWasBegunMayGoOutBehindThePeersFin) {
  on({Event::peer_fin});
  EXPECT_EQ(ending.state(), State::parting);
  EXPECT_FALSE(ending.hopeless());
  EXPECT_EQ(ending.wish(true), Wish::close);
  EXPECT_FALSE(wait());
  EXPECT_TRUE(ending.hopeless());
  EXPECT_EQ(ending.wish(true), Wish::reset);
}

TEST_F(EndingTest, WithoutAQueuePairBothFinsAreTheEnd) {
  on({Event::leave});
  EXPECT_TRUE(ending.leaving());
  EXPECT_EQ(ending.wish(false), Wish::shutdown_write);
  on({Event::peer_fin});
  EXPECT_TRUE(ending.live()) << "our own is not out";
  on({Event::shut});
  EXPECT_EQ(ending.state(), State::ended);

  ending = {};
  on({Event::leave, Event::shut, Event::peer_fin});
  EXPECT_EQ(ending.state(), State::ended);
}

TEST_F(EndingTest, AFinWaitsForItsTimeAlone) {
  ending.fin_not_before(now + 20ms);
  EXPECT_TRUE(ending.deadline().is_never()) << "nothing ends";
  on({Event::close});
  EXPECT_EQ(ending.wish(true), Wish::none);
  EXPECT_EQ(ending.deadline(), now + 20ms);
  EXPECT_FALSE(wait());
  EXPECT_EQ(ending.wish(true), Wish::shutdown_write);
}

TEST_F(EndingTest, WhatIsOverStaysOver) {
  for (const Event e :
       {Event::close, Event::leave, Event::failed, Event::terminated, Event::peer_fin,
        Event::terminate_written, Event::shut, Event::waited, Event::moved}) {
    ending = {};
    ending.end();
    on({e});
    EXPECT_EQ(ending.state(), State::ended) << static_cast<int>(e);
  }
}

}  // namespace
}  // namespace weft::rdmap
