// Real sockets on the loopback interface, with faults on purpose between them and the kernel.

#include "port/faulty_datagrams.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>

#include "port/fault_log.h"
#include "port/faults.h"
#include "tests/support/hex.h"

namespace weft::port {
namespace {

using namespace std::chrono_literals;
using stats::InjectedFault;
using test::Buffer;
using test::pattern;

constexpr Gid kLoopback = Gid::from_ipv4(INADDR_LOOPBACK);
constexpr size_t kSize = 200;

UdpSocket make() {
  Fd fd{::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  const Address any = Address::any(AF_INET, 0);
  EXPECT_EQ(::bind(fd.get(), any.get(), any.length), 0);
  return UdpSocket{std::move(fd), 4 << 20};
}

// The number of the datagram in front, and bytes that follow from it.
Buffer numbered(uint32_t i, size_t size = kSize) {
  Buffer d = pattern(size, i);
  store_be(d.data(), i);
  return d;
}
uint32_t number_of(const Buffer& d) {
  return load_be<uint32_t>(d.data());
}

FaultSpec spec(const char* text) {
  return *FaultSpec::parse(text);
}

class FaultyUdp : public ::testing::Test {
 protected:
  FaultyUdp() { faults::count_in(counters_.get()); }
  ~FaultyUdp() override { faults::count_in(nullptr); }

  uint64_t count(InjectedFault what) const {
    return counters_->fault_injected[static_cast<size_t>(what)].value();
  }

  // Datagrams first .. first + n - 1 as one train.
  UdpSocket::Sent send(uint32_t first, uint32_t n, UdpSocket& from, const Address& to) {
    Buffer train;
    for (uint32_t i = first; i < first + n; ++i) {
      const Buffer d = numbered(i);
      train.insert(train.end(), d.begin(), d.end());
    }
    // Cut where datagrams are not.
    const IoVec pieces[] = {{train.data(), 77}, {train.data() + 77, train.size() - 77}};
    return from.send({.to = &to, .segment = kSize, .pieces = pieces}, segmentation_);
  }
  void send(uint32_t first, uint32_t n) {
    EXPECT_EQ(send(first, n, a_, to_).bytes, n * kSize);
    collect();
  }
  // What is there now.
  void collect() { collect(b_); }
  void collect(UdpSocket& at) {
    Buffer place(65'536);
    for (auto r = at.receive(place); !r.would_block; r = at.receive(place)) {
      ASSERT_EQ(r.error, 0);
      ++calls_;
      for (size_t begin = 0; begin < r.bytes; begin += r.segment) {
        const auto first = place.begin() + static_cast<ptrdiff_t>(begin);
        got_.emplace_back(first,
                          first + static_cast<ptrdiff_t>(std::min(r.segment, r.bytes - begin)));
      }
    }
  }
  // Until nothing is held back, and all of it has come.
  void wait() {
    for (const UdpSocket* s : {&a_, &b_}) {
      while (!s->held_until().is_never()) {
        a_.release_held();
        collect();
        (void)::poll(nullptr, 0, 1);
      }
    }
    collect();
  }
  void expect_intact() const {
    for (const Buffer& d : got_) EXPECT_TRUE(d == numbered(number_of(d))) << number_of(d);
  }
  bool in_order() const {
    return std::is_sorted(got_.begin(), got_.end(), [](const Buffer& x, const Buffer& y) {
      return number_of(x) < number_of(y);
    });
  }

  std::unique_ptr<stats::DeviceCounters> counters_ = std::make_unique<stats::DeviceCounters>();
  UdpSocket a_ = make();
  UdpSocket b_ = make();
  Address to_ = Address::from_gid(kLoopback, b_.local().port());
  Segmentation segmentation_;
  std::vector<Buffer> got_;
  size_t calls_ = 0;
};

TEST_F(FaultyUdp, LosesOfWhatIsSentAsManyAsItCounts) {
  a_.inject(spec("loss:0.1,seed:3"));
  for (uint32_t i = 0; i < 2000; i += 40) send(i, 40);
  EXPECT_EQ(count(InjectedFault::datagrams_out), 2000U);
  const uint64_t lost = count(InjectedFault::lost_out);
  EXPECT_GT(lost, 100U);
  EXPECT_LT(lost, 300U);
  EXPECT_EQ(got_.size(), 2000 - lost);
  EXPECT_TRUE(in_order());
  expect_intact();
  EXPECT_EQ(count(InjectedFault::lost_in), 0U);
  EXPECT_TRUE(a_.held_until().is_never());
}

// Those that nothing happens to stay together: with one decision for each datagram, but not one
// system call for each.
TEST_F(FaultyUdp, WhatIsLeftOfATrainStaysATrain) {
  if (!b_.gathers()) GTEST_SKIP() << "no UDP_GRO";
  a_.inject(spec("loss:0.02,seed:3"));
  for (uint32_t i = 0; i < 2000; i += 50) send(i, 50);
  EXPECT_GT(got_.size(), 1900U);
  EXPECT_LT(calls_, got_.size() / 5);
}

TEST_F(FaultyUdp, LosesOfWhatComesAsManyAsItCounts) {
  b_.inject(spec("loss:0.1,seed:4"));
  for (uint32_t i = 0; i < 2000; i += 40) send(i, 40);
  EXPECT_EQ(count(InjectedFault::datagrams_in), 2000U);
  EXPECT_GT(count(InjectedFault::lost_in), 100U);
  EXPECT_EQ(got_.size(), 2000 - count(InjectedFault::lost_in));
  EXPECT_TRUE(in_order());
  expect_intact();
}

// The kernel would end the process by SIGXFSZ.
TEST_F(FaultyUdp, TheLogStopsBeforeTheLimitForFiles) {
  constexpr rlim_t kMost = 500;
  const std::string path = ::testing::TempDir() + "weft-lost-few-" + std::to_string(::getpid());
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit most{.rlim_cur = kMost, .rlim_max = kMost};
    ::setrlimit(RLIMIT_FSIZE, &most);
    FaultLog log{path};
    for (uint32_t i = 0; i < 10; ++i) log.lost("out", to_, kSize, numbered(i));
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  std::ifstream file{path};
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  std::filesystem::remove(path);
  EXPECT_LE(all.size(), kMost);
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all.back(), '\n') << "whole lines";
}

// A line for each that did not arrive, and for no other.
TEST_F(FaultyUdp, TheLogNamesWhatIsLost) {
  const std::string path = ::testing::TempDir() + "weft-lost-" + std::to_string(::getpid());
  {
    FaultLog log{path};
    a_.inject(spec("loss:0.1,seed:3"), &log);
    b_.inject(spec("loss:0.1,seed:4"), &log);
    for (uint32_t i = 0; i < 400; i += 40) send(i, 40);
  }
  std::map<uint32_t, std::string> lost;  // and the way it took
  std::ifstream file{path};
  for (std::string line; std::getline(file, line);) {
    std::istringstream words{line};
    std::string direction, peer, bytes, front;
    words >> direction >> peer >> bytes >> front;
    EXPECT_EQ(peer, direction == "out"
                        ? to_.to_string()
                        : Address::from_gid(kLoopback, a_.local().port()).to_string());
    EXPECT_EQ(bytes, std::to_string(kSize));
    const auto number = static_cast<uint32_t>(std::stoul(front.substr(0, 8), nullptr, 16));
    Buffer expected = numbered(number);
    expected.resize(FaultLog::kFront);
    EXPECT_EQ(test::to_hex(test::from_hex(front)), test::to_hex(expected));
    EXPECT_TRUE(lost.emplace(number, direction).second) << "twice: " << number;
  }
  std::filesystem::remove(path);
  EXPECT_GT(count(InjectedFault::lost_out), 0U);
  EXPECT_GT(count(InjectedFault::lost_in), 0U);
  EXPECT_EQ(lost.size(), count(InjectedFault::lost_out) + count(InjectedFault::lost_in));
  for (const Buffer& d : got_) EXPECT_FALSE(lost.contains(number_of(d))) << number_of(d);
  EXPECT_EQ(lost.size() + got_.size(), 400U);
}

TEST_F(FaultyUdp, AllLostIsNothingThere) {
  b_.inject(spec("loss:1"));
  for (uint32_t i = 0; i < 400; ++i) send(i, 1);
  EXPECT_TRUE(got_.empty());
  EXPECT_EQ(count(InjectedFault::lost_in), 400U);
}

TEST_F(FaultyUdp, ADirectionMayBeLeftAlone) {
  a_.inject(spec("loss:1,way:in"));
  b_.inject(spec("loss:1,way:out"));
  send(0, 20);
  EXPECT_EQ(got_.size(), 20U);
  EXPECT_EQ(count(InjectedFault::datagrams_out) + count(InjectedFault::datagrams_in), 0U);
}

TEST_F(FaultyUdp, DoublesInBothDirections) {
  a_.inject(spec("duplicate:0.2,seed:5,way:out"));
  b_.inject(spec("duplicate:0.2,seed:6,way:in"));
  for (uint32_t i = 0; i < 1000; i += 40) send(i, 40);
  wait();
  const uint64_t out = count(InjectedFault::duplicated_out);
  const uint64_t in = count(InjectedFault::duplicated_in);
  EXPECT_GT(out, 100U);
  EXPECT_GT(in, 100U);
  EXPECT_EQ(count(InjectedFault::datagrams_in), 1000 + out);
  EXPECT_EQ(got_.size(), 1000 + out + in);
  std::map<uint32_t, int> times;
  for (const Buffer& d : got_) ++times[number_of(d)];
  EXPECT_EQ(times.size(), 1000U);
  expect_intact();
}

TEST_F(FaultyUdp, OthersOvertake) {
  for (const char* direction : {"in", "out"}) {
    got_.clear();
    const FaultSpec s =
        spec(("reorder:0.1,reorder_delay:2ms,seed:7,way:" + std::string(direction)).c_str());
    a_.inject(s);
    b_.inject(s);
    for (uint32_t i = 0; i < 1000; i += 40) send(i, 40);
    wait();
    EXPECT_EQ(got_.size(), 1000U) << direction;
    EXPECT_FALSE(in_order()) << direction;
    std::sort(got_.begin(), got_.end(),
              [](const Buffer& x, const Buffer& y) { return number_of(x) < number_of(y); });
    for (uint32_t i = 0; i < got_.size(); ++i) ASSERT_EQ(number_of(got_[i]), i);
    expect_intact();
  }
  EXPECT_GT(count(InjectedFault::reordered_in), 50U);
  EXPECT_GT(count(InjectedFault::reordered_out), 50U);
}

TEST_F(FaultyUdp, DelayedOnesComeInOrderAndNotBefore) {
  constexpr Duration kDelay = 20ms;
  for (const char* direction : {"in", "out"}) {
    got_.clear();
    const FaultSpec s =
        spec(("delay:20ms,jitter:5ms,seed:8,way:" + std::string(direction)).c_str());
    a_.inject(s);
    b_.inject(s);
    const Time before = faults::now();
    for (uint32_t i = 0; i < 200; i += 40) send(i, 40);
    EXPECT_EQ(std::min(a_.held_until(), b_.held_until()).is_never(), false);
    EXPECT_GE(std::min(a_.held_until(), b_.held_until()), before + kDelay);
    while (got_.empty()) {
      a_.release_held();
      collect();
      ASSERT_LT(faults::now(), before + 10s);
    }
    EXPECT_GE(faults::now(), before + kDelay) << direction;
    wait();
    EXPECT_EQ(got_.size(), 200U) << direction;
    EXPECT_TRUE(in_order()) << direction;
    expect_intact();
  }
}

// What is held back keeps what the kernel said of it.
TEST_F(FaultyUdp, WordsOfTheKernelStayWithTheirDatagram) {
  b_.inject(spec("delay:1ms"));
  Buffer data = numbered(1);
  const IoVec piece{data.data(), data.size()};
  a_.send({.to = &to_, .from = kLoopback, .tos = 0x2e << 2, .pieces = {&piece, 1}}, segmentation_);
  Buffer place(65'536);
  UdpSocket::Received r;
  const Time end = faults::now() + 10s;
  do {
    r = b_.receive(place);
  } while (r.would_block && faults::now() < end);
  EXPECT_EQ(r.bytes, kSize);
  EXPECT_EQ(r.segment, kSize);
  EXPECT_EQ(r.from.gid(), kLoopback);
  EXPECT_EQ(r.from.port(), a_.local().port());
  EXPECT_EQ(r.to, kLoopback);
  EXPECT_EQ(r.tos, 0x2e << 2);
}

TEST_F(FaultyUdp, FlipsOneToThreeBits) {
  for (const char* direction : {"in", "out"}) {
    got_.clear();
    const FaultSpec s = spec(("corrupt:0.25,seed:9,way:" + std::string(direction)).c_str());
    a_.inject(s);
    b_.inject(s);
    for (uint32_t i = 0; i < 400; i += 40) send(i, 40);
    ASSERT_EQ(got_.size(), 400U);
    uint64_t damaged = 0;
    for (uint32_t i = 0; i < 400; ++i) {
      const Buffer right = numbered(i);
      int bits = 0;
      for (size_t k = 0; k < kSize; ++k) {
        bits += std::popcount(std::to_integer<unsigned>(got_[i][k] ^ right[k]));
      }
      EXPECT_LE(bits, 3);
      damaged += bits > 0 ? 1 : 0;
    }
    EXPECT_EQ(damaged, count(*direction == 'i' ? InjectedFault::corrupted_in
                                               : InjectedFault::corrupted_out));
    EXPECT_GT(damaged, 50U);
  }
}

TEST_F(FaultyUdp, EmptyDatagramsAndSingleOnesHaveAFateToo) {
  a_.inject(spec("duplicate:1"));
  b_.inject(spec("duplicate:1"));
  const auto sent = a_.send({.to = &to_, .pieces = {}}, segmentation_);
  EXPECT_EQ(sent.bytes, 0U);
  EXPECT_FALSE(sent.would_block);
  Buffer place(100);
  int came = 0;
  for (auto r = b_.receive(place); !r.would_block; r = b_.receive(place)) {
    EXPECT_EQ(r.bytes, 0U);
    ++came;
  }
  EXPECT_EQ(came, 4);
  EXPECT_EQ(count(InjectedFault::datagrams_out), 1U);
}

// More than a path may hold: what comes then is lost, and counted apart.
TEST_F(FaultyUdp, HoldsBackSoMuchAndNoMore) {
  a_.inject(spec("delay:60s,way:out"));
  Buffer data = pattern(60'000, 1);
  const IoVec piece{data.data(), data.size()};
  for (int i = 0; i < 1200; ++i) {
    ASSERT_EQ(a_.send({.to = &to_, .pieces = {&piece, 1}}, segmentation_).bytes, data.size());
  }
  const uint64_t over = count(InjectedFault::overflowed_out);
  EXPECT_EQ(over, 1200 - (64 << 20) / 60'000);
}

// A kernel without room. A datagram socket of the UNIX domain has one, as long as its peer reads
// nothing; in all else it serves as well here.
TEST_F(FaultyUdp, WhatTheKernelHasNoRoomForIsNotDecidedTwice) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  UdpSocket a{Fd{ends[0]}, 1 << 20};
  UdpSocket b{Fd{ends[1]}, 1 << 20};
  a.inject(spec("loss:0.3,duplicate:0.1,seed:11"));
  Segmentation never;
  never.failed();
  Address nowhere;  // the pair knows where to
  constexpr uint32_t kAll = 8000;
  bool was_full = false;
  for (uint32_t next = 0; next < kAll;) {
    Buffer train;
    for (uint32_t i = next; i < std::min(next + 40, kAll); ++i) {
      const Buffer d = numbered(i);
      train.insert(train.end(), d.begin(), d.end());
    }
    const IoVec piece{train.data(), train.size()};
    const auto sent = a.send({.to = &nowhere, .segment = kSize, .pieces = {&piece, 1}}, never);
    ASSERT_EQ(sent.error, 0);
    ASSERT_EQ(sent.bytes % kSize, 0U);
    next += static_cast<uint32_t>(sent.bytes / kSize);
    was_full = was_full || sent.would_block;
    EXPECT_EQ(sent.would_block && sent.bytes == train.size(), false);
    if (sent.would_block) collect(b);
  }
  EXPECT_TRUE(was_full);
  const Time end = faults::now() + 10s;
  while (!a.held_until().is_never() && faults::now() < end) {
    a.release_held();
    collect(b);
  }
  collect(b);
  EXPECT_EQ(count(InjectedFault::datagrams_out), kAll);
  EXPECT_EQ(got_.size(),
            kAll - count(InjectedFault::lost_out) + count(InjectedFault::duplicated_out));
  EXPECT_EQ(count(InjectedFault::unsent), 0U);
  EXPECT_TRUE(in_order());
  expect_intact();
}

TEST_F(FaultyUdp, NothingToDoIsNoFaults) {
  a_.inject(spec("split:1,seed:4"));
  send(0, 5);
  EXPECT_EQ(got_.size(), 5U);
  EXPECT_EQ(count(InjectedFault::datagrams_out), 0U);
  EXPECT_TRUE(a_.held_until().is_never());
}

}  // namespace
}  // namespace weft::port
