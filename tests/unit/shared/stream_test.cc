#include "shared/stream.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <thread>

#include "port/tcp_listener.h"
#include "shared/agreement.h"
#include "tests/unit/shared/two_ends.h"

namespace weft::shared {
namespace {

using Carrier = port::SharedBytes::Carrier;
using Transfer = port::ByteStream::Transfer;

class SharedStreamTest : public ::testing::Test {
 protected:
  void SetUp() override { begin_anew(); }
  void begin_anew() {
    a.reset();
    b.reset();
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
  static bool ready_now(int fd) { return !quiet(fd); }
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
    ASSERT_EQ(b->carrier(), Carrier::memory);
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

// Both sides copy at a time. The last piece lies in a page that may not be read at first: when the
// sender comes to it, the reader has bytes already.
class LastPage {
 public:
  explicit LastPage(const Stream& reader, size_t size) : size_(size) {
    start_ = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    s_reader = &reader;
    s_page = static_cast<std::byte*>(start_) + size_ - kPage;
    s_touched = s_had_input = false;
    struct sigaction mine = {};
    mine.sa_handler = &LastPage::touched;
    ::sigaction(SIGSEGV, &mine, &before_);
  }
  ~LastPage() {
    ::sigaction(SIGSEGV, &before_, nullptr);
    ::munmap(start_, size_);
  }
  LastPage(const LastPage&) = delete;
  LastPage& operator=(const LastPage&) = delete;
  std::byte* start() const { return static_cast<std::byte*>(start_); }
  static void close() { ASSERT_EQ(::mprotect(s_page, kPage, PROT_NONE), 0); }
  static bool was_touched() { return s_touched; }
  static bool reader_had_input() { return s_had_input; }

 private:
  static void touched(int /*signal*/) {
    if (s_touched.exchange(true)) ::abort();  // another fault than the one expected
    s_had_input = s_reader->has_input();
    if (::mprotect(s_page, kPage, PROT_READ) != 0) ::abort();
  }

  static constexpr size_t kPage = 4096;
  static inline const Stream* s_reader = nullptr;
  static inline void* s_page = nullptr;
  static inline std::atomic<bool> s_touched{false};
  static inline std::atomic<bool> s_had_input{false};
  const size_t size_;
  void* start_ = nullptr;
  struct sigaction before_ = {};
};

TEST_F(SharedStreamTest, TheFirstPiecesAreThereBeforeTheLast) {
  connect();
  constexpr size_t kPiece = 16 * 1024;
  const Buffer all = pattern_bytes(24 * kPiece, 1);
  const LastPage memory{*b, all.size()};
  std::copy(all.begin(), all.end(), memory.start());
  std::vector<IoVec> pieces;
  for (size_t at = 0; at < all.size(); at += kPiece) {
    pieces.push_back({memory.start() + at, kPiece});
  }
  LastPage::close();
  EXPECT_EQ(a->send(pieces, kNotOwn).bytes, all.size());
  EXPECT_TRUE(LastPage::was_touched());
  EXPECT_TRUE(LastPage::reader_had_input());
  Buffer got;
  while (got.size() < all.size()) {
    const Buffer part = take_in(*b, all.size());
    ASSERT_FALSE(part.empty());
    got.insert(got.end(), part.begin(), part.end());
  }
  EXPECT_EQ(got, all);
}

TEST_F(SharedStreamTest, AFloodOfWakeUpsIsHeardInParts) {
  initiate();
  respond();
  ASSERT_TRUE(ready(b->fd()));
  b->hear();
  ASSERT_EQ(b->carrier(), Carrier::memory);
  const Buffer flood(64 * 1024);
  ASSERT_EQ(::send(a->fd(), flood.data(), flood.size(), MSG_DONTWAIT),
            static_cast<ssize_t>(flood.size()));
  for (int visits = 0; ready_now(b->fd()); ++visits) {
    ASSERT_LT(visits, 1000);
    b->hear();
    if (visits == 0) {
      EXPECT_TRUE(ready(b->fd())) << "others have their turn";
    }
  }
  EXPECT_FALSE(b->ended());
}

// It may be taken back at any moment of the pull.
TEST_F(SharedStreamTest, WhatIsReferredToComesBeforeTheEnd) {
  const Buffer large = pattern_bytes(1'000'000, 3);
  for (int round = 0; round < 200; ++round) {
    if (round > 0) begin_anew();
    connect();
    ASSERT_EQ(give(*a, large), large.size());
    a->shut_write();
    ASSERT_TRUE(ready(b->fd()));
    while (!b->ended()) b->hear();
    std::atomic<bool> reads{false};
    std::thread taker{[&] {
      while (!reads) {
      }
      // Each round a little later.
      for (int i = 0; i < round * 200; ++i) (void)reads.load();
      EXPECT_EQ(a->detach(), nullptr);
    }};
    Buffer got;
    Buffer room(large.size());
    const IoVec place = piece(room);
    Transfer t;
    while (!t.end && t.error == 0) {
      reads = true;
      t = b->receive({&place, 1});
      got.insert(got.end(), room.begin(), room.begin() + static_cast<ptrdiff_t>(t.bytes));
    }
    taker.join();
    EXPECT_EQ(t.error, 0);
    ASSERT_TRUE(got == large) << round;
  }
}

TEST_F(SharedStreamTest, TheResponderSaysNothingBeforeItKnowsTheCarrier) {
  respond();
  const Buffer x = pattern_bytes(10, 1);
  const IoVec one = piece(x);
  EXPECT_EQ(b->carrier(), Carrier::undecided);
  EXPECT_TRUE(b->send({&one, 1}, kNotOwn).would_block);
  EXPECT_TRUE(take_in(*b).would_block);
  b->hear();
  EXPECT_EQ(b->carrier(), Carrier::undecided);
  EXPECT_TRUE(quiet(active.fd()));
}

TEST_F(SharedStreamTest, AnInitiatorThatDeclinesGoesByTcp) {
  decline(active);
  respond();
  ASSERT_TRUE(ready(b->fd()));
  b->hear();
  EXPECT_EQ(b->carrier(), Carrier::tcp);
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
  EXPECT_EQ(b->carrier(), Carrier::tcp);
}

TEST_F(SharedStreamTest, TheCarrierMayHaveComeEarlyWithBytesBehindIt) {
  const Buffer early{std::byte{0}, std::byte{7}, std::byte{8}};
  respond(early);
  EXPECT_EQ(b->carrier(), Carrier::tcp);
  EXPECT_EQ(Buffer(left.begin(), left.end()), (Buffer{std::byte{7}, std::byte{8}}));
}

TEST_F(SharedStreamTest, OfMemoryNothingButWakeUpsComesEarly) {
  initiate();
  const Buffer early{std::byte{1}, std::byte{7}, std::byte{8}};
  respond(early);
  EXPECT_EQ(b->carrier(), Carrier::memory);
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

TEST_F(SharedStreamTest, AnotherCarrierThanTheTwoEndsTheConnection) {
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
