// Calls of rsocket(7) that succeed leave errno as it was, as those of sockets do.
#include <future>

#include "tests/abi/cm_fixture.h"
#include "tests/abi/rsockets.h"

namespace weft::test::rsockets {
namespace {

constexpr int kMark = 4242;  // no error of the system's

// What errno is behind a call that succeeds.
template <class Call>
int left_by(Call call) {
  errno = kMark;
  const auto result = call();
  const int left = errno;
  EXPECT_GE(result, 0) << strerror(left);
  return left;
}

TEST(RsocketErrno, IsLeftAloneByWhatSucceeds) {
  Pair p = connected_pair();
  const int fd = p.server.fd();
  int on = 1;
  EXPECT_EQ(left_by([&] { return rsetsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on); }),
            kMark);
  sockaddr_in name{};
  socklen_t size = sizeof name;
  EXPECT_EQ(left_by([&] { return rgetpeername(fd, any_of(name), &size); }), kMark);

  // Both sides wait again and again: the sender for room, the receiver for bytes.
  const auto all = bytes(3'000'001, 4);
  auto receiver = std::async(std::launch::async, [&] {
    std::vector<uint8_t> got(all.size());
    int left = kMark;
    const auto note = [&left](int one) { left = one == kMark ? left : one; };
    for (size_t at = 0; at < got.size();) {
      pollfd one{fd, POLLIN, 0};
      note(left_by([&] { return rpoll(&one, 1, -1); }));
      ssize_t n = 0;
      note(left_by([&] { return n = rrecv(fd, got.data() + at, got.size() - at, 0); }));
      if (n <= 0) break;
      at += static_cast<size_t>(n);
    }
    EXPECT_TRUE(got == all);
    return left;
  });
  EXPECT_EQ(left_by([&] { return rsend(p.client.fd(), all.data(), all.size(), 0); }), kMark);
  EXPECT_EQ(receiver.get(), kMark);

  // In part, and not at once.
  EXPECT_OK(rfcntl(p.client.fd(), F_SETFL, O_NONBLOCK));
  EXPECT_EQ(left_by([&] { return rsend(p.client.fd(), all.data(), all.size(), 0); }), kMark);
  EXPECT_EQ(left_by([&] { return rshutdown(p.client.fd(), SHUT_RDWR); }), kMark);
}

}  // namespace
}  // namespace weft::test::rsockets
