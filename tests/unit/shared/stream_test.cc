#include "shared/stream.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <optional>
#include <thread>

#include "port/tcp_listener.h"
#include "shared/agreement.h"
#include "tests/unit/shared/two_ends.h"

namespace weft::shared {
namespace {

using Way = port::SharedBytes::Way;
using Transfer = port::ByteStream::Transfer;

class SharedStreamTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto l =
        port::TcpListener::listen(port::Address::from_gid(Gid::from_ipv4(INADDR_LOOPBACK), 0), 4);
    ASSERT_TRUE(l.ok());
    auto c = port::TcpStream::connect({}, l->local());
    ASSERT_TRUE(c.ok());
    ASSERT_TRUE(ready(l->fd()));
    auto accepted = l->accept();
    ASSERT_TRUE(accepted);
    active = std::move(*c);
    passive = std::move(*accepted);
    auto o = offer(passive, counters);
    ASSERT_TRUE(o);
    offered = std::move(o);
  }
  static bool ready(int fd) {
    pollfd p{.fd = fd, .events = POLLIN, .revents = 0};
    return ::poll(&p, 1, 20'000) == 1;
  }
  static bool quiet(int fd) {
    pollfd p{.fd = fd, .events = POLLIN, .revents = 0};
    return ::poll(&p, 1, 0) == 0;
  }
  void respond(Bytes early = {}) {
    b = std::make_unique<Stream>(std::move(passive), std::move(offered->segment),
                                 Stream::Role::responder, kReferFrom, early, counters);
    left = early;
  }
  void initiate() {
    auto segment = take(offered->offer, active, counters);
    ASSERT_TRUE(segment);
    Bytes none;
    a = std::make_unique<Stream>(std::move(active), std::move(*segment), Stream::Role::initiator,
                                 kReferFrom, none, counters);
  }
  void connect() {
    initiate();
    respond();
    ASSERT_TRUE(ready(b->fd()));
    b->hear();
    ASSERT_EQ(b->way(), Way::memory);
  }
  static Buffer take_in(const Stream& from, size_t most) {
    Buffer got(most);
    const IoVec one = piece(got);
    got.resize(from.receive({&one, 1}).bytes);
    return got;
  }
  static Transfer take_in(const Stream& from) {
    std::byte b{};
    const IoVec one{&b, 1};
    return from.receive({&one, 1});
  }
  static size_t give(Stream& to, const Buffer& b) {
    const IoVec one = piece(b);
    return to.send({&one, 1}, kNotOwn).bytes;
  }

  stats::EngineCounters counters;
  port::TcpStream active;
  port::TcpStream passive;
  std::optional<Offered> offered;
  std::unique_ptr<Stream> a;
  std::unique_ptr<Stream> b;
  Bytes left;
};

TEST_F(SharedStreamTest, BytesGoThroughMemoryBothWays) {
  connect();
  EXPECT_EQ(counters.streams_same_host.value(), 2U);
  EXPECT_EQ(counters.streams_same_host_copying.value(), 0U);
  for (Stream* from : {a.get(), b.get()}) {
    Stream& to = from == a.get() ? *b : *a;
    const Buffer small = pattern_bytes(333, 1);
    const Buffer large = pattern_bytes(77'777, 2);
    EXPECT_EQ(give(*from, small), small.size());
    EXPECT_EQ(give(*from, large), large.size());
    EXPECT_TRUE(from->refers_now());
    EXPECT_EQ(take_in(to, 100'000), small);
    EXPECT_EQ(take_in(to, 100'000), large);
    EXPECT_FALSE(from->refers_now());
  }
}

TEST_F(SharedStreamTest, WhatIsSentWithoutLeaveToReferIsCopied) {
  connect();
  Buffer large = pattern_bytes(50'000, 1);
  const Buffer before = large;
  const IoVec one = piece(large);
  EXPECT_EQ(std::as_const(*a).send({&one, 1}).bytes, large.size());
  EXPECT_FALSE(a->refers_now());
  large.assign(large.size(), std::byte{});
  Buffer got;
  while (got.size() < before.size()) {
    const Buffer part = take_in(*b, 100'000);
    ASSERT_FALSE(part.empty());
    got.insert(got.end(), part.begin(), part.end());
  }
  EXPECT_EQ(got, before);
}

// Both sides copy at a time: the first pieces can be read while the last are not there yet. A
// reader that lost its processor may miss that moment, so it is looked for more than once.
TEST_F(SharedStreamTest, TheFirstPiecesAreThereBeforeTheLast) {
  connect();
  constexpr size_t kPiece = 16 * 1024;
  const Buffer all = pattern_bytes(24 * kPiece, 1);
  std::vector<IoVec> pieces;
  for (size_t at = 0; at < all.size(); at += kPiece) {
    pieces.push_back({const_cast<std::byte*>(all.data()) + at, kPiece});
  }
  bool seen = false;
  for (int i = 0; i < 20'000 && !seen; ++i) {
    Buffer got;
    std::atomic<bool> reads{false};
    std::thread reader{[&] {
      reads = true;
      reads.notify_one();
      while (got.size() < all.size()) {
        const Buffer part = take_in(*b, all.size());
        got.insert(got.end(), part.begin(), part.end());
        seen |= !part.empty() && part.size() < all.size();
      }
    }};
    reads.wait(false);
    EXPECT_EQ(a->send(pieces, kNotOwn).bytes, all.size());
    reader.join();
    ASSERT_EQ(got, all);
  }
  EXPECT_TRUE(seen);
}

TEST_F(SharedStreamTest, TheResponderSaysNothingBeforeItKnowsTheWay) {
  respond();
  const Buffer x = pattern_bytes(10, 1);
  const IoVec one = piece(x);
  EXPECT_EQ(b->way(), Way::undecided);
  EXPECT_TRUE(b->send({&one, 1}, kNotOwn).would_block);
  EXPECT_TRUE(take_in(*b).would_block);
  b->hear();
  EXPECT_EQ(b->way(), Way::undecided);
  EXPECT_TRUE(quiet(active.fd()));
}

TEST_F(SharedStreamTest, AnInitiatorThatDeclinesGoesByTcp) {
  decline(active);
  respond();
  ASSERT_TRUE(ready(b->fd()));
  b->hear();
  EXPECT_EQ(b->way(), Way::tcp);
  EXPECT_EQ(
      counters.same_host_refused[static_cast<size_t>(stats::SameHostRefusal::by_peer)].value(), 1U);
  const Buffer x = pattern_bytes(1000, 1);
  const IoVec one = piece(x);
  EXPECT_EQ(active.send({&one, 1}).bytes, x.size());
  ASSERT_TRUE(ready(b->fd()));
  EXPECT_EQ(take_in(*b, 2000), x);
  EXPECT_EQ(b->send({&one, 1}, kNotOwn).bytes, x.size());
  EXPECT_TRUE(ready(active.fd()));
}

TEST_F(SharedStreamTest, AnInitiatorThatCannotJoinDeclines) {
  wire::HostOffer wrong = offered->offer;
  wrong.nonce[0] ^= std::byte{1};
  EXPECT_FALSE(take(wrong, active, counters));
  EXPECT_EQ(counters.same_host_refused[static_cast<size_t>(stats::SameHostRefusal::foreign_segment)]
                .value(),
            1U);
  respond();
  ASSERT_TRUE(ready(b->fd()));
  b->hear();
  EXPECT_EQ(b->way(), Way::tcp);
}

TEST_F(SharedStreamTest, TheWayMayHaveComeEarlyWithBytesBehindIt) {
  const Buffer early{std::byte{0}, std::byte{7}, std::byte{8}};
  respond(early);
  EXPECT_EQ(b->way(), Way::tcp);
  EXPECT_EQ(Buffer(left.begin(), left.end()), (Buffer{std::byte{7}, std::byte{8}}));
}

TEST_F(SharedStreamTest, OfMemoryNothingButWakeUpsComesEarly) {
  initiate();
  const Buffer early{std::byte{1}, std::byte{7}, std::byte{8}};
  respond(early);
  EXPECT_EQ(b->way(), Way::memory);
  EXPECT_TRUE(left.empty());
}

TEST_F(SharedStreamTest, WhoHasNotJoinedCannotSayThatHeHas) {
  const std::byte claims{1};
  const IoVec one{const_cast<std::byte*>(&claims), 1};
  ASSERT_EQ(active.send({&one, 1}).bytes, 1U);
  respond();
  ASSERT_TRUE(ready(b->fd()));
  b->hear();
  EXPECT_EQ(take_in(*b).error, EPROTO);
  EXPECT_TRUE(b->has_input());
}

TEST_F(SharedStreamTest, AnotherWayThanTheTwoEndsTheConnection) {
  const std::byte claims{2};
  const IoVec one{const_cast<std::byte*>(&claims), 1};
  ASSERT_EQ(active.send({&one, 1}).bytes, 1U);
  respond();
  ASSERT_TRUE(ready(b->fd()));
  b->hear();
  EXPECT_EQ(take_in(*b).error, EPROTO);
}

TEST_F(SharedStreamTest, OneThatSleepsIsWokenUpByTheDescriptor) {
  connect();
  EXPECT_TRUE(b->await_input());
  EXPECT_TRUE(quiet(b->fd()));
  const Buffer x = pattern_bytes(10, 1);
  give(*a, x);
  EXPECT_EQ(counters.wake_ups_sent.value(), 1U);
  ASSERT_TRUE(ready(b->fd()));
  b->hear();
  EXPECT_TRUE(quiet(b->fd()));
  EXPECT_TRUE(b->has_input());
  EXPECT_FALSE(b->await_input()) << "it is there already";
  EXPECT_EQ(take_in(*b, 100), x);
  b->ignore();
  give(*a, x);
  EXPECT_TRUE(quiet(b->fd())) << "it asks the memory";
  EXPECT_TRUE(b->has_input());
}

TEST_F(SharedStreamTest, OneThatWaitsForRoomIsWokenUp) {
  connect();
  const Buffer x = pattern_bytes(3 * kRingBytes, 1);
  const IoVec one = piece(x);
  EXPECT_LT(a->send({&one, 1}, Bytes{x}).bytes, x.size());
  EXPECT_TRUE(a->await_room());
  EXPECT_TRUE(quiet(a->fd()));
  while (!take_in(*b, 50'000).empty()) {
  }
  ASSERT_TRUE(ready(a->fd()));
  a->hear();
  EXPECT_TRUE(a->has_room());
}

TEST_F(SharedStreamTest, WhatWasSaidBeforeTheEndComesBeforeTheEnd) {
  connect();
  const Buffer x = pattern_bytes(5000, 1);
  give(*a, x);
  a->shut_write();
  while (!b->ended()) {
    ASSERT_TRUE(ready(b->fd()));
    b->hear();
  }
  EXPECT_EQ(take_in(*b, 3000).size(), 3000U);
  EXPECT_EQ(take_in(*b, 3000).size(), 2000U);
  EXPECT_TRUE(take_in(*b).end);
  // The other way goes on.
  EXPECT_EQ(give(*b, x), x.size());
  EXPECT_EQ(take_in(*a, 9000), x);
}

TEST_F(SharedStreamTest, AResetIsAnErrorBehindWhatWasSaid) {
  connect();
  const Buffer x = pattern_bytes(500, 1);
  give(*a, x);
  a->reset();
  while (!b->ended()) {
    ASSERT_TRUE(ready(b->fd()));
    b->hear();
  }
  EXPECT_EQ(take_in(*b, 9000), x);
  EXPECT_NE(take_in(*b).error, 0);
  const IoVec one = piece(x);
  EXPECT_NE(b->send({&one, 1}, kNotOwn).error, 0);
}

// Its last byte may have come long before: a FIN alone does not tell whether anybody is there.
TEST_F(SharedStreamTest, APeerThatIsGoneIsFoundOutBySpeakingToIt) {
  connect();
  b->ignore();
  a->close();
  while (!b->ended()) {
    ASSERT_TRUE(ready(b->fd()));
    b->hear();
  }
  for (;;) {
    pollfd p{.fd = b->fd(), .events = 0, .revents = 0};
    ASSERT_EQ(::poll(&p, 1, 20'000), 1);
    if ((p.revents & POLLERR) != 0) break;
  }
}

// Its memory may be another's by the time the peer pulls.
TEST_F(SharedStreamTest, WhatAClosedOneReferredToIsNotPulled) {
  connect();
  const Buffer large = pattern_bytes(50'000, 1);
  give(*a, large);
  a->close();
  EXPECT_EQ(take_in(*b, 100'000), Buffer{});
  EXPECT_EQ(take_in(*b).error, EPROTO) << "and stays over";
}

TEST_F(SharedStreamTest, AChildClosesWhatIsItsParents) {
  connect();
  give(*a, pattern_bytes(50'000, 1));
  const pid_t child = ::fork();
  if (child == 0) {
    a->close();
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(take_in(*b, 100'000).size(), 50'000U);
}

TEST_F(SharedStreamTest, AClosedOneMovesNothing) {
  connect();
  a->close();
  const Buffer x = pattern_bytes(500, 1);
  const IoVec one = piece(x);
  EXPECT_NE(a->send({&one, 1}, kNotOwn).error, 0);
  EXPECT_NE(take_in(*a).error, 0);
  EXPECT_FALSE(a->has_room());
  EXPECT_FALSE(a->refers_now());
  EXPECT_EQ(a->detach(), nullptr);
  EXPECT_EQ(a->fd(), -1);
}

}  // namespace
}  // namespace weft::shared
