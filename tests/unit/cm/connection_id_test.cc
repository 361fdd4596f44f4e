// Connections without queue pairs, as UCX uses them for private data. What a program sees of ids
// with queue pairs is asked in tests/abi.

#include "cm/connection_id.h"

#include "tests/unit/cm/ids.h"

namespace weft::cm {
namespace {

using ConnectionIdTest = IdsTest;

TEST_F(ConnectionIdTest, TellsBothSidesOfEachStep) {
  Id& server = make(PortSpace::tcp);
  Id& client = make(PortSpace::tcp);
  resolve(client, listen(server));
  ASSERT_EQ(client.connect(nullptr, {.responder_resources = 2,
                                     .initiator_depth = 3,
                                     .private_data = bytes_of("question")}),
            0);
  Id* child = nullptr;
  {
    const TakenEvent request = await(EventKind::connect_request);
    EXPECT_EQ(request->listener, &server);
    EXPECT_EQ(request->parameters.private_data, bytes_of("question"));
    EXPECT_EQ(request->parameters.responder_resources, 3) << "what the peer may have outstanding";
    EXPECT_EQ(request->parameters.initiator_depth, 2) << "what the peer serves";
    child = request->id;
  }
  EXPECT_EQ(child->addresses().destination.port(), client.addresses().source.port());
  ASSERT_EQ(child->accept(nullptr, {.responder_resources = 1,
                                    .initiator_depth = 1,
                                    .private_data = bytes_of("answer")}),
            0);
  {
    const TakenEvent response = await(EventKind::connect_response);
    EXPECT_EQ(response->id, &client);
    EXPECT_EQ(response->parameters.private_data, bytes_of("answer"));
    EXPECT_EQ(response->parameters.initiator_depth, 1) << "the peer serves no more";
  }
  ASSERT_EQ(client.establish(), 0);
  EXPECT_EQ(await(EventKind::established)->id, child);
  ASSERT_EQ(client.disconnect(), 0);
  EXPECT_EQ(await(EventKind::disconnected)->id, &client);
  EXPECT_EQ(await(EventKind::disconnected)->id, child);
  child->destroy();
  client.destroy();
  server.destroy();
}

TEST_F(ConnectionIdTest, APeerThatIsRejectedHearsWhatTheOtherSays) {
  Id& server = make(PortSpace::tcp);
  Id& client = make(PortSpace::tcp);
  resolve(client, listen(server));
  ASSERT_EQ(client.connect(nullptr, {}), 0);
  Id* const child = await(EventKind::connect_request)->id;
  ASSERT_EQ(child->reject(bytes_of("not you")), 0);
  {
    const TakenEvent rejected = await(EventKind::rejected);
    EXPECT_EQ(rejected->id, &client);
    EXPECT_EQ(rejected->parameters.private_data, bytes_of("not you"));
  }
  EXPECT_EQ(child->accept(nullptr, {}), EINVAL) << "answered already";
  EXPECT_EQ(client.connect(nullptr, {}), EINVAL) << "it has failed";
  child->destroy();
  client.destroy();
  server.destroy();
}

// A request that nobody took goes with its listener, and its peer hears of it.
TEST_F(ConnectionIdTest, AListenerThatGoesRejectsWhoWaits) {
  Id& server = make(PortSpace::tcp);
  Id& client = make(PortSpace::tcp);
  resolve(client, listen(server));
  const auto heard = make_channel();
  uint64_t taken = 0;
  ASSERT_EQ(client.migrate(*heard, taken), 0);
  EXPECT_EQ(taken, 2U) << "address and route";
  ASSERT_EQ(client.connect(nullptr, {}), 0);
  pollfd p{.fd = channel->fd(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&p, 1, 20'000), 1);
  server.destroy();
  EXPECT_EQ(await(EventKind::rejected, *heard)->id, &client);
  Event* none = nullptr;
  EXPECT_EQ(channel->next(none), EAGAIN) << "the request is gone";
  client.destroy();
}

TEST_F(ConnectionIdTest, StepsOutOfOrderAreRefused) {
  Id& id = make(PortSpace::tcp);
  EXPECT_EQ(id.connect(nullptr, {}), EINVAL);
  EXPECT_EQ(id.establish(), EINVAL);
  EXPECT_EQ(id.accept(nullptr, {}), EINVAL);
  EXPECT_EQ(id.reject({}), EINVAL);
  EXPECT_EQ(id.disconnect(), EINVAL);
  EXPECT_EQ(id.join_multicast({}, nullptr), EINVAL) << "of RDMA_PS_UDP alone";
  listen(id);
  EXPECT_EQ(id.listen(1), EINVAL) << "it listens";
  EXPECT_EQ(id.resolve_route(), EINVAL);
  id.destroy();
}

}  // namespace
}  // namespace weft::cm
