// Channels and events.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/abi/cm_fixture.h"

namespace weft::test {
namespace {

class CmEvent : public CmTest {
 protected:
  // Without poll(2) in front of it.
  void expect_blocking_event(rdma_cm_event_type kind) {
    rdma_cm_event* e = nullptr;
    ASSERT_OK(rdma_get_cm_event(active.get(), &e));
    EXPECT_STREQ(rdma_event_str(e->event), rdma_event_str(kind));
    EXPECT_OK(rdma_ack_cm_event(e));
  }
};

// Of each kind: a program that waits for both directions sleeps.
TEST_F(CmEvent, DescriptorsAreNeverReadyForWriting) {
  const OwnedId id = make_id(active.get());
  sockaddr_in to = loopback(9);
  const auto ready = [](int fd) {
    pollfd p{.fd = fd, .events = POLLIN | POLLOUT, .revents = 0};
    (void)poll(&p, 1, 0);
    return p.revents;
  };
  EXPECT_EQ(ready(active->fd), 0);
  ASSERT_OK(rdma_resolve_addr(id.get(), nullptr, any_of(to), 1000));
  pollfd there{.fd = active->fd, .events = POLLIN, .revents = 0};
  ASSERT_EQ(poll(&there, 1, 20'000), 1);
  EXPECT_EQ(ready(active->fd), POLLIN);
  expect_blocking_event(RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_EQ(ready(active->fd), 0);
  ibv_context** const devices = rdma_get_devices(nullptr);
  ASSERT_NE(devices, nullptr);
  EXPECT_EQ(ready((*devices)->async_fd), 0);
  ibv_comp_channel* const completions = ibv_create_comp_channel(*devices);
  ASSERT_NE(completions, nullptr);
  EXPECT_EQ(ready(completions->fd), 0);
  EXPECT_OK(ibv_destroy_comp_channel(completions));
  rdma_free_devices(devices);
}

TEST_F(CmEvent, NonBlockingChannel) {
  ASSERT_EQ(fcntl(active->fd, F_SETFL, O_NONBLOCK), 0);
  rdma_cm_event* e = nullptr;
  for (int i = 0; i < 20; ++i) EXPECT_ERRNO(EAGAIN, rdma_get_cm_event(active.get(), &e));
  EXPECT_ERRNO(EINVAL, rdma_get_cm_event(active.get(), nullptr));
  const OwnedId id = make_id(active.get());
  sockaddr_in to = loopback(9);
  ASSERT_OK(rdma_resolve_addr(id.get(), nullptr, any_of(to), 1000));
  ASSERT_OK(rdma_get_cm_event(active.get(), &e));
  EXPECT_OK(rdma_ack_cm_event(e));
  EXPECT_ERRNO(EAGAIN, rdma_get_cm_event(active.get(), &e));
  EXPECT_ERRNO(EINVAL, rdma_ack_cm_event(nullptr));
}

TEST_F(CmEvent, SignalEndsTheWait) {
  struct sigaction act {};
  act.sa_handler = [](int) {};
  struct sigaction before {};
  ASSERT_EQ(sigaction(SIGUSR1, &act, &before), 0);
  int result = 0;
  int error = 0;
  std::atomic<bool> done{false};
  std::thread waiter([&] {
    rdma_cm_event* e = nullptr;
    result = rdma_get_cm_event(active.get(), &e);
    error = errno;
    done = true;
  });
  while (!done) {
    pthread_kill(waiter.native_handle(), SIGUSR1);
    usleep(1000);
  }
  waiter.join();
  EXPECT_EQ(result, -1);
  EXPECT_EQ(error, EINTR);
  sigaction(SIGUSR1, &before, nullptr);
}

// As inside the write(2) of librdmacm, whether an event is there or not.
TEST_F(CmEvent, ACancelledThreadGetsNoEvent) {
  ASSERT_EQ(fcntl(active->fd, F_SETFL, O_NONBLOCK), 0);
  std::atomic<bool> went_on{false};
  std::thread{[&] {
    pthread_cancel(pthread_self());
    rdma_cm_event* e = nullptr;
    rdma_get_cm_event(active.get(), &e);
    went_on = true;
  }}.join();
  EXPECT_FALSE(went_on);
}

// signal(3) installs handlers that restart read(2), which librdmacm's wait is to a program.
TEST_F(CmEvent, SignalThatRestartsCallsDoesNotEndTheWait) {
  static std::atomic<int> caught;
  caught = 0;
  struct sigaction act {};
  act.sa_handler = [](int) { ++caught; };
  act.sa_flags = SA_RESTART;
  struct sigaction before {};
  ASSERT_EQ(sigaction(SIGUSR1, &act, &before), 0);
  const OwnedId id = make_id(active.get());
  std::atomic<bool> done{false};
  std::thread waiter([&] {
    expect_blocking_event(RDMA_CM_EVENT_ADDR_RESOLVED);
    done = true;
  });
  while (caught < 20 && !done) {
    pthread_kill(waiter.native_handle(), SIGUSR1);
    usleep(1000);
  }
  EXPECT_FALSE(done);
  sockaddr_in to = loopback(9);
  ASSERT_OK(rdma_resolve_addr(id.get(), nullptr, any_of(to), 1000));
  waiter.join();
  sigaction(SIGUSR1, &before, nullptr);
}

TEST_F(CmEvent, DestroyWaitsForAcknowledgements) {
  OwnedId id = make_id(active.get());
  sockaddr_in to = loopback(9);
  ASSERT_OK(rdma_resolve_addr(id.get(), nullptr, any_of(to), 1000));
  OwnedEvent e = expect_event(active.get(), RDMA_CM_EVENT_ADDR_RESOLVED);
  std::atomic<bool> destroyed{false};
  std::thread destroyer([&] {
    id.reset();
    destroyed = true;
  });
  usleep(50'000);
  EXPECT_FALSE(destroyed);
  e.reset();
  destroyer.join();
  EXPECT_TRUE(destroyed);
}

TEST_F(CmEvent, EventsOfADestroyedIdAreGone) {
  OwnedId id = make_id(active.get());
  sockaddr_in to = loopback(9);
  ASSERT_OK(rdma_resolve_addr(id.get(), nullptr, any_of(to), 1000));
  ASSERT_FALSE(quiet_for(active.get(), 1000));
  id.reset();
  EXPECT_TRUE(quiet_for(active.get(), 0));
}

TEST_F(CmEvent, MigrationTakesEventsAlong) {
  const OwnedId id = make_id(active.get());
  sockaddr_in to = loopback(9);
  ASSERT_OK(rdma_resolve_addr(id.get(), nullptr, any_of(to), 1000));
  ASSERT_OK(rdma_migrate_id(id.get(), passive.get()));
  EXPECT_EQ(id->channel, passive.get());
  EXPECT_TRUE(quiet_for(active.get(), 0));
  const OwnedEvent e = expect_event(passive.get(), RDMA_CM_EVENT_ADDR_RESOLVED);
  ASSERT_NE(e, nullptr);
  EXPECT_EQ(e->id, id.get());
}

TEST_F(CmEvent, MigrationOfAListenerTakesRequestsAlong) {
  listener = listen_on(passive.get());
  client = resolved(active.get(), port_of(listener));
  ASSERT_OK(create_qp(client.get()));
  ASSERT_OK(rdma_connect(client.get(), nullptr));
  ASSERT_FALSE(quiet_for(passive.get(), 10'000));
  const OwnedChannel other{rdma_create_event_channel()};
  ASSERT_OK(rdma_migrate_id(listener.get(), other.get()));
  server.reset(expect_event(other.get(), RDMA_CM_EVENT_CONNECT_REQUEST)->id);
  EXPECT_EQ(server->channel, other.get());
  ASSERT_OK(create_qp(server.get()));
  ASSERT_OK(rdma_accept(server.get(), nullptr));
  expect_event(other.get(), RDMA_CM_EVENT_ESTABLISHED);
  expect_event(active.get(), RDMA_CM_EVENT_ESTABLISHED);
  server.reset();
  listener.reset();
}

// Who migrates waits for what it has got before, and not for what others take meanwhile.
TEST_F(CmEvent, MigrationWaitsForEventsOfTheOldChannelAlone) {
  listener = listen_on(passive.get());
  OwnedId clients[2];
  for (OwnedId& c : clients) c = resolved(active.get(), port_of(listener));
  ASSERT_OK(create_qp(clients[0].get()));
  ASSERT_OK(create_qp(clients[1].get()));
  ASSERT_OK(rdma_connect(clients[0].get(), nullptr));
  OwnedEvent first = expect_event(passive.get(), RDMA_CM_EVENT_CONNECT_REQUEST);
  const OwnedChannel other{rdma_create_event_channel()};
  std::atomic<bool> done{false};
  std::thread migrant([&] {
    EXPECT_OK(rdma_migrate_id(listener.get(), other.get()));
    done = true;
  });
  ASSERT_OK(rdma_connect(clients[1].get(), nullptr));
  // Until it has moved the request may come to the old channel; then it moves along.
  const OwnedEvent second = expect_event(other.get(), RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->id->channel, other.get());
  EXPECT_FALSE(done);
  const OwnedId children[2]{OwnedId{first->id}, OwnedId{second->id}};
  first.reset();
  migrant.join();
  EXPECT_EQ(listener->channel, other.get());
}

TEST_F(CmEvent, IdMayOutliveItsChannel) {
  OwnedChannel brief{rdma_create_event_channel()};
  listener = listen_on(brief.get());
  brief.reset();
  client = resolved(active.get(), port_of(listener));
  ASSERT_OK(create_qp(client.get()));
  ASSERT_OK(rdma_connect(client.get(), nullptr));
  expect_event(active.get(), RDMA_CM_EVENT_REJECTED);
}

// As with the kernel's descriptor.
TEST_F(CmEvent, DestroyedChannelIsABadDescriptor) {
  rdma_event_channel* channel = rdma_create_event_channel();
  ASSERT_NE(channel, nullptr);
  const OwnedId id = make_id(active.get());
  rdma_destroy_event_channel(channel);
  rdma_cm_event* e = nullptr;
  EXPECT_ERRNO(EBADF, rdma_get_cm_event(channel, &e));
  rdma_cm_id* fresh = nullptr;
  EXPECT_ERRNO(EBADF, rdma_create_id(channel, &fresh, nullptr, RDMA_PS_TCP));
  EXPECT_ERRNO(EBADF, rdma_migrate_id(id.get(), channel));
  EXPECT_EQ(id->channel, active.get());
  rdma_destroy_event_channel(channel);
}

// rping destroys the channel under a thread that goes round for the next event.
TEST_F(CmEvent, ChannelIsDestroyedUnderAThreadThatTakesEvents) {
  for (int i = 0; i < 200; ++i) {
    rdma_event_channel* channel = rdma_create_event_channel();
    ASSERT_NE(channel, nullptr);
    ASSERT_EQ(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
    std::atomic<unsigned> rounds{0};
    int error = 0;
    std::thread taker([&] {
      rdma_cm_event* e = nullptr;
      while (rdma_get_cm_event(channel, &e) == -1 && errno == EAGAIN) ++rounds;
      error = errno;
    });
    while (rounds < 3) std::this_thread::yield();
    rdma_destroy_event_channel(channel);
    taker.join();
    ASSERT_EQ(error, EBADF);
  }
}

// As rping's thread for events does, which would end the process for the error.
TEST_F(CmEvent, WhoHasJustTakenAnEventFindsItsWayBackToAChannelThatIsDestroyed) {
  struct sigaction act {};
  act.sa_handler = [](int) {};
  struct sigaction before {};
  ASSERT_EQ(sigaction(SIGUSR1, &act, &before), 0);
  for (int i = 0; i < 10; ++i) {
    rdma_event_channel* channel = rdma_create_event_channel();
    ASSERT_NE(channel, nullptr);
    const OwnedId id = make_id(channel);
    sockaddr_in to = loopback(9);
    ASSERT_OK(rdma_resolve_addr(id.get(), nullptr, any_of(to), 1000));
    std::atomic<bool> taken{false};
    std::atomic<bool> done{false};
    int error = 0;
    const auto begun = std::chrono::steady_clock::now();
    std::thread taker([&] {
      rdma_cm_event* e = nullptr;
      if (rdma_get_cm_event(channel, &e) == 0) rdma_ack_cm_event(e);
      taken = true;
      usleep(3000);
      if (rdma_get_cm_event(channel, &e) != 0) error = errno;
      done = true;
    });
    while (!taken) std::this_thread::yield();
    rdma_destroy_event_channel(channel);
    // Else the channel may have waited for it as long as it waits for anybody.
    const bool in_time = std::chrono::steady_clock::now() - begun < std::chrono::milliseconds{45};
    // It waits for ever, but for a signal.
    while (!done) {
      pthread_kill(taker.native_handle(), SIGUSR1);
      usleep(1000);
    }
    taker.join();
    EXPECT_TRUE(error == EINTR || (error == EBADF && !in_time)) << strerror(error);
  }
  ASSERT_EQ(sigaction(SIGUSR1, &before, nullptr), 0);
}

TEST_F(CmEvent, EventNames) {
  EXPECT_STREQ(rdma_event_str(RDMA_CM_EVENT_ADDR_RESOLVED), "RDMA_CM_EVENT_ADDR_RESOLVED");
  EXPECT_STREQ(rdma_event_str(RDMA_CM_EVENT_REJECTED), "RDMA_CM_EVENT_REJECTED");
  EXPECT_STREQ(rdma_event_str(RDMA_CM_EVENT_TIMEWAIT_EXIT), "RDMA_CM_EVENT_TIMEWAIT_EXIT");
  for (const int none : {-1, 99}) {
    EXPECT_STREQ(rdma_event_str(static_cast<rdma_cm_event_type>(none)), "UNKNOWN EVENT");
  }
}

}  // namespace
}  // namespace weft::test
