#include "cm/event_channel.h"

#include <sys/ioctl.h>

#include <string>
#include <thread>

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
  uint64_t taken = 0;
  ASSERT_EQ(moves.migrate(*other, taken), 0);
  EXPECT_EQ(taken, 0U);
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

// A listener, and clients of it on a channel of their own whose requests are in `channel`.
class EventChannelRequestTest : public EventChannelTest {
 protected:
  void request(size_t count) {
    const port::Address where = listen(listener);
    for (size_t i = 0; i < count; ++i) {
      Id* client = nullptr;
      ASSERT_EQ(service().create_id(*clients, PortSpace::tcp, client), 0);
      all.push_back(client);
      ASSERT_EQ(client->resolve_address({}, where), 0);
      (void)await(EventKind::addr_resolved, *clients);
      ASSERT_EQ(client->resolve_route(), 0);
      (void)await(EventKind::route_resolved, *clients);
      ASSERT_EQ(client->connect(nullptr, {}), 0);
    }
    // One is there for each.
    for (int looks = 0; looks < 20'000 && waiting() < count; ++looks) {
      EXPECT_EQ(next(*clients), EAGAIN) << "whoever asks moves the connection";
      std::this_thread::sleep_for(std::chrono::microseconds{100});
    }
    ASSERT_EQ(waiting(), count);
  }
  // The descriptor is a pipe with a word for each.
  size_t waiting() const {
    int bytes = 0;
    EXPECT_EQ(::ioctl(channel->fd(), FIONREAD, &bytes), 0);
    return static_cast<size_t>(bytes) / sizeof(uint64_t);
  }
  void end() {
    EXPECT_EQ(listener.destroy(), 0);
    for (Id* client : all) EXPECT_EQ(client->destroy(), 0);
  }

  const std::shared_ptr<Channel> clients = make_channel();
  Id& listener = make(PortSpace::tcp);
  std::vector<Id*> all;
};

// rdma_destroy_event_channel(3) cannot say that it found no memory.
TEST_F(EventChannelRequestTest, GoesWithItsChannelAlsoWithoutMemory) {
  request(2);
  most_memory = 0;
  channel->destroy();
  most_memory = SIZE_MAX;
  end();
}

TEST_F(EventChannelRequestTest, GoesWithItsListenerAlsoWithoutMemory) {
  request(3);
  most_memory = 0;
  EXPECT_EQ(listener.destroy(), 0);
  most_memory = SIZE_MAX;
  EXPECT_EQ(next(*channel), EAGAIN);
  for (Id* client : all) EXPECT_EQ(client->destroy(), 0);
}

// All of an id's events move, or none.
TEST_F(EventChannelRequestTest, StaysWhereItIsWhereThereIsNoMemoryToMove) {
  constexpr size_t kRequests = 20;  // more than a queue has room for from the beginning
  request(kRequests);
  const auto other = make_channel();
  uint64_t taken = 0;
  bool moved = false;
  for (size_t bytes = 0; !moved; bytes += 8) {
    most_memory = bytes;
    try {
      moved = listener.migrate(*other, taken) == 0;
    } catch (const std::bad_alloc&) {
    }
    most_memory = SIZE_MAX;
    ASSERT_LT(bytes, 1U << 16);
    ASSERT_EQ(waiting(), moved ? 0 : kRequests) << bytes;
  }
  for (size_t i = 0; i < kRequests; ++i) {
    Event* e = nullptr;
    ASSERT_EQ(other->next(e), 0);
    EXPECT_EQ(e->kind, EventKind::connect_request);
    e->id->destroy();
    service().acknowledge(e);
  }
  end();
}

}  // namespace
}  // namespace weft::cm
