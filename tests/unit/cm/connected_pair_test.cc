// Where a connection is at this end: in a queue pair, or parked.

#include "cm/connected_pair.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <functional>

#include "cm/pair_setup.h"
#include "tests/unit/cm/one_pair.h"
#include "tests/unit/cm/started_pair.h"

namespace weft::cm {
namespace {

using verbs::QpState;

// By whoever holds the engine.
struct Heard final : ConnectedPairHandler {
  void peer_confirmed(engine::Token&) override { ++confirmed; }
  void call_failed(engine::Token&, const wdp::Handshake&) override { ++failed; }
  void connection_lost(engine::Token&, const ConnectionLoss& l) override {
    loss = l;
    ++lost;
  }
  void expect_nothing() const {
    EXPECT_EQ(confirmed, 0);
    EXPECT_EQ(failed, 0);
    EXPECT_EQ(lost, 0);
  }
  void expect_lost(EventKind kind, int status) const {
    EXPECT_EQ(lost, 1);
    EXPECT_EQ(static_cast<int>(loss.unestablished.kind), static_cast<int>(kind));
    EXPECT_EQ(loss.unestablished.status, status);
    EXPECT_EQ(loss.status, 0);
  }
  std::atomic<int> confirmed{0};
  std::atomic<int> failed{0};
  std::atomic<int> lost{0};
  ConnectionLoss loss;
};

// --- without a queue pair

class ParkedTest : public StartedTest {
 protected:
  void park(const ConnectedPair::Use& use = {}) {
    auto h = engine_->hold();
    end_.carry(h.token(), nullptr, std::move(started_), use);
    ASSERT_TRUE(end_.is_parked());
    ASSERT_EQ(end_.queue_pair(), nullptr);
    ASSERT_EQ(end_.caller(), nullptr);
  }
  void send(std::byte b) {
    const IoVec piece{&b, 1};
    ASSERT_EQ(peer_.send({&piece, 1}).bytes, 1U);
  }

  Heard heard_;
  ConnectedPair end_{heard_};
};

TEST_F(ParkedTest, ThePeersFirstBytesConfirmAndAreGivenBack) {
  park();
  send(std::byte{7});
  EXPECT_TRUE(soon([&] { return heard_.confirmed > 0; }));
  EXPECT_EQ(heard_.confirmed, 1);
  auto h = engine_->hold();
  const Started back = end_.unpark(h.token());
  EXPECT_EQ(back.early, std::vector{std::byte{7}});
  EXPECT_FALSE(end_.is_parked());
  EXPECT_EQ(heard_.lost, 0);
}

TEST_F(ParkedTest, APeerThatGoesIsALoss) {
  park();
  peer_.close();
  EXPECT_TRUE(soon([&] { return heard_.lost > 0; }));
  heard_.expect_lost(EventKind::rejected, -ECONNRESET);
  EXPECT_FALSE(end_.is_parked());
}

TEST_F(ParkedTest, DisconnectingIsOverAtOnce) {
  park();
  {
    auto h = engine_->hold();
    EXPECT_TRUE(end_.disconnect(h.token()));
  }
  EXPECT_FALSE(end_.is_parked());
  EXPECT_TRUE(all_that_comes().empty());
  heard_.expect_nothing();
}

TEST_F(ParkedTest, WhoLeavesTellsThePeer) {
  park();
  {
    auto h = engine_->hold();
    end_.leave(h.token(), false);
  }
  EXPECT_FALSE(end_.is_parked());
  EXPECT_TRUE(all_that_comes().empty());
  heard_.expect_nothing();
}

TEST_F(ParkedTest, APeerThatWaitsHearsThatTheProgramIsReady) {
  started_.parameters.established_later = true;
  started_.segment = std::move(*shared::Segment::make());
  park();
  {
    auto h = engine_->hold();
    end_.say_ready(h.token());
    EXPECT_TRUE(end_.is_parked());
    EXPECT_TRUE(end_.disconnect(h.token()));
  }
  EXPECT_EQ(all_that_comes().size(), 1U) << "spec/same-host 3.4";
}

TEST_F(ParkedTest, TheTypeOfServiceIsTheSockets) {
  park({.type_of_service = uint8_t{0x28}});
  auto h = engine_->hold();
  const Started back = end_.unpark(h.token());
  int tos = 0;
  socklen_t size = sizeof tos;
  ASSERT_EQ(::getsockopt(back.tcp.fd(), IPPROTO_IP, IP_TOS, &tos, &size), 0);
  EXPECT_EQ(tos, 0x28);
}

TEST_F(ParkedTest, WithNeitherDisconnectingIsOverAtOnce) {
  auto h = engine_->hold();
  EXPECT_TRUE(end_.disconnect(h.token()));
  end_.fail(h.token());
  end_.leave(h.token(), true);
  end_.say_ready(h.token());
  heard_.expect_nothing();
}

// --- with a queue pair, whose engine has a thread of its own

class AttachedTest : public StartedTest {
 protected:
  void make(verbs::QpType type) {
    pair_ = std::make_unique<OnePair>(type);
    pair_->to_init();
  }
  void TearDown() override {
    if (pair_ == nullptr) return;
    auto h = pair_->hold();
    end_.detach(h.token());
  }
  void attach(bool of_program = false) {
    auto h = pair_->hold();
    end_.attach(h.token(), pair_->qp(), of_program);
    ASSERT_EQ(end_.queue_pair(), &pair_->qp());
  }
  void connect() {
    const PairSetup setup{.to_peer = {.global = true, .dgid = kHere, .port = device::kPort},
                          .path_mtu = 3};
    ASSERT_TRUE(bring_to_rts(pair_->qp(), setup));
    auto h = pair_->hold();
    end_.carry(h.token(), &pair_->qp(), std::move(started_), {.initiator = true});
    ASSERT_TRUE(pair_->qp().connected());
    ASSERT_EQ(end_.queue_pair(), &pair_->qp());
    ASSERT_FALSE(end_.is_parked());
  }
  bool soon_here(const std::function<bool()>& holds) {
    return soon([&] {
      auto h = pair_->hold();
      return holds();
    });
  }

  Heard heard_;
  ConnectedPair end_{heard_};
  std::unique_ptr<OnePair> pair_;
};

TEST_F(AttachedTest, TheQueuePairIsRdmaCms) {
  make(verbs::QpType::rc);
  EXPECT_FALSE(end_.is_of_program());
  attach(true);
  EXPECT_TRUE(pair_->qp().cm_managed());
  EXPECT_TRUE(end_.is_of_program());
  EXPECT_EQ(end_.caller(), nullptr) << "it has a stream";
  attach(false);
  EXPECT_FALSE(end_.is_of_program());
}

TEST_F(AttachedTest, OfUcItCallsOverDatagrams) {
  make(verbs::QpType::uc);
  attach();
  EXPECT_NE(end_.caller(), nullptr);
  EXPECT_EQ(end_.caller(), pair_->qp().transport().datagram_caller());
}

TEST_F(AttachedTest, AStreamThatEndsIsALossAndTheQueuePairStays) {
  make(verbs::QpType::rc);
  connect();
  peer_.close();
  EXPECT_TRUE(soon_here([&] { return heard_.lost > 0; }));
  heard_.expect_lost(EventKind::unreachable, -ENOMEM);
  EXPECT_EQ(end_.queue_pair(), &pair_->qp());
  EXPECT_EQ(heard_.confirmed, 0) << "a stream is there when it is carried";
}

TEST_F(AttachedTest, DisconnectingIsOverWhenThePeerKnows) {
  make(verbs::QpType::rc);
  connect();
  {
    auto h = pair_->hold();
    EXPECT_FALSE(end_.disconnect(h.token()));
  }
  peer_.close();
  EXPECT_TRUE(soon_here([&] { return heard_.lost > 0; }));
  EXPECT_EQ(heard_.lost, 1);
}

TEST_F(AttachedTest, OfAQueuePairWithoutAConnectionItIsOverAtOnce) {
  make(verbs::QpType::rc);
  attach();
  auto h = pair_->hold();
  EXPECT_TRUE(end_.disconnect(h.token()));
  heard_.expect_nothing();
}

TEST_F(AttachedTest, OneThatCannotCarryAStreamIsInError) {
  make(verbs::QpType::uc);
  auto h = pair_->hold();
  end_.carry(h.token(), &pair_->qp(), std::move(started_), {});
  EXPECT_EQ(pair_->qp().state(), QpState::err);
}

TEST_F(AttachedTest, FailingIsAnErrorOfTheQueuePairAndNothingIsHeard) {
  make(verbs::QpType::rc);
  attach();
  {
    auto h = pair_->hold();
    end_.fail(h.token());
  }
  EXPECT_EQ(pair_->qp().state(), QpState::err);
  EXPECT_EQ(end_.queue_pair(), nullptr);
  pair_.reset();
  heard_.expect_nothing();
}

TEST_F(AttachedTest, WhoLeavesEndsWhatIsEstablishedAlone) {
  make(verbs::QpType::rc);
  attach();
  {
    auto h = pair_->hold();
    end_.leave(h.token(), false);
  }
  EXPECT_EQ(pair_->qp().state(), QpState::init);
  EXPECT_EQ(end_.queue_pair(), nullptr);
  connect();
  {
    auto h = pair_->hold();
    end_.leave(h.token(), true);
  }
  EXPECT_EQ(pair_->qp().state(), QpState::err);
  pair_.reset();
  heard_.expect_nothing();
}

TEST_F(AttachedTest, AQueuePairThatIsDestroyedIsALoss) {
  make(verbs::QpType::rc);
  attach();
  pair_.reset();
  heard_.expect_lost(EventKind::connect_error, -ECONNABORTED);
  EXPECT_EQ(end_.queue_pair(), nullptr);
}

TEST_F(AttachedTest, OneThatIsDetachedIsNotHeardOf) {
  make(verbs::QpType::rc);
  attach();
  {
    auto h = pair_->hold();
    end_.detach(h.token());
  }
  pair_.reset();
  heard_.expect_nothing();
}

}  // namespace
}  // namespace weft::cm
