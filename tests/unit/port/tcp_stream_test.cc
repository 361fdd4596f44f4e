// Real sockets on the loopback interface.

#include "port/tcp_stream.h"

#include <gtest/gtest.h>
#include <linux/tcp.h>
#include <poll.h>
#include <sys/mman.h>

#include <cerrno>
#include <vector>

#include "port/tcp_listener.h"
#include "tests/support/hex.h"

namespace weft::port {
namespace {

using test::Buffer;
using test::pattern;

constexpr Gid kLoopback = Gid::from_ipv4(INADDR_LOOPBACK);

bool ready_within(int fd, short events, int ms) {
  pollfd p{.fd = fd, .events = events, .revents = 0};
  return ::poll(&p, 1, ms) == 1;
}
// Until the socket is ready for `events`; ten seconds are a failure.
bool ready(int fd, short events) {
  return ready_within(fd, events, 10'000);
}

struct Connected {
  Connected() {
    auto l = TcpListener::listen(Address::from_gid(kLoopback, 0), 4);
    EXPECT_TRUE(l.ok());
    listener = std::move(*l);
    auto c = TcpStream::connect({}, listener.local());
    EXPECT_TRUE(c.ok());
    a = std::move(*c);
    EXPECT_TRUE(ready(listener.fd(), POLLIN));
    auto accepted = listener.accept();
    EXPECT_TRUE(accepted);
    if (accepted) b = std::move(*accepted);
    EXPECT_TRUE(ready(a.fd(), POLLOUT));
    EXPECT_EQ(a.connect_result(), 0);
  }
  TcpListener listener;
  TcpStream a;
  TcpStream b;
};

IoVec piece(Buffer& b) {
  return {b.data(), b.size()};
}

// All of `n` bytes, in as many calls as it takes.
Buffer receive_all(const TcpStream& s, size_t n) {
  Buffer got(n);
  for (size_t have = 0; have < n;) {
    const IoVec v{got.data() + have, n - have};
    const auto t = s.receive({&v, 1});
    if (t.would_block) {
      if (!ready(s.fd(), POLLIN)) break;
      continue;
    }
    if (t.bytes == 0) break;
    have += t.bytes;
  }
  return got;
}

TEST(TcpStream, BytesGoThroughInOrder) {
  const Connected c;
  Buffer one = pattern(1000, 1);
  Buffer two = pattern(3, 2);
  Buffer three = pattern(70'000, 3);
  const IoVec pieces[] = {piece(one), piece(two), piece(three)};
  const auto t = c.a.send(pieces);
  EXPECT_EQ(t.bytes, 71'003U);
  EXPECT_EQ(receive_all(c.b, 71'003), test::join({one, two, three}));
}

// Bytes that the socket takes while the peer reads nothing.
size_t taken_without_a_reader(const TcpStream& s) {
  Buffer bytes = pattern(1 << 20, 7);
  const IoVec all = piece(bytes);
  size_t taken = 0;
  // What is on its way to the peer is acknowledged by its kernel, and makes room once more.
  while (ready_within(s.fd(), POLLOUT, 300)) taken += s.send({&all, 1}).bytes;
  return taken;
}

TEST(TcpStream, ALimitOfWhatIsNotSentIsKept) {
  const Connected free;
  const Connected limited;
  constexpr int kLimit = 16 * 1024;
  limited.a.limit_unsent(kLimit);
  const size_t before = taken_without_a_reader(free.a);
  const size_t after = taken_without_a_reader(limited.a);
  // The peers take the same into their windows; what is beyond them waits in the sender's socket.
  EXPECT_LT(after, before);
  tcp_info info{};
  socklen_t length = sizeof info;
  ASSERT_EQ(::getsockopt(limited.a.fd(), IPPROTO_TCP, TCP_INFO, &info, &length), 0);
  constexpr uint32_t kOnePiece = 64 * 1024;  // the limit is looked at before each
  EXPECT_LT(info.tcpi_notsent_bytes, kLimit + kOnePiece);
  EXPECT_EQ(receive_all(limited.b, after).size(), after);
}

TEST(TcpStream, AReceiveScatters) {
  const Connected c;
  Buffer sent = pattern(300, 1);
  const IoVec all = piece(sent);
  ASSERT_EQ(c.a.send({&all, 1}).bytes, 300U);
  ASSERT_TRUE(ready(c.b.fd(), POLLIN));
  Buffer one(100);
  Buffer two(150);
  Buffer three(100, std::byte{0xcc});
  const IoVec pieces[] = {piece(one), piece(two), piece(three)};
  EXPECT_EQ(c.b.receive(pieces).bytes, 300U);
  EXPECT_EQ(test::join({one, two, Bytes{three}.first(50)}), sent);
  EXPECT_EQ(three[50], std::byte{0xcc});
}

TEST(TcpStream, NothingThereYet) {
  const Connected c;
  Buffer b(10);
  const IoVec v = piece(b);
  const auto t = c.b.receive({&v, 1});
  EXPECT_TRUE(t.would_block);
  EXPECT_FALSE(t.end);
  EXPECT_EQ(t.bytes, 0U);
  EXPECT_EQ(t.error, 0);
}

TEST(TcpStream, AFullSocketTakesAPart) {
  const Connected c;
  Buffer large(64 << 20);
  const IoVec v = piece(large);
  const auto t = c.a.send({&v, 1});
  EXPECT_GT(t.bytes, 0U);
  EXPECT_LT(t.bytes, large.size());
  TcpStream::Transfer again;
  for (int i = 0; i < 1000 && !again.would_block; ++i) again = c.a.send({&v, 1});
  EXPECT_TRUE(again.would_block);
}

TEST(TcpStream, AFinIsTheEnd) {
  const Connected c;
  Buffer sent = pattern(10, 1);
  const IoVec v = piece(sent);
  c.a.send({&v, 1});
  c.a.shut_write();
  EXPECT_EQ(receive_all(c.b, 10), sent);
  ASSERT_TRUE(ready(c.b.fd(), POLLIN));
  EXPECT_TRUE(c.b.receive({&v, 1}).end);
  // The other direction is still open.
  EXPECT_EQ(c.b.send({&v, 1}).bytes, 10U);
  EXPECT_EQ(receive_all(c.a, 10), sent);
}

TEST(TcpStream, AResetIsAnError) {
  Connected c;
  c.a.reset();
  EXPECT_FALSE(c.a.valid());
  ASSERT_TRUE(ready(c.b.fd(), POLLIN));
  Buffer b(10);
  const IoVec v = piece(b);
  EXPECT_EQ(c.b.receive({&v, 1}).error, ECONNRESET);
}

TEST(TcpStream, WritingToAClosedPeerIsAnErrorAndNoSignal) {
  Connected c;
  c.b.close();
  Buffer b(10);
  const IoVec v = piece(b);
  ASSERT_TRUE(ready(c.a.fd(), POLLIN));
  int error = 0;
  for (int i = 0; i < 100 && error == 0; ++i) {
    error = c.a.send({&v, 1}).error;
    (void)ready(c.a.fd(), POLLOUT);
  }
  EXPECT_TRUE(error == EPIPE || error == ECONNRESET) << error;
}

// design/06: the kernel's own EFAULT in a send or receive.
TEST(TcpStream, MemoryThatIsNotThere) {
  const Connected c;
  constexpr size_t kPage = 4096;
  void* gone = ::mmap(nullptr, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(gone, MAP_FAILED);
  const IoVec bad{gone, 100};
  EXPECT_EQ(c.a.send({&bad, 1}).error, EFAULT);
  Buffer good = pattern(100, 1);
  const IoVec v = piece(good);
  ASSERT_EQ(c.a.send({&v, 1}).bytes, 100U);
  ASSERT_TRUE(ready(c.b.fd(), POLLIN));
  EXPECT_EQ(c.b.receive({&bad, 1}).error, EFAULT);
  ::munmap(gone, kPage);
}

TEST(TcpStream, NobodyListens) {
  auto l = TcpListener::bind(Address::from_gid(kLoopback, 0));
  ASSERT_TRUE(l.ok());
  // Bound and not listening: refused.
  auto c = TcpStream::connect({}, l->local());
  if (c.ok()) {
    ASSERT_TRUE(ready(c->fd(), POLLOUT));
    EXPECT_EQ(c->connect_result(), ECONNREFUSED);
  } else {
    EXPECT_EQ(c.error().code, ECONNREFUSED);
    EXPECT_NE(c.error().to_string().find("connect"), std::string::npos);
  }
}

TEST(TcpStream, FromAnAddressOfItsOwn) {
  auto l = TcpListener::listen(Address::from_gid(kLoopback, 0), 4);
  ASSERT_TRUE(l.ok());
  const Gid source = Gid::from_ipv4(0x7f000005);
  auto c = TcpStream::connect(Address::from_gid(source, 0), l->local());
  ASSERT_TRUE(c.ok()) << c.error().to_string();
  EXPECT_EQ(c->local().gid(), source);
  EXPECT_EQ(c->peer().to_string(), l->local().to_string());
  ASSERT_TRUE(ready(l->fd(), POLLIN));
  const auto b = l->accept();
  ASSERT_TRUE(b);
  EXPECT_EQ(b->peer().gid(), source);
}

TEST(TcpStream, FromAnAddressThatIsNotOfThisHost) {
  const auto c = TcpStream::connect(Address::from_gid(Gid::from_ipv4(0xc0000201), 0),
                                    Address::from_gid(kLoopback, 9));
  ASSERT_FALSE(c.ok());
  EXPECT_EQ(c.error().code, EADDRNOTAVAIL);
  EXPECT_STREQ(c.error().call, "bind");
}

TEST(TcpStream, TheKernelTellsTheSegmentSize) {
  const Connected c;
  EXPECT_GE(c.a.emss(), 536U);
  EXPECT_LE(c.a.emss(), 65'535U);
  EXPECT_EQ(TcpStream{}.emss(), 536U) << "the least there is";
}

TEST(TcpStream, TuningNeverBreaksIt) {
  const Connected c;
  c.a.set_type_of_service(0x60);
  c.a.choose_congestion_control();
  Buffer sent = pattern(10, 1);
  const IoVec v = piece(sent);
  EXPECT_EQ(c.a.send({&v, 1}).bytes, 10U);
  EXPECT_EQ(receive_all(c.b, 10), sent);
}

}  // namespace
}  // namespace weft::port
