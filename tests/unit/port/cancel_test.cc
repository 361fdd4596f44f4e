// What is called while the engine is held is no cancellation point (port/calls.h): a thread that
// was cancelled leaves at the next one of its program's own, with all of this done.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <thread>

#include "port/fault_log.h"
#include "port/route.h"
#include "port/tcp_listener.h"
#include "port/udp_bind.h"
#include "port/udp_socket.h"
#include "tests/support/hex.h"

namespace weft::port {
namespace {

const Gid kHere = Gid::from_ipv4(INADDR_LOOPBACK);

// Does all of `body` in a thread that is cancelled already. In a destructor a cancellation point
// would end the process.
template <class F>
bool all_of_it_is_done(F&& body) {
  bool done = false;
  std::thread t([&] {
    ::pthread_cancel(::pthread_self());
    body();
    done = true;
    ::pthread_testcancel();
    ADD_FAILURE() << "it was not cancelled";
  });
  t.join();
  return done;
}

TEST(Cancelled, ADescriptorIsClosed) {
  int numbers[2] = {-1, -1};
  EXPECT_TRUE(all_of_it_is_done([&] {
    Fd a{::dup(STDERR_FILENO)};
    Fd b{::dup(STDERR_FILENO)};
    numbers[0] = a.get();
    numbers[1] = b.get();
    a = std::move(b);
  }));
  EXPECT_GE(numbers[0], 0);
  EXPECT_GE(numbers[1], 0);
  for (const int n : numbers) EXPECT_LT(::fcntl(n, F_GETFD), 0) << n;
}

TEST(Cancelled, ARouteIsAskedFor) {
  bool told = false;
  EXPECT_TRUE(all_of_it_is_done([&] {
    const auto source = source_towards(Address::from_gid(kHere, 7471), {});
    told = source.ok() && source->gid() == kHere && check_local(Address::from_gid(kHere, 0)) == 0;
  }));
  EXPECT_TRUE(told);
}

// The kernel is asked on the way whether it would choose that source by itself.
TEST(Cancelled, DatagramsGoToTheirOwnAddress) {
  constexpr size_t kCount = 20;
  auto fd = bind_udp(Address::from_gid(kHere, 0));
  ASSERT_TRUE(fd.ok());
  UdpSocket socket{std::move(*fd), 1 << 20};
  const Address to = socket.local();
  const test::Buffer data = test::pattern(100, 7);
  size_t came = 0;
  EXPECT_TRUE(all_of_it_is_done([&] {
    Segmentation segmentation;
    const IoVec piece{const_cast<std::byte*>(data.data()), data.size()};
    for (size_t i = 0; i < kCount; ++i) {
      (void)socket.send({.to = &to, .from = kHere, .segment = data.size(), .pieces = {&piece, 1}},
                        segmentation);
    }
    test::Buffer place(2000);
    for (size_t i = 0; i < kCount; ++i) {
      const auto r = socket.receive(place);
      came += r.bytes == data.size() && std::equal(data.begin(), data.end(), place.begin()) ? 1 : 0;
    }
  }));
  EXPECT_EQ(came, kCount);
}

TEST(Cancelled, ConnectionsAreMadeAndTaken) {
  auto listener = TcpListener::listen(Address::from_gid(kHere, 0), 8);
  ASSERT_TRUE(listener.ok());
  const Address to = listener->local();
  std::optional<TcpStream> there;
  std::optional<TcpStream> here;
  EXPECT_TRUE(all_of_it_is_done([&] {
    if (auto c = TcpStream::connect({}, to); c.ok()) there.emplace(std::move(*c));
    // On one host it is through before connect(2) returns.
    if (auto s = listener->accept()) here.emplace(std::move(*s));
  }));
  ASSERT_TRUE(there.has_value());
  ASSERT_TRUE(here.has_value());
  EXPECT_EQ(here->peer().to_string(), there->local().to_string());
}

TEST(Cancelled, ALossIsWrittenDown) {
  const std::string name = testing::TempDir() + "cancelled." + std::to_string(::getpid());
  EXPECT_TRUE(all_of_it_is_done([&] {
    FaultLog log(name);
    log.lost("out", Address::from_gid(kHere, 7471), 3000, test::pattern(4, 1));
  }));
  std::string line;
  std::getline(std::ifstream(name), line);
  EXPECT_EQ(line.rfind("out 127.0.0.1:7471 3000 ", 0), 0U) << line;
  (void)std::remove(name.c_str());
}

}  // namespace
}  // namespace weft::port
