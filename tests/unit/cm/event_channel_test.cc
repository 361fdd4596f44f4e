#include "cm/event_channel.h"

#include "tests/unit/cm/ids.h"
#include "tests/unit/cm/memory.h"

namespace weft::cm {
namespace {

class EventChannelTest : public IdsTest {
 protected:
  // An id with addr_resolved in its channel, and route_resolved behind that.
  Id& resolved() {
    Id& id = make(PortSpace::tcp);
    EXPECT_EQ(id.resolve_address({}, port::Address::from_gid(Gid::from_ipv4(0x7f000001), 7174)), 0);
    EXPECT_EQ(id.resolve_route(), 0);
    return id;
  }
  static int next(Channel& c) {
    Event* e = nullptr;
    const int error = c.next(e);
    if (e != nullptr) service().acknowledge(e);
    return error;
  }
};

TEST_F(EventChannelTest, GivesEventsInTheirOrder) {
  EXPECT_EQ(next(*channel), EAGAIN);
  Id& id = resolved();
  await(EventKind::addr_resolved);
  await(EventKind::route_resolved);
  EXPECT_EQ(next(*channel), EAGAIN);
  id.destroy();
}

TEST_F(EventChannelTest, IsReadableWhileThereAreEvents) {
  pollfd p{.fd = channel->fd(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&p, 1, 0), 0);
  Id& id = resolved();
  EXPECT_EQ(::poll(&p, 1, 0), 1);
  EXPECT_EQ(next(*channel), 0);
  EXPECT_EQ(::poll(&p, 1, 0), 1) << "there is another one";
  EXPECT_EQ(next(*channel), 0);
  EXPECT_EQ(::poll(&p, 1, 0), 0);
  id.destroy();
}

TEST_F(EventChannelTest, EventsThatNobodyTookMoveWithTheirId) {
  Id& moves = resolved();
  Id& stays = resolved();
  const auto other = make_channel();
  ASSERT_EQ(moves.migrate(*other), 0);
  EXPECT_EQ(await(EventKind::addr_resolved, *other)->id, &moves);
  EXPECT_EQ(await(EventKind::route_resolved, *other)->id, &moves);
  EXPECT_EQ(await(EventKind::addr_resolved)->id, &stays);
  EXPECT_EQ(await(EventKind::route_resolved)->id, &stays);
  EXPECT_EQ(next(*channel), EAGAIN);
  moves.destroy();
  stays.destroy();
}

TEST_F(EventChannelTest, EventsOfAnIdThatGoesAreGone) {
  Id& goes = resolved();
  Id& stays = resolved();
  goes.destroy();
  EXPECT_EQ(await(EventKind::addr_resolved)->id, &stays);
  EXPECT_EQ(await(EventKind::route_resolved)->id, &stays);
  EXPECT_EQ(next(*channel), EAGAIN);
  stays.destroy();
}

// The ids go on, and nobody hears of them.
TEST_F(EventChannelTest, ADestroyedChannelTellsNothing) {
  Id& id = make(PortSpace::tcp);
  const std::shared_ptr<Channel> kept = channel;
  channel->destroy();
  EXPECT_EQ(id.resolve_address({}, port::Address::from_gid(Gid::from_ipv4(0x7f000001), 7174)), 0);
  EXPECT_EQ(id.resolve_route(), 0) << "the step before was done";
  EXPECT_EQ(next(*kept), EBADF);
  id.destroy();
}

// rdma_destroy_event_channel(3) cannot say that it found no memory.
TEST_F(EventChannelTest, ARequestThatNobodyTookGoesWithItAlsoWithoutMemory) {
  const std::shared_ptr<Channel> clients = make_channel();
  Id& listener = make(PortSpace::tcp);
  const port::Address where = listen(listener);
  Id* client = nullptr;
  ASSERT_EQ(service().create_id(*clients, PortSpace::tcp, client), 0);
  ASSERT_EQ(client->resolve_address({}, where), 0);
  (void)await(EventKind::addr_resolved, *clients);
  ASSERT_EQ(client->resolve_route(), 0);
  (void)await(EventKind::route_resolved, *clients);
  ASSERT_EQ(client->connect(nullptr, {}), 0);
  pollfd request{.fd = channel->fd(), .events = POLLIN, .revents = 0};
  for (int looks = 0; looks < 20'000 && ::poll(&request, 1, 1) == 0; ++looks) {
    EXPECT_EQ(next(*clients), EAGAIN) << "whoever asks moves the connection";
  }
  ASSERT_EQ(request.revents, POLLIN);
  most_memory = 0;
  channel->destroy();
  most_memory = SIZE_MAX;
  EXPECT_EQ(listener.destroy(), 0);
  EXPECT_EQ(client->destroy(), 0);
}

}  // namespace
}  // namespace weft::cm
