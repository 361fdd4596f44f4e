// The counters of this process, as this and other processes read them.

#include "observe/counter_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "observe/counter_reader.h"

namespace weft::observe {
namespace {

using stats::Kind;

uint64_t value_of(std::span<const uint64_t> values, const std::string& name) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (stats::table()[i].name() == name) return values[i];
  }
  ADD_FAILURE() << "no row " << name;
  return 0;
}

Snapshot read_own() {
  auto s = read_process(0);
  EXPECT_TRUE(s.ok());
  return s.ok() ? std::move(*s) : Snapshot{};
}

std::optional<ReadError> error_of(const Result<Snapshot, ReadError>& read) {
  if (read.ok()) return std::nullopt;
  return read.error();
}

Qpn number(uint32_t i) {
  return Qpn{0x8c0100 + i};
}

TEST(CounterMemory, ShowsWhatIsCounted) {
  CounterMemory m(2, true);
  ASSERT_TRUE(m.shown());
  m.device().ports_opened.add_shared();
  m.engine(0).counters.polls.add(5);
  m.engine(1).counters.polls.add(7);
  stats::QpBlock& a = m.acquire(0, number(1));
  stats::QpBlock& b = m.acquire(1, number(2));
  a.peer.set({.address = Gid::from_ipv4(0xc0000207), .port = 18515});
  a.counters.sent(Kind::send, 11);
  b.counters.sent(Kind::send, 13);
  b.terminate({.received = true, .error = wire::term::kMpaCrc});

  const Snapshot s = read_own();
  ASSERT_EQ(s.engines.size(), 2U);
  EXPECT_EQ(value_of(s.engines[0], "polls"), 5U);
  EXPECT_EQ(value_of(s.engines[1], "polls"), 7U);
  EXPECT_EQ(value_of(s.device, "polls"), 12U);
  EXPECT_EQ(value_of(s.device, "ports_opened"), 1U);
  EXPECT_EQ(value_of(s.device, "queue_pairs_created"), 2U);
  ASSERT_EQ(s.queue_pairs.size(), 2U);
  EXPECT_EQ(s.queue_pairs[0].qpn, number(1).value());
  EXPECT_EQ(s.queue_pairs[0].engine, 0U);
  EXPECT_EQ(value_of(s.queue_pairs[0].values, "bytes_sent.send"), 11U);
  EXPECT_EQ(s.queue_pairs[0].last_terminate, 0U);
  ASSERT_TRUE(s.queue_pairs[0].peer);
  EXPECT_EQ(s.queue_pairs[0].peer->address, Gid::from_ipv4(0xc0000207));
  EXPECT_EQ(s.queue_pairs[0].peer->port, 18515);
  EXPECT_FALSE(s.queue_pairs[1].peer);
  EXPECT_EQ(s.queue_pairs[1].engine, 1U);
  EXPECT_EQ(value_of(s.queue_pairs[1].values, "bytes_sent.send"), 13U);
  EXPECT_EQ(stats::LastTerminate::unpack(s.queue_pairs[1].last_terminate).error,
            wire::term::kMpaCrc);
  EXPECT_EQ(value_of(s.engines[0], "bytes_sent.send"), 11U);
  EXPECT_EQ(value_of(s.device, "bytes_sent.send"), 24U);
}

// The sums never fall when a queue pair goes, and its place begins at 0 for the next one.
TEST(CounterMemory, QueuePairsThatGoStayInTheSums) {
  CounterMemory m(1, true);
  for (uint64_t i = 1; i <= 3; ++i) {
    stats::QpBlock& qp = m.acquire(0, number(1));
    EXPECT_EQ(qp.counters.messages_sent[0].value(), 0U);
    qp.counters.sent(Kind::send);
    EXPECT_EQ(value_of(read_own().device, "messages_sent.send"), i);
    m.release(0, qp);
    const Snapshot s = read_own();
    EXPECT_TRUE(s.queue_pairs.empty());
    EXPECT_EQ(value_of(s.engines[0], "messages_sent.send"), i);
    EXPECT_EQ(value_of(s.device, "queue_pairs_destroyed"), i);
  }
}

// More than a piece of pages, of two engines by turns, and some of them given back in between.
TEST(CounterMemory, ManyQueuePairs) {
  CounterMemory m(2, true);
  constexpr uint32_t kMany = 3000;
  std::vector<stats::QpBlock*> blocks;
  std::set<stats::QpBlock*> distinct;
  for (uint32_t i = 0; i < kMany; ++i) {
    blocks.push_back(&m.acquire(i % 2, number(i)));
    distinct.insert(blocks.back());
    blocks.back()->counters.rnr_sent.add(i);
  }
  EXPECT_EQ(distinct.size(), kMany);
  for (uint32_t i = 0; i < kMany; i += 3) m.release(i % 2, *blocks[i]);
  for (uint32_t i = 0; i < kMany; i += 3) {
    blocks[i] = &m.acquire(i % 2, number(i));
    EXPECT_TRUE(distinct.contains(blocks[i])) << "given back and taken again";
    blocks[i]->counters.rnr_sent.add(i);
  }
  const Snapshot s = read_own();
  ASSERT_EQ(s.queue_pairs.size(), kMany);
  for (uint32_t i = 0; i < kMany; ++i) {
    EXPECT_EQ(s.queue_pairs[i].qpn, number(i).value());
    EXPECT_EQ(s.queue_pairs[i].engine, i % 2);
    EXPECT_EQ(value_of(s.queue_pairs[i].values, "rnr_sent"), i);
  }
  EXPECT_EQ(value_of(s.device, "queue_pairs_hidden"), 0U);
}

// An idle queue pair has little to spend (docs/performance.md): pages come one by one.
TEST(CounterMemory, TakesNoMoreMemoryThanItNeeds) {
  CounterMemory m(1, true);
  const port::Fd file = open_counters(0);
  const auto resident = [&] {
    struct stat info {};
    EXPECT_EQ(::fstat(file.get(), &info), 0);
    return static_cast<size_t>(info.st_blocks) * 512;
  };
  EXPECT_EQ(resident(), 2 * kPage) << "the header and one engine";
  for (uint32_t i = 0; i < QpPage::kBlocks; ++i) m.acquire(0, number(i));
  EXPECT_EQ(resident(), 3 * kPage);
  m.acquire(0, number(99));
  EXPECT_EQ(resident(), 4 * kPage);
}

// What is read is what is there at one moment: here a byte is always in one of two queue pairs.
TEST(CounterMemory, ReadersSeeSumsThatOnlyGrow) {
  CounterMemory m(1, true);
  std::atomic<bool> stop{false};
  std::thread holder([&] {
    for (unsigned rounds = 1; !stop.load(); ++rounds) {
      stats::QpBlock& qp = m.acquire(0, number(1));
      for (int i = 0; i < 20; ++i) qp.counters.sent(Kind::write);
      m.release(0, qp);
      // A reader looks again when a queue pair went while it read; it may read slowly, and gives up
      // when there is never a pause.
      if (rounds % 50 == 0) std::this_thread::sleep_for(std::chrono::milliseconds{2});
    }
  });
  uint64_t before = 0;
  for (int i = 0; i < 300; ++i) {
    const uint64_t now = value_of(read_own().device, "messages_sent.write");
    EXPECT_GE(now, before);
    before = now;
  }
  stop.store(true);
  holder.join();
  EXPECT_EQ(value_of(read_own().device, "messages_sent.write"),
            20 * value_of(read_own().device, "queue_pairs_created"));
}

TEST(CounterMemory, CountsForItselfWhenItIsNotToBeShown) {
  CounterMemory m(1, false);
  EXPECT_FALSE(m.shown());
  EXPECT_FALSE(open_counters(0).valid());
  std::set<stats::QpBlock*> distinct;
  for (uint32_t i = 0; i < 100; ++i) {
    stats::QpBlock& qp = m.acquire(0, number(i));
    qp.counters.sent(Kind::send);
    distinct.insert(&qp);
  }
  EXPECT_EQ(distinct.size(), 100U);
  for (stats::QpBlock* qp : distinct) m.release(0, *qp);
  EXPECT_EQ(m.engine(0).gone.counters.messages_sent[0].value(), 100U);
  EXPECT_EQ(m.device().queue_pairs_hidden.value(), 0U);
}

// --- what the system, or the program, takes away

// Above RLIMIT_FSIZE a file that grows kills its process with SIGXFSZ.
TEST(CounterMemory, KeepsToTheLimitOnFileSizes) {
  const auto in_child = [](rlim_t limit, bool shown, uint64_t hidden) {
    const pid_t child = ::fork();
    if (child == 0) {
      const rlimit r{limit, limit};
      if (::setrlimit(RLIMIT_FSIZE, &r) != 0) _exit(1);
      CounterMemory m(1, true);
      if (m.shown() != shown) _exit(2);
      for (uint32_t i = 0; i < 60; ++i) m.acquire(0, number(i)).counters.sent(Kind::send);
      _exit(m.device().queue_pairs_hidden.value() == hidden ? 0 : 3);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    return status;
  };
  EXPECT_EQ(in_child(kPage, false, 0), 0) << "no room for a header: all in memory of its own";
  // Header, engine, and a page of 17 queue pairs: the others count for their engine.
  EXPECT_EQ(in_child(3 * kPage, true, 43), 0);
  EXPECT_EQ(in_child(RLIM_INFINITY, true, 0), 0);
}

// A program that closes what it does not know, and has another file there by now.
TEST(CounterMemory, LeavesOtherFilesAlone) {
  const pid_t child = ::fork();
  if (child == 0) {
    CounterMemory m(1, true);
    int fd = -1;
    for (int i = 3; i < 2000 && fd < 0; ++i) {
      if (::fcntl(i, F_GET_SEALS) >= 0) fd = i;
    }
    const int victim = ::memfd_create("somebody else's", MFD_ALLOW_SEALING);
    if (fd < 0 || victim < 0 || ::dup2(victim, fd) != fd) _exit(1);
    for (uint32_t i = 0; i < 100; ++i) m.acquire(0, number(i)).counters.sent(Kind::send);
    struct stat info {};
    if (::fstat(victim, &info) != 0 || info.st_size != 0 || info.st_blocks != 0) _exit(2);
    if (m.device().queue_pairs_hidden.value() != 100) _exit(3);
    _exit(m.engine(0).gone.counters.messages_sent[0].value() == 100 ? 0 : 4);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

// --- other processes

// A child that shows its counters, until it is killed.
class Child {
 public:
  explicit Child(const std::function<void()>& life) {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      life();
      (void)!::write(ready[1], "", 1);
      for (;;) ::pause();
    }
    char c;
    ::close(ready[1]);
    EXPECT_EQ(::read(ready[0], &c, 1), 1);
    ::close(ready[0]);
  }
  ~Child() { kill_now(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  pid_t pid() const { return pid_; }
  void kill_now() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
};

TEST(CounterReader, ReadsAnotherProcess) {
  Child child([] {
    auto* m = new CounterMemory(1, true);
    m->acquire(0, number(1)).counters.sent(Kind::read);
  });
  const auto s = read_process(child.pid());
  ASSERT_TRUE(s.ok());
  EXPECT_EQ(value_of(s->device, "messages_sent.read"), 1U);
  const pid_t pid = child.pid();
  child.kill_now();
  EXPECT_EQ(error_of(read_process(pid)), ReadError::none_there) << "nothing is left of it";
}

// spec/abi 7: the child of a fork has the descriptor until it closes it, and none of the numbers.
TEST(CounterReader, AForkedChildShowsNothingOfItsParents) {
  CounterMemory m(1, true);
  stats::QpBlock& qp = m.acquire(0, number(1));
  qp.counters.sent(Kind::send);
  {
    const Child before_it_closes([] {});
    EXPECT_EQ(error_of(read_process(before_it_closes.pid())), ReadError::none_there);
  }
  const Child child([&] {
    m.abandon_in_child();
    qp.counters.sent(Kind::send, 1'000'000);
    m.engine(0).counters.polls.add(1'000'000);
  });
  EXPECT_FALSE(open_counters(child.pid()).valid());
  const Snapshot s = read_own();
  EXPECT_EQ(value_of(s.device, "messages_sent.send"), 1U);
  EXPECT_EQ(value_of(s.device, "bytes_sent.send"), 0U) << "what the child counts is its own";
  EXPECT_EQ(value_of(s.device, "polls"), 0U);

  const Child with_its_own([&] {
    m.abandon_in_child();
    auto* fresh = new CounterMemory(1, true);
    fresh->engine(0).counters.polls.add(3);
  });
  const auto its = read_process(with_its_own.pid());
  ASSERT_TRUE(its.ok());
  EXPECT_EQ(value_of(its->device, "polls"), 3U);
  EXPECT_EQ(value_of(its->device, "messages_sent.send"), 0U);
}

// --- files that are none

port::Fd memory_with(const std::string& bytes, int seals) {
  port::Fd file{::memfd_create("test", MFD_ALLOW_SEALING | MFD_CLOEXEC)};
  EXPECT_EQ(::write(file.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  if (seals != 0) {
    EXPECT_EQ(::fcntl(file.get(), F_ADD_SEALS, seals), 0);
  }
  return file;
}

// Whoever can be read could have written anything.
TEST(CounterReader, RefusesWhatIsNoCounterMemory) {
  CounterMemory m(1, true);
  const port::Fd good = open_counters(0);
  std::string image(4 * kPage, '\0');
  ASSERT_EQ(::pread(good.get(), image.data(), image.size(), 0), static_cast<ssize_t>(image.size()));
  ASSERT_TRUE(read_counters(memory_with(image, F_SEAL_SHRINK)).ok());

  EXPECT_FALSE(read_counters(memory_with(image, 0)).ok()) << "it might become shorter";
  EXPECT_FALSE(read_counters(memory_with("", F_SEAL_SHRINK)).ok());
  EXPECT_FALSE(read_counters(memory_with(image.substr(0, 64), F_SEAL_SHRINK)).ok());
  EXPECT_FALSE(read_counters(memory_with(image.substr(0, kPage), F_SEAL_SHRINK)).ok())
      << "the engine is missing";
  EXPECT_FALSE(read_counters(port::Fd{}).ok());
  EXPECT_FALSE(read_counters(good, static_cast<uint32_t>(getpid()) + 1).ok());

  const auto with = [&](size_t at, uint32_t value) {
    std::string changed = image;
    std::memcpy(changed.data() + at, &value, sizeof value);
    return read_counters(memory_with(changed, F_SEAL_SHRINK));
  };
  EXPECT_EQ(error_of(with(offsetof(CounterHeader, magic), 7)), ReadError::none_there);
  EXPECT_EQ(error_of(with(offsetof(CounterHeader, layout), kLayout + 1)), ReadError::other_version);
  EXPECT_EQ(error_of(with(offsetof(CounterHeader, fingerprint), 7)), ReadError::other_version);
  // The image has room for three engines, or for one and two pages of queue pairs.
  EXPECT_TRUE(with(offsetof(CounterHeader, engines), 3).ok());
  EXPECT_TRUE(with(offsetof(CounterHeader, qp_pages), 2).ok());
  for (const uint32_t n : {4U, 100U, 0x10000000U, 0xffffffffU}) {
    EXPECT_EQ(error_of(with(offsetof(CounterHeader, engines), n)), ReadError::none_there) << n;
    EXPECT_EQ(error_of(with(offsetof(CounterHeader, qp_pages), n)), ReadError::none_there) << n;
  }
}

// An owner that was stopped in the middle of a retirement has an odd number there: readers do not
// wait for ever, and do not take the half that has moved for all.
TEST(CounterReader, AnOddSequenceEndsToo) {
  CounterMemory m(1, true);
  m.engine(0).counters.polls.add(4);
  m.engine(0).sequence = 7;
  EXPECT_EQ(error_of(read_process(0)), ReadError::never_still) << "no guess";
  m.engine(0).sequence = 8;
  EXPECT_EQ(value_of(read_own().device, "polls"), 4U);
}

}  // namespace
}  // namespace weft::observe
