// The two start-ups' terms of a connection, and what an event tells of them.

#include "cm/connection_terms.h"

#include <algorithm>

#include "config/options.h"
#include "drive/uc_link.h"
#include "tests/unit/cm/ids.h"
#include "tests/unit/cm/one_pair.h"

namespace weft::cm {
namespace {

ConnectionParameters wanted() {
  return {.responder_resources = 3,
          .initiator_depth = 5,
          .retry_count = 2,
          .rnr_retry_count = 4,
          .qpn = Qpn{0x1234},
          .private_data = bytes_of("mine")};
}

TEST(ConnectionTerms, ReadsOfAPeerAreWithinTheDevices) {
  EXPECT_EQ(reads_told(7), 7);
  EXPECT_EQ(reads_told(0), 0);
  EXPECT_EQ(reads_told(300), device::kMaxReads);
  EXPECT_EQ(reads_told(std::nullopt), device::kMaxReads) << "it does not say";
}

TEST(ConnectionTerms, AStreamsOfferIsWhatTheProgramAsksFor) {
  const mpa::Offer o = stream_offer(wanted());
  EXPECT_EQ(o.ird, 3);
  EXPECT_EQ(o.ord, 5);
  EXPECT_EQ(o.crc, config::options().crc);
  EXPECT_EQ(o.peer_to_peer, config::options().p2p);
  EXPECT_FALSE(o.established_later);
}

TEST(ConnectionTerms, AnEventHasNeitherQueuePairNorPrivateDataOfOurs) {
  const ConnectionParameters told = agreed(wanted());
  EXPECT_EQ(told.responder_resources, 3);
  EXPECT_EQ(told.initiator_depth, 5);
  EXPECT_EQ(told.retry_count, 2);
  EXPECT_EQ(told.rnr_retry_count, 4);
  EXPECT_EQ(told.qpn, Qpn{});
  EXPECT_TRUE(told.private_data.empty());
}

TEST(ConnectionTerms, WhatIsAgreedOnTakesThePlaceOfWhatWasAskedFor) {
  ConnectionParameters p = wanted();
  agree_on(p, 1, 300);
  EXPECT_EQ(p.responder_resources, 1);
  EXPECT_EQ(p.initiator_depth, device::kMaxReads);
  EXPECT_EQ(p.private_data, bytes_of("mine"));
}

TEST(ConnectionTerms, AReplyTellsWhatThePeerSays) {
  Started started;
  started.parameters.ird = 2;
  started.parameters.ord = 4;
  started.private_data = bytes_of("its");
  ConnectionParameters p = wanted();
  ConnectionParameters told = take_answer(p, started);
  EXPECT_EQ(p.responder_resources, 2);
  EXPECT_EQ(p.initiator_depth, 4);
  EXPECT_EQ(told.responder_resources, 2) << "the peer has not said what it sends";
  EXPECT_EQ(told.initiator_depth, 4);
  EXPECT_EQ(told.private_data, bytes_of("its"));
  started.parameters.peer_ord = 9;
  told = take_answer(p, started);
  EXPECT_EQ(told.responder_resources, 9);
  EXPECT_EQ(p.responder_resources, 2);
}

class SessionTerms : public testing::Test {
 protected:
  SessionTerms() : pair_(verbs::QpType::uc) { pair_.to_init(); }
  verbs::DatagramCaller& caller() { return *pair_.qp().transport().datagram_caller(); }

  OnePair pair_;
};

TEST_F(SessionTerms, AnOfferHasTheQueuePairsAndTheProgramsWords) {
  const auto h = pair_.hold();
  const wdp::Path path{.to = {kHere, 40000}, .from = kHere};
  wdp::Offer o = session_offer(caller(), caller().driver(), path, wanted(), 0x28);
  EXPECT_EQ(o.own_qpn, pair_.qp().number());
  EXPECT_EQ(o.traffic_class, 0x28);
  EXPECT_EQ(o.ird, 3);
  EXPECT_EQ(o.ord, 5);
  EXPECT_EQ(o.private_data, bytes_of("mine"));
  o = session_offer(caller(), caller().driver(), path, wanted(), std::nullopt);
  EXPECT_EQ(o.traffic_class, 0);
}

TEST_F(SessionTerms, ASessionTellsOfItsPeer) {
  auto h = pair_.hold();
  const Qpn peer = make_qpn(40000, 5);
  caller().adopt(h.token(),
                 {.path = {.to = {kHere, 40000}, .from = kHere},
                  .own_qpn = pair_.qp().number(),
                  .peer_qpn = peer,
                  .ird = 2,
                  .ord = 1,
                  .is_static = true},
                 {kHere, 40000});
  ConnectionParameters p = wanted();
  const ConnectionParameters told = take_answer(p, caller().link()->connection(), false);
  EXPECT_EQ(told.qpn, peer);
  EXPECT_EQ(told.responder_resources, 2);
  EXPECT_EQ(told.initiator_depth, 1);
  EXPECT_EQ(p.responder_resources, 2);
  EXPECT_EQ(p.initiator_depth, 1);
}

}  // namespace
}  // namespace weft::cm
