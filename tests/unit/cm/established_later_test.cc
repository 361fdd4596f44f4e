// A side that connects without a queue pair, and says by rdma_establish that it is ready: when the
// side that accepts hears of it (spec/mpa 2.9).

#include "mpa/startup.h"
#include "port/tcp_stream.h"
#include "tests/unit/cm/ids.h"

namespace weft::cm {
namespace {

class EstablishedLater : public IdsTest {
 protected:
  void SetUp() override {
    server_ = &make(PortSpace::tcp);
    at_ = listen(*server_);
  }
  void TearDown() override {
    if (child_ != nullptr) child_->destroy();
    if (client_ != nullptr) client_->destroy();
    server_->destroy();
  }
  // Both sides without queue pairs, up to the answer.
  void connect() {
    client_ = &make(PortSpace::tcp);
    resolve(*client_, at_);
    ASSERT_EQ(client_->connect(nullptr, {}), 0);
    child_ = await(EventKind::connect_request)->id;
    ASSERT_EQ(child_->accept(nullptr, {}), 0);
    ASSERT_EQ(await(EventKind::connect_response)->id, client_);
  }
  bool silent() {
    Event* none = nullptr;
    return channel->next(none) == EAGAIN;
  }
  // A peer that sends this Request, and the server's id for it.
  void request(const mpa::Offer& offer) {
    auto tcp = port::TcpStream::connect({}, at_);
    ASSERT_TRUE(tcp.ok());
    peer_ = std::move(*tcp);
    pollfd p{.fd = peer_.fd(), .events = POLLOUT, .revents = 0};
    ASSERT_EQ(::poll(&p, 1, 20'000), 1);
    const auto frame = mpa::Initiator{offer}.request({});
    send(frame);
    child_ = await(EventKind::connect_request)->id;
  }
  void send(Bytes bytes) const {
    const IoVec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
    ASSERT_EQ(peer_.send({&piece, 1}).bytes, bytes.size());
  }

  Id* server_ = nullptr;
  port::Address at_;
  Id* client_ = nullptr;
  Id* child_ = nullptr;
  port::TcpStream peer_;
};

TEST_F(EstablishedLater, ComesWhenTheOtherProgramSaysSo) {
  connect();
  EXPECT_TRUE(silent()) << "the client has not called establish()";
  ASSERT_EQ(client_->establish(), 0);
  EXPECT_EQ(await(EventKind::established)->id, child_);
  ASSERT_EQ(child_->disconnect(), 0);
  EXPECT_EQ(await(EventKind::disconnected)->id, child_);
  EXPECT_EQ(await(EventKind::disconnected)->id, client_);
}

TEST_F(EstablishedLater, AClientThatChangesItsMindIsARejection) {
  connect();
  ASSERT_EQ(client_->disconnect(), 0);
  EXPECT_EQ(await(EventKind::disconnected)->id, client_);
  const TakenEvent rejected = await(EventKind::rejected);
  EXPECT_EQ(rejected->id, child_);
  EXPECT_EQ(rejected->status, -ECONNRESET);
}

TEST_F(EstablishedLater, AServerMayDisconnectBefore) {
  connect();
  ASSERT_EQ(child_->disconnect(), 0);
  EXPECT_EQ(await(EventKind::disconnected)->id, child_);
  EXPECT_EQ(await(EventKind::disconnected)->id, client_);
  EXPECT_EQ(client_->establish(), EINVAL);
}

TEST_F(EstablishedLater, AnIdThatGoesBeforeTellsThePeer) {
  connect();
  child_->destroy();
  child_ = nullptr;
  EXPECT_EQ(await(EventKind::disconnected)->id, client_);
}

// Older ones of weft, siw, and all whose queue pair is there.
TEST_F(EstablishedLater, APeerThatDoesNotAskForItIsThereAtOnce) {
  request({});
  ASSERT_EQ(child_->accept(nullptr, {}), 0);
  EXPECT_EQ(await(EventKind::established)->id, child_);
}

TEST_F(EstablishedLater, ThePeersFirstBytesSayIt) {
  request({.established_later = true});
  ASSERT_EQ(child_->accept(nullptr, {}), 0);
  EXPECT_TRUE(silent());
  const std::byte first[] = {std::byte{0}, std::byte{14}};
  send(first);
  EXPECT_EQ(await(EventKind::established)->id, child_);
  send(first);
  peer_.close();
  EXPECT_EQ(await(EventKind::disconnected)->id, child_) << "said once";
}

}  // namespace
}  // namespace weft::cm
