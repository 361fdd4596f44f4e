#include "shared/peer_memory.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cerrno>

#include "tests/unit/shared/two_ends.h"

namespace weft::shared {
namespace {

constexpr size_t kSize = 3 * 4096;

// A process that waits, with a copy of what this one had when it began.
class Child {
 public:
  explicit Child(bool changes_witness = false) {
    pid = ::fork();
    if (pid != 0) return;
    if (changes_witness) const_cast<wire::HostOffer::Nonce&>(kNonce)[0] = std::byte{};
    for (;;) ::pause();
  }
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  void end() {
    if (pid <= 0) return;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    gone = pid;
    pid = -1;
  }
  PeerMemory memory() const { return {pid, reinterpret_cast<uintptr_t>(kNonce.data()), kNonce}; }
  pid_t pid;
  pid_t gone = -1;
};

TEST(PeerMemory, ComesFromAnotherProcess) {
  Buffer there = pattern_bytes(kSize, 1);
  const Buffer before = there;
  const Child child;
  there.assign(kSize, std::byte{});  // in this process only
  Buffer here(kSize);
  const IoVec to = piece(here);
  EXPECT_TRUE(child.memory().can_pull());
  const auto pulled = child.memory().pull({&to, 1}, reinterpret_cast<uintptr_t>(there.data()));
  EXPECT_EQ(pulled.bytes, kSize);
  EXPECT_EQ(here, before);
}

TEST(PeerMemory, AProcessThatIsGoneIsNone) {
  Child child;
  const PeerMemory memory = child.memory();
  child.end();
  EXPECT_FALSE(memory.can_pull());
  std::byte b{};
  const IoVec to{&b, 1};
  EXPECT_EQ(memory.pull({&to, 1}, reinterpret_cast<uintptr_t>(&b)).error, ESRCH);
}

TEST(PeerMemory, NothingOfAProcessWithoutTheNonceCounts) {
  const Buffer there = pattern_bytes(100, 1);
  const PeerMemory other{::getpid(), reinterpret_cast<uintptr_t>(there.data()), kNonce};
  EXPECT_FALSE(other.can_pull());
  Buffer here(100);
  const IoVec to = piece(here);
  const auto pulled = other.pull({&to, 1}, reinterpret_cast<uintptr_t>(there.data()));
  EXPECT_EQ(pulled.bytes, 0U);
  EXPECT_EQ(pulled.error, ESRCH);
}

TEST(PeerMemory, WhereTheNonceIsUnmappedItIsNotThatProcess) {
  const PeerMemory other{::getpid(), 4096, kNonce};
  EXPECT_FALSE(other.can_pull());
  EXPECT_EQ(other.pull({}, 4096).error, ESRCH);
}

TEST(PeerMemory, WhatCanBeReachedOfItComes) {
  void* const at =
      ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(at, MAP_FAILED);
  const Buffer there = pattern_bytes(kSize, 3);
  std::copy(there.begin(), there.end(), static_cast<std::byte*>(at));
  ASSERT_EQ(::mprotect(static_cast<std::byte*>(at) + 4096, 2 * 4096, PROT_NONE), 0);
  Buffer here(kSize);
  const IoVec to = piece(here);
  const auto address = reinterpret_cast<uintptr_t>(at);
  EXPECT_EQ(this_process().pull({&to, 1}, address).bytes, 4096U);
  EXPECT_TRUE(std::equal(there.begin(), there.begin() + 4096, here.begin()));
  EXPECT_EQ(this_process().pull({&to, 1}, address + 4096).error, EFAULT);
  ::munmap(at, kSize);
}

}  // namespace
}  // namespace weft::shared
