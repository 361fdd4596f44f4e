// A thread sleeps in an object that another one destroys, as programs do at their end. With the
// kernel's drivers it is inside read(2), on a descriptor that goes: it hears nothing more. And a
// descriptor that the program itself has closed is EBADF.
#include <signal.h>

#include "tests/abi/api_fixture.h"
#include "tests/abi/sleeper.h"

namespace weft::test {
namespace {

auto in_cq_event(ibv_comp_channel* channel) {
  return [channel] {
    ibv_cq* cq = nullptr;
    void* user_context = nullptr;
    return ibv_get_cq_event(channel, &cq, &user_context);
  };
}
auto in_async_event(ibv_context* context) {
  return [context] {
    ibv_async_event event;
    return ibv_get_async_event(context, &event);
  };
}

class SleeperTest : public PairTest {
 protected:
  // Sockets move, which wakes who listens to them.
  void exchange(int messages) {
    for (int i = 0; i < messages; ++i) {
      ASSERT_EQ(b.post_recv(1, b.sge(0, 64)), 0);
      ibv_sge from = a.sge(64, 64);
      ibv_send_wr wr{};
      wr.opcode = IBV_WR_SEND;
      wr.send_flags = IBV_SEND_SIGNALED;
      wr.sg_list = &from;
      wr.num_sge = 1;
      ASSERT_EQ(a.post(wr), 0);
      EXPECT_EQ(next_completion(a.cq.get()).status, IBV_WC_SUCCESS);
      EXPECT_EQ(next_completion(b.cq.get()).status, IBV_WC_SUCCESS);
    }
  }
  // Until the thread has run a handler after which system calls go on (SA_RESTART): it looks
  // around.
  template <class S>
  static void disturb(S& sleeper) {
    static std::atomic<int> handled{0};
    struct sigaction action {};
    action.sa_handler = [](int) { ++handled; };
    action.sa_flags = SA_RESTART;
    struct sigaction before {};
    ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
    const int so_far = handled;
    sleeper.interrupt();
    while (handled == so_far) std::this_thread::yield();
    EXPECT_TRUE(sleeper.sleeps()) << "the call came back";
    sigaction(SIGUSR1, &before, nullptr);
  }
  // The object is destroyed, and the descriptor goes when the sleeper has left it.
  template <class S>
  void expect_hears_nothing_more(S& sleeper, int fd) {
    const Scribble scribble;
    while (is_open(fd) && !sleeper.came_back()) std::this_thread::yield();
    exchange(20);
    EXPECT_TRUE(sleeper.sleeps()) << "the call came back";
    disturb(sleeper);
    exchange(20);
    sleeper.cancel();
    EXPECT_FALSE(sleeper.came_back());
  }
};

TEST_F(SleeperTest, ACompletionChannelGoes) {
  Owned<ibv_comp_channel> channel{ibv_create_comp_channel(context.get())};
  Owned<ibv_cq> cq{ibv_create_cq(context.get(), 16, nullptr, channel.get(), 0)};
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), 0), 0);
  const int fd = channel->fd;
  Sleeper sleeper{in_cq_event(channel.get())};
  ASSERT_TRUE(sleeper.sleeps());
  cq.reset();
  channel.reset();
  expect_hears_nothing_more(sleeper, fd);
}

TEST_F(SleeperTest, SeveralThreadsInOneChannel) {
  Owned<ibv_comp_channel> channel{ibv_create_comp_channel(context.get())};
  const int fd = channel->fd;
  Sleeper first{in_cq_event(channel.get())};
  Sleeper second{in_cq_event(channel.get())};
  ASSERT_TRUE(first.sleeps());
  ASSERT_TRUE(second.sleeps());
  channel.reset();
  while (is_open(fd)) std::this_thread::yield();
  expect_hears_nothing_more(first, fd);
  expect_hears_nothing_more(second, fd);
}

TEST_F(SleeperTest, TheDeviceIsClosed) {
  Owned<ibv_context> other = open_device();
  const int fd = other->async_fd;
  Sleeper sleeper{in_async_event(other.get())};
  ASSERT_TRUE(sleeper.sleeps());
  other.reset();
  expect_hears_nothing_more(sleeper, fd);
}

// Objects that the program has left over hold the device; the thread hears nothing all the same.
TEST_F(SleeperTest, TheDeviceIsClosedTooEarly) {
  ibv_context* other = open_device().release();
  ibv_pd* pd_of_other = ibv_alloc_pd(other);
  ASSERT_NE(pd_of_other, nullptr);
  Sleeper sleeper{in_async_event(other)};
  ASSERT_TRUE(sleeper.sleeps());
  ASSERT_EQ(ibv_close_device(other), 0);
  exchange(20);
  EXPECT_TRUE(sleeper.sleeps());
  EXPECT_EQ(ibv_dealloc_pd(pd_of_other), 0);
  exchange(20);
  EXPECT_TRUE(sleeper.sleeps());
  sleeper.cancel();
}

TEST_F(SleeperTest, ASignalEndsTheCall) {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  struct sigaction before {};
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  Owned<ibv_comp_channel> channel{ibv_create_comp_channel(context.get())};
  Owned<ibv_context> other = open_device();
  Sleeper in_channel{in_cq_event(channel.get())};
  Sleeper in_device{in_async_event(other.get())};
  ASSERT_TRUE(in_channel.sleeps());
  ASSERT_TRUE(in_device.sleeps());
  channel.reset();
  other.reset();
  // Again and again: it may have slept somewhere else.
  while (in_channel.sleeps()) in_channel.interrupt();
  while (in_device.sleeps()) in_device.interrupt();
  EXPECT_EQ(in_channel.error(), EINTR);
  EXPECT_EQ(in_device.error(), EINTR);
  sigaction(SIGUSR1, &before, nullptr);
}

// close(2) by the program, and then the call: it has nothing to wait for.
TEST_F(SleeperTest, ADescriptorThatTheProgramHasClosed) {
  const Owned<ibv_comp_channel> channel{ibv_create_comp_channel(context.get())};
  ASSERT_EQ(close(channel->fd), 0);
  errno = 0;
  EXPECT_EQ(in_cq_event(channel.get())(), -1);
  EXPECT_EQ(errno, EBADF);
  // Owned by weft, too: the number must be somebody's when it is closed again.
  ASSERT_EQ(dup2(STDERR_FILENO, channel->fd), channel->fd);

  const Owned<ibv_context> other = open_device();
  ASSERT_EQ(close(other->async_fd), 0);
  errno = 0;
  EXPECT_EQ(in_async_event(other.get())(), -1);
  EXPECT_EQ(errno, EBADF);
  ASSERT_EQ(dup2(STDERR_FILENO, other->async_fd), other->async_fd);
}

}  // namespace
}  // namespace weft::test
