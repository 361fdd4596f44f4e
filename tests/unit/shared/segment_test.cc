#include "shared/segment.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cstring>
#include <thread>

#include "tests/unit/shared/connection.h"
#include "tests/unit/shared/two_ends.h"

namespace weft::shared {
namespace {

using stats::SameHostRefusal;
constexpr uint64_t kHere = 4711;

std::optional<SameHostRefusal> refusal(const wire::HostOffer& offer, uint64_t where = kHere) {
  auto joined = Segment::join(offer, where);
  if (joined.ok()) return {};
  return joined.error();
}

class SegmentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = Segment::make();
    ASSERT_TRUE(made.ok());
    segment.emplace(std::move(*made));
    segment->belongs_to(connection.passive);
    offer = segment->offer(kHere);
  }
  // By the other end of the connection.
  Segment joined_here() {
    auto joined = Segment::join(offer, kHere);
    EXPECT_TRUE(joined.ok());
    joined->belongs_to(connection.active);
    return std::move(*joined);
  }
  // The offer of another descriptor.
  wire::HostOffer of(const port::Fd& fd) const {
    wire::HostOffer o = offer;
    o.descriptor = static_cast<uint32_t>(fd.get());
    return o;
  }
  size_t size() const {
    struct stat s {};
    EXPECT_EQ(::fstat(static_cast<int>(offer.descriptor), &s), 0);
    return static_cast<size_t>(s.st_size);
  }
  Connection connection;
  std::optional<Segment> segment;
  wire::HostOffer offer;
};

TEST_F(SegmentTest, WhatOneEndWritesTheOtherReads) {
  Segment joined = joined_here();
  for (const bool there : {true, false}) {
    Segment& from = there ? *segment : joined;
    Segment& to = there ? joined : *segment;
    RingWriter writer{from.outgoing(), kReferFrom};
    RingReader reader{to.incoming()};
    ASSERT_TRUE(to.peer());
    reader.allow_references(*to.peer());
    const Buffer small = pattern_bytes(100, there);
    const Buffer large = pattern_bytes(100'000, 2 + there);
    const IoVec all[] = {piece(small), piece(large)};
    EXPECT_EQ(writer.write(all, kNotOwn).bytes, small.size() + large.size());
    writer.publish();
    EXPECT_TRUE(writer.refers_now());
    Buffer got(large.size());
    IoVec one = piece(got);
    EXPECT_EQ(reader.read({&one, 1}).bytes, small.size());
    EXPECT_TRUE(std::equal(small.begin(), small.end(), got.begin()));
    EXPECT_EQ(reader.read({&one, 1}).bytes, large.size());
    EXPECT_EQ(got, large);
  }
}

TEST_F(SegmentTest, TheResponderSeesWhetherSomebodyHasJoined) {
  EXPECT_FALSE(segment->joined());
  const Segment joined = joined_here();
  EXPECT_TRUE(segment->joined());
  EXPECT_TRUE(segment->peer()->can_pull());
  EXPECT_TRUE(joined.peer()->can_pull());
}

// A process may always read its own memory: whoever is told to must know that it is its own.
TEST_F(SegmentTest, WhoSaysThatItIsThisProcessHasToBe) {
  const Connection other;
  auto joined = Segment::join(offer, kHere);
  ASSERT_TRUE(joined.ok());
  EXPECT_FALSE(segment->peer()) << "of no connection";
  joined->belongs_to(other.active);
  EXPECT_FALSE(segment->peer()) << "of another one";
  EXPECT_FALSE(joined->peer());
  joined->belongs_to(connection.passive);
  EXPECT_FALSE(segment->peer()) << "the same end";
  joined->belongs_to(connection.active);
  EXPECT_TRUE(segment->peer());
  EXPECT_TRUE(joined->peer());
}

TEST(OwnEnd, AThreadIsOfThisProcess) {
  EXPECT_TRUE(is_this_process(::getpid()));
  EXPECT_FALSE(is_this_process(::getppid()));
  EXPECT_FALSE(is_this_process(0));
  int thread = 0;
  std::thread{[&] {
    thread = static_cast<int>(::syscall(SYS_gettid));
    EXPECT_TRUE(is_this_process(thread));
  }}.join();
  EXPECT_NE(thread, ::getpid());
}

// As in a container whose /proc is another's, or in none.
TEST(OwnEnd, AThreadIsOfThisProcessAlsoWithoutProc) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can cover /proc for a process";
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", "/proc", "tmpfs", 0, nullptr) != 0) {
      ::_exit(2);
    }
    bool its = false;
    bool others = true;
    std::thread{[&] {
      its = is_this_process(static_cast<int>(::syscall(SYS_gettid)));
      others = is_this_process(::getppid());
    }}.join();
    ::_exit(its && !others ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(SegmentTest, AllIsZeroButTheNonceAndThatNobodyIsAwake) {
  EXPECT_EQ(segment->outgoing().control->written, 0U);
  EXPECT_EQ(segment->incoming().control->read, 0U);
  EXPECT_EQ(segment->outgoing().control->reader_sleeps, 1U);
  EXPECT_EQ(segment->outgoing().control->reader_pulls, 0U);
  EXPECT_NE(offer.nonce, wire::HostOffer::Nonce{});
  auto other = Segment::make();
  ASSERT_TRUE(other.ok());
  EXPECT_NE(other->offer(kHere).nonce, offer.nonce);
}

TEST_F(SegmentTest, AnotherNamespaceIsRefused) {
  EXPECT_EQ(refusal(offer, kHere + 1), SameHostRefusal::network_namespace);
}

TEST_F(SegmentTest, AProcessThatIsNotThereIsRefused) {
  wire::HostOffer o = offer;
  o.pid = 0x7fffffff;
  EXPECT_EQ(refusal(o), SameHostRefusal::no_segment);
  o = offer;
  o.descriptor = 99999;
  EXPECT_EQ(refusal(o), SameHostRefusal::no_segment);
}

TEST_F(SegmentTest, AnotherNonceIsRefusedAndNobodyHasJoined) {
  wire::HostOffer o = offer;
  o.nonce[7] ^= std::byte{0x10};
  EXPECT_EQ(refusal(o), SameHostRefusal::foreign_segment);
  EXPECT_FALSE(segment->joined());
}

// Opened, each of them could hang, or change something.
TEST_F(SegmentTest, WhatIsNoFileIsNotOpened) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const port::Fd out{ends[0]};
  const port::Fd in{ends[1]};
  EXPECT_EQ(refusal(of(out)), SameHostRefusal::foreign_segment);
  const port::Fd device{::open("/dev/zero", O_RDWR | O_CLOEXEC)};
  EXPECT_EQ(refusal(of(device)), SameHostRefusal::foreign_segment);
  const port::Fd folder{::open("/", O_RDONLY | O_CLOEXEC)};
  EXPECT_EQ(refusal(of(folder)), SameHostRefusal::foreign_segment);
}

// Who can shrink it could end this process by SIGBUS.
TEST_F(SegmentTest, OneWhoseSizeIsNotSealedIsRefused) {
  for (const int seals : {0, F_SEAL_SHRINK, F_SEAL_SHRINK | F_SEAL_GROW}) {
    const port::Fd fd{::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
    ASSERT_EQ(::ftruncate(fd.get(), static_cast<off_t>(size())), 0);
    ASSERT_EQ(::pwrite(fd.get(), offer.nonce.data(), offer.nonce.size(), 0), 16);
    ASSERT_EQ(::fcntl(fd.get(), F_ADD_SEALS, seals), 0);
    EXPECT_EQ(refusal(of(fd)), SameHostRefusal::foreign_segment) << seals;
  }
}

TEST_F(SegmentTest, AnotherSizeIsRefused) {
  const port::Fd fd{::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  ASSERT_EQ(::ftruncate(fd.get(), static_cast<off_t>(size()) - 4096), 0);
  ASSERT_EQ(::pwrite(fd.get(), offer.nonce.data(), offer.nonce.size(), 0), 16);
  ASSERT_EQ(::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
  EXPECT_EQ(refusal(of(fd)), SameHostRefusal::foreign_segment);
}

TEST_F(SegmentTest, AnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const pid_t child = ::fork();
  if (child == 0) {
    const bool other = ::setgid(65534) == 0 && ::setuid(65534) == 0;
    ::_exit(other && refusal(offer) == SameHostRefusal::not_allowed ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// Root can open everything, and is another user all the same.
TEST_F(SegmentTest, RootDoesNotJoinAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  int ends[2];
  int back[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::pipe(back), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(1);
    auto own = Segment::make();
    if (!own.ok()) ::_exit(1);
    const wire::HostOffer o = own->offer(kHere);
    char done = 0;
    if (::write(ends[1], &o, sizeof o) != sizeof o || ::read(back[0], &done, 1) != 1) ::_exit(1);
    ::_exit(own->joined() ? 2 : 0);
  }
  wire::HostOffer o;
  ASSERT_EQ(::read(ends[0], &o, sizeof o), static_cast<ssize_t>(sizeof o));
  EXPECT_EQ(refusal(o), SameHostRefusal::not_allowed);
  ASSERT_EQ(::write(back[1], "x", 1), 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  for (const int fd : {ends[0], ends[1], back[0], back[1]}) ::close(fd);
}

// The signal for a file that grows too large would end the program.
TEST_F(SegmentTest, WhereFilesMayNotBeSoLargeThereIsNone) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit small{100'000, 100'000};
    if (::setrlimit(RLIMIT_FSIZE, &small) != 0) ::_exit(1);
    const auto none = Segment::make();
    ::_exit(!none.ok() && none.error().code == EFBIG ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(SegmentTest, WithoutItsDescriptorNobodyJoins) {
  segment->close_descriptor();
  EXPECT_TRUE(refusal(offer).has_value());
}

// The child of a peer bears no witness for it, and frees nothing of its parent's.
TEST_F(SegmentTest, AChildHasNoPartInIt) {
  const Segment joined = joined_here();
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    segment.reset();
    (void)::write(ends[1], "x", 1);
    ::pause();
  }
  char done = 0;
  ASSERT_EQ(::read(ends[0], &done, 1), 1);
  const PeerMemory of_child{child, offer.address, offer.nonce};
  EXPECT_FALSE(of_child.can_pull());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(segment->peer()->can_pull());
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace weft::shared
