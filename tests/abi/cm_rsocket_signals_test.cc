// rsocket(7): calls that wait, in a thread that catches signals. They wait as accept(2) and
// connect(2) do.
#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

#include "tests/abi/rsockets.h"

namespace weft::test {
namespace {

using namespace rsockets;

std::atomic<int> caught;

// What `call` ends with in a thread that catches signals until it comes back or has caught twenty.
// `go` is what it waits for.
int error_under_fire(int flags, const std::function<int()>& call, const std::function<void()>& go) {
  caught = 0;
  struct sigaction act {};
  act.sa_handler = [](int) { ++caught; };
  act.sa_flags = flags;
  struct sigaction before {};
  EXPECT_EQ(sigaction(SIGUSR1, &act, &before), 0);
  std::atomic<bool> done{false};
  int error = 0;
  std::thread waiter([&] {
    error = call() == 0 ? 0 : errno;
    done = true;
  });
  // Paced, so that it sleeps between them.
  while (!done && (flags == 0 || caught < 20)) {
    pthread_kill(waiter.native_handle(), SIGUSR1);
    usleep(1000);
  }
  go();
  waiter.join();
  sigaction(SIGUSR1, &before, nullptr);
  return error;
}

struct RsocketSignals : testing::Test {
  int accept_under_fire(int flags) {
    const Socket client = open_socket();
    std::future<int> connected;
    int fd = -1;
    const auto accept = [&] {
      fd = raccept(listener.fd(), nullptr, nullptr);
      return fd >= 0 ? 0 : -1;
    };
    const int error = error_under_fire(flags, accept, [&] {
      connected = std::async(std::launch::async,
                             [&] { return rconnect(client.fd(), any_of(there), sizeof there); });
    });
    if (error != 0) fd = raccept(listener.fd(), nullptr, nullptr);
    EXPECT_EQ(connected.get(), 0);
    const Socket server{fd};
    return error;
  }
  int connect_under_fire(int flags) {
    const Socket client = open_socket();
    std::future<int> accepted;
    const auto connect = [&] { return rconnect(client.fd(), any_of(there), sizeof there); };
    const int error = error_under_fire(flags, connect, [&] {
      accepted =
          std::async(std::launch::async, [&] { return raccept(listener.fd(), nullptr, nullptr); });
    });
    const Socket server{accepted.get()};
    if (error != 0) {
      // As connect(2) has it, the connection comes to stand nevertheless.
      EXPECT_EQ(events_of(client.fd(), POLLOUT, -1), POLLOUT);
      EXPECT_EQ(error_of(client.fd()), 0);
    }
    return error;
  }

  const Socket listener = listen_here();
  sockaddr_in there = name_of(listener.fd());
};

TEST_F(RsocketSignals, EndAnAccept) {
  EXPECT_EQ(accept_under_fire(0), EINTR);
}

TEST_F(RsocketSignals, ThatRestartCallsDoNotEndAnAccept) {
  EXPECT_EQ(accept_under_fire(SA_RESTART), 0);
}

TEST_F(RsocketSignals, EndAConnect) {
  EXPECT_EQ(connect_under_fire(0), EINTR);
}

TEST_F(RsocketSignals, ThatRestartCallsDoNotEndAConnect) {
  EXPECT_EQ(connect_under_fire(SA_RESTART), 0);
}

}  // namespace
}  // namespace weft::test
