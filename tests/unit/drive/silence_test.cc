// Peers that answer nothing.

#include "drive/silence.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include "drive/stream_driver.h"
#include "engine/engine.h"
#include "port/tcp_listener.h"
#include "tests/support/host.h"
#include "tests/support/narrow_path.h"

namespace weft::drive {
namespace {

using namespace std::chrono_literals;
using engine::Engine;
using engine::Hold;

Gid peer(uint32_t i) {
  return Gid::from_ipv4(0xc0000200 + i);
}
constexpr Time kStart = Time::from_ns(5'000'000'000);

TEST(SilentPeers, EachIsWorthOneWarningAMinute) {
  SilentPeers peers;
  EXPECT_TRUE(peers.worth_a_warning(peer(1), kStart));
  EXPECT_FALSE(peers.worth_a_warning(peer(1), kStart));
  EXPECT_TRUE(peers.worth_a_warning(peer(2), kStart + 1s));
  EXPECT_FALSE(peers.worth_a_warning(peer(1), kStart + 59s));
  EXPECT_TRUE(peers.worth_a_warning(peer(1), kStart + 60s));
  EXPECT_FALSE(peers.worth_a_warning(peer(1), kStart + 119s));
}

TEST(SilentPeers, AsManyAsAUserReads) {
  SilentPeers peers;
  for (uint32_t i = 0; i < SilentPeers::kMost; ++i) {
    EXPECT_TRUE(peers.worth_a_warning(peer(i), kStart + i * 1ms)) << i;
  }
  EXPECT_FALSE(peers.worth_a_warning(peer(99), kStart + 1s));
  EXPECT_FALSE(peers.worth_a_warning(peer(3), kStart + 1s));
  // The oldest is forgotten.
  EXPECT_TRUE(peers.worth_a_warning(peer(99), kStart + 60s));
}

// --- a stream whose packets vanish, in a network of its own

#define WANT(condition)                                            \
  do {                                                             \
    if (!(condition)) {                                            \
      std::fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
      return 1;                                                    \
    }                                                              \
  } while (false)

bool run(const char* command) {
  return std::system(command) == 0;  // NOLINT(cert-env33-c)
}

struct Owner final : StreamOwner {
  void visited(Token&) override {}
  void driver_gone(Token&) override {}
};

// Two streams of one engine over loopback, and what the program on one end of them wrote.
struct Streams {
  static constexpr size_t kMost = 2;

  bool open(size_t i) {
    const auto l =
        port::TcpListener::listen(port::Address::from_gid(Gid::from_ipv4(INADDR_LOOPBACK), 0), 4);
    if (!l.ok()) return false;
    auto active = port::TcpStream::connect({}, l->local());
    pollfd p{l->fd(), POLLIN, 0};
    if (!active.ok() || ::poll(&p, 1, 20'000) != 1) return false;
    auto passive = l->accept();
    if (!passive) return false;
    sender[i] = drive(from[i], std::move(*active), true);
    (void)drive(to[i], std::move(*passive), false);
    return true;
  }
  StreamDriver* drive(test::Host& host, port::TcpStream tcp, bool initiator) {
    Hold h = engine->hold();
    const int fd = tcp.fd();
    auto driver = std::make_unique<StreamDriver>(
        owner, std::make_unique<port::TcpStream>(std::move(tcp)), host,
        rdmap::StreamConfig{.mpa = {.extension = true, .ird = 4, .ord = 4}, .initiator = initiator},
        1, h.token().now());
    StreamDriver* d = driver.get();
    engine->add(h.token(), std::move(driver), fd, true, false);
    d->start(h.token(), {});
    return d;
  }
  void write(size_t i, size_t bytes) {
    Hold h = engine->hold();
    out[i] = test::pattern_bytes(bytes, i);
    in[i].resize(bytes);
    from[i].post({.operation = work::Operation::write,
                  .signaled = true,
                  .remote_stag = to[i].add_region(in[i]),
                  .remote_to = test::address_of(in[i])},
                 {test::segment(from[i], out[i])});
    sender[i]->settle(h.token());
  }
  template <class F>
  bool until(F&& done) const {
    for (const Time end = Engine::clock() + 60s; Engine::clock() < end;) {
      engine->progress();
      const Hold h = engine->hold();
      if (done()) return true;
    }
    return false;
  }
  uint64_t silent() const {
    return engine->counters().peer_silent[static_cast<size_t>(stats::Silence::stream)].value();
  }

  std::unique_ptr<Engine> engine = std::move(*Engine::create(0));
  Owner owner;
  std::array<test::Host, kMost> from;
  std::array<test::Host, kMost> to;
  std::array<StreamDriver*, kMost> sender{};
  std::array<test::Buffer, kMost> out;
  std::array<test::Buffer, kMost> in;
};

int large_packets_vanish() {
  if ((::unshare(CLONE_NEWNET) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) ||
      !run("ip link set lo up")) {
    return test::kNotHere;
  }
  Streams s;
  for (size_t i = 0; i < Streams::kMost; ++i) {
    WANT(s.open(i));
    s.write(i, 100);
    WANT(s.until([&] { return s.from[i].sent.size() == 1; }));
  }
  if (!run("nft add table ip f && nft 'add chain ip f in { type filter hook input priority 0 ; }' "
           "&& nft add rule ip f in meta length \\> 1500 drop")) {
    return test::kNotHere;
  }
  // What is written to standard error.
  std::array<int, 2> ends{};
  const int usual = ::dup(STDERR_FILENO);
  WANT(::pipe(ends.data()) == 0);
  ::dup2(ends[1], STDERR_FILENO);
  for (size_t i = 0; i < Streams::kMost; ++i) s.write(i, 8000);
  const bool told = s.until([&] { return s.silent() == Streams::kMost; });
  ::dup2(usual, STDERR_FILENO);
  ::close(ends[1]);
  WANT(told);
  std::array<char, 4096> text{};
  const ssize_t length = ::read(ends[0], text.data(), text.size() - 1);
  WANT(length > 0);
  const std::string words(text.data(), static_cast<size_t>(length));
  std::fprintf(stderr, "%s", words.c_str());
  // Once for the peer that both lead to, with what may be the reason.
  WANT(std::count(words.begin(), words.end(), '\n') == 1);
  WANT(words.find(" warning: 127.0.0.1:") != std::string::npos);
  WANT(words.find("acknowledges nothing of what was sent over TCP") != std::string::npos);
  WANT(words.find("MTU") != std::string::npos);
  // Nothing has ended by it.
  WANT(run("nft flush chain ip f in"));
  WANT(s.until([&] { return s.from[0].sent.size() == 2 && s.from[1].sent.size() == 2; }));
  WANT(s.in == s.out);
  WANT(s.silent() == Streams::kMost);
  return 0;
}

TEST(Silence, LargePacketsVanish) {
  const int result = test::run_apart(large_packets_vanish);
  if (result == test::kNotHere) GTEST_SKIP() << "no network of its own can be made here";
  EXPECT_EQ(result, 0);
}

}  // namespace
}  // namespace weft::drive
