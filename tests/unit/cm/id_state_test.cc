#include "cm/id_state.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace weft::cm {
namespace {

using S = IdState;

const std::vector<S> kStates = {S::idle,      S::bound,      S::addr_resolved, S::route_resolved,
                                S::listening, S::connecting, S::responded,     S::requested,
                                S::deserted,  S::connected,  S::closing,       S::closed,
                                S::failed};

S walk(S from, const std::vector<Step>& steps) {
  for (const Step s : steps) {
    const auto to = after(from, s);
    EXPECT_TRUE(to) << to_string(from) << ", step " << static_cast<int>(s);
    if (!to) return from;
    from = *to;
  }
  return from;
}

std::set<S> states_with(Step step) {
  std::set<S> found;
  for (const S s : kStates) {
    if (after(s, step)) found.insert(s);
  }
  return found;
}

// For the sentence to a program that calls at the wrong time.
TEST(IdState, StatesForAStep) {
  EXPECT_EQ(states_for(Step::connect), "route resolved");
  EXPECT_EQ(states_for(Step::listen), "idle or bound");
  EXPECT_STREQ(to_string(Step::listen), "rdma_listen");
}

TEST(IdState, ActiveSideConnectsAndDisconnects) {
  EXPECT_EQ(walk(S::idle, {Step::resolve_address, Step::resolve_route, Step::connect, Step::reply,
                           Step::disconnect, Step::stream_ended}),
            S::closed);
}

TEST(IdState, ActiveSideMayBindFirst) {
  EXPECT_EQ(walk(S::idle, {Step::bind, Step::resolve_address, Step::resolve_route}),
            S::route_resolved);
}

TEST(IdState, ProgramsQueuePairIsEstablishedByTheProgram) {
  EXPECT_EQ(walk(S::connecting, {Step::reply_for_program, Step::establish}), S::connected);
}

TEST(IdState, PassiveSideAccepts) {
  EXPECT_EQ(walk(S::requested, {Step::accept}), S::connected);
}

// UC: the answer is a datagram, and the connection stands when the peer is heard.
TEST(IdState, AnAnswerByDatagramWaitsForThePeer) {
  EXPECT_EQ(walk(S::requested, {Step::answer, Step::reply}), S::connected);
  EXPECT_EQ(walk(S::requested, {Step::answer, Step::failure}), S::failed);
  EXPECT_EQ(walk(S::requested, {Step::answer, Step::disconnect}), S::failed);
  EXPECT_FALSE(after(S::accepting, Step::reject));
}

TEST(IdState, RequestOfAPeerThatLeftCanOnlyBeRejected) {
  EXPECT_EQ(walk(S::requested, {Step::peer_gone}), S::deserted);
  EXPECT_FALSE(after(S::deserted, Step::accept));
  EXPECT_EQ(walk(S::deserted, {Step::reject}), S::closed);
}

TEST(IdState, PeerMayEndItWhileTheProgramHasNotEstablishedYet) {
  EXPECT_EQ(walk(S::responded, {Step::stream_ended}), S::closed);
}

TEST(IdState, EachCallOfTheProgramHasItsPlaces) {
  EXPECT_EQ(states_with(Step::bind), (std::set{S::idle}));
  EXPECT_EQ(states_with(Step::resolve_address), (std::set{S::idle, S::bound}));
  EXPECT_EQ(states_with(Step::resolve_route), (std::set{S::addr_resolved}));
  EXPECT_EQ(states_with(Step::listen), (std::set{S::idle, S::bound}));
  EXPECT_EQ(states_with(Step::connect), (std::set{S::route_resolved}));
  EXPECT_EQ(states_with(Step::establish), (std::set{S::responded}));
  EXPECT_EQ(states_with(Step::accept), (std::set{S::requested}));
  EXPECT_EQ(states_with(Step::reject), (std::set{S::requested, S::deserted}));
}

TEST(IdState, DisconnectingTwiceIsNoError) {
  EXPECT_EQ(states_with(Step::disconnect), (std::set{S::connecting, S::responded, S::connected,
                                                     S::closing, S::closed, S::failed}));
  EXPECT_EQ(after(S::closing, Step::disconnect), S::closing);
  EXPECT_EQ(after(S::closed, Step::disconnect), S::closed);
}

TEST(IdState, StreamEndsOnce) {
  EXPECT_EQ(states_with(Step::stream_ended), (std::set{S::responded, S::connected, S::closing}));
  EXPECT_EQ(after(S::connected, Step::stream_ended), S::closed);
}

TEST(IdState, NothingLeadsOutOfTheEnd) {
  for (const S end : {S::closed, S::failed}) {
    for (int step = 0; step <= static_cast<int>(Step::stream_ended); ++step) {
      const auto to = after(end, static_cast<Step>(step));
      EXPECT_TRUE(!to || *to == end) << to_string(end) << ", step " << step;
    }
  }
}

}  // namespace
}  // namespace weft::cm
