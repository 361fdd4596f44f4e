// As api_sleeper_test.cc, of librdmacm's calls.
#include "tests/abi/cm_fixture.h"
#include "tests/abi/sleeper.h"

namespace weft::test {
namespace {

class CmSleeper : public CmTest {
 protected:
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(connect_pair()); }
};

// Simple servers end so: the thread that takes completions is in its call.
TEST_F(CmSleeper, AnEndpointGoesWithAThreadInItsCompletionChannel) {
  rdma_cm_id* id = server.get();
  Sleeper sleeper{[id] {
    ibv_wc wc;
    return rdma_get_recv_comp(id, &wc) == 1 ? 0 : -1;
  }};
  ASSERT_TRUE(sleeper.sleeps());
  const int fd = id->recv_cq_channel->fd;
  ASSERT_OK(rdma_disconnect(id));
  server.reset();
  const Scribble scribble;
  while (is_open(fd) && !sleeper.came_back()) std::this_thread::yield();
  expect_event(active.get(), RDMA_CM_EVENT_DISCONNECTED);
  client.reset();
  // Other connections go on, and their sockets wake who listens to them.
  ASSERT_NO_FATAL_FAILURE(connect_pair());
  for (unsigned i = 0; i < 20; ++i) exchange(client.get(), server.get(), i);
  EXPECT_TRUE(sleeper.sleeps()) << "the call came back";
  sleeper.cancel();
  EXPECT_FALSE(sleeper.came_back());
}

// An operation is under way, so the thread hears the sockets itself.
TEST_F(CmSleeper, AnEventChannelGoesWithAThreadInIt) {
  OwnedChannel channel{rdma_create_event_channel()};
  OwnedId id = resolved(channel.get(), port_of(listener));
  ASSERT_OK(create_qp(id.get()));
  rdma_conn_param p = parameters();
  ASSERT_OK(rdma_connect(id.get(), &p));
  rdma_event_channel* waited_on = channel.get();
  Sleeper sleeper{[waited_on] {
    rdma_cm_event* event = nullptr;
    return rdma_get_cm_event(waited_on, &event);
  }};
  ASSERT_TRUE(sleeper.sleeps());
  channel.reset();
  const Scribble scribble;
  for (unsigned i = 0; i < 20; ++i) exchange(client.get(), server.get(), i);
  EXPECT_TRUE(sleeper.sleeps()) << "the call came back";
  sleeper.cancel();
  EXPECT_FALSE(sleeper.came_back());
}

TEST_F(CmSleeper, ADescriptorThatTheProgramHasClosed) {
  OwnedChannel channel{rdma_create_event_channel()};
  const OwnedId id = resolved(channel.get(), port_of(listener));
  const int fd = channel->fd;
  ASSERT_EQ(close(fd), 0);
  rdma_cm_event* event = nullptr;
  EXPECT_ERRNO(EBADF, rdma_get_cm_event(channel.get(), &event));
  // The number is somebody's again when the channel closes it.
  ASSERT_EQ(dup2(STDERR_FILENO, fd), fd);
}

}  // namespace
}  // namespace weft::test
