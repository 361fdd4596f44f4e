#include "port/capture.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "tests/support/hex.h"
#include "tests/unit/port/capture_fixture.h"

namespace weft::port {
namespace {

namespace fs = std::filesystem;
using test::Buffer;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using trace::Direction;

// A packet with 40 bytes of headers, and its memory.
struct Example {
  explicit Example(uint64_t seed, size_t size = 100)
      : headers(test::pattern(40, seed)), payload(test::pattern(size, seed + 1)) {}
  trace::Packet packet() {
    piece = {payload.data(), payload.size()};
    return {.at = 1'700'000'000'123'456'789,
            .direction = Direction::out,
            .headers = headers,
            .payload = {&piece, 1},
            .kept = payload.size(),
            .size = payload.size()};
  }
  Buffer bytes() const { return test::join({headers, payload}); }
  Buffer headers;
  Buffer payload;
  IoVec piece{};
};

class CaptureTest : public CaptureFixture {
 protected:
  Capture capture(const std::string& name, uint64_t most = 1 << 20) {
    return Capture{{.pattern = path(name), .most = most}};
  }
};

TEST(CaptureName, EachPercentPIsTheProcess) {
  EXPECT_EQ(capture_name("t.pcapng", 12), "t.pcapng");
  EXPECT_EQ(capture_name("/a/%p/t-%p.%q%", 12), "/a/12/t-12.%q%");
}

TEST_F(CaptureTest, NoFileBeforeTheFirstPacket) {
  { const Capture c = capture("t.pcapng"); }
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(CaptureTest, APacketIsInTheFileAtOnce) {
  Capture c = capture("t.pcapng");
  Example one{1, 3};
  Example two{2, 70'000};
  c.packet(one.packet());
  EXPECT_THAT(read("t.pcapng").packets, ElementsAre(one.bytes()));
  c.packet(two.packet());
  const File f = read("t.pcapng");
  EXPECT_THAT(f.packets, ElementsAre(one.bytes(), two.bytes()));
  EXPECT_TRUE(f.whole);
  EXPECT_EQ(f.times[0], 1'700'000'000'123'456'789);
}

TEST_F(CaptureTest, ManyPiecesAndLessThanTheyHold) {
  Capture c = capture("t.pcapng");
  Example e{1, 3000};
  std::vector<IoVec> pieces;
  for (std::byte& b : e.payload) pieces.push_back({&b, 1});  // more than writev(2) takes at once
  trace::Packet p = e.packet();
  p.payload = pieces;
  p.kept = 2500;
  c.packet(p);
  e.payload.resize(2500);
  EXPECT_THAT(read("t.pcapng").packets, ElementsAre(e.bytes()));
}

TEST_F(CaptureTest, OnlyTheOwnerMayRead) {
  const mode_t before = ::umask(0);
  Capture c = capture("t.pcapng");
  c.packet(Example{1}.packet());
  ::umask(before);
  struct stat s {};
  ASSERT_EQ(::stat(path("t.pcapng").c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 07777, 0600U);
}

TEST_F(CaptureTest, AFileThatIsThereStaysAsItIs) {
  write("t.pcapng", "of yesterday");
  write("t-2.pcapng", "of today");
  Capture c = capture("t.pcapng");
  Example e{1};
  c.packet(e.packet());
  EXPECT_EQ(text("t.pcapng"), "of yesterday");
  EXPECT_EQ(text("t-2.pcapng"), "of today");
  EXPECT_THAT(read("t-3.pcapng").packets, ElementsAre(e.bytes()));
}

TEST_F(CaptureTest, TheNumberGoesInFrontOfTheExtension) {
  fs::create_directory(path("a.b"));
  write("a.b/trace", "");
  write(".hidden", "");
  Capture{{.pattern = path("a.b/trace")}}.packet(Example{1}.packet());
  Capture{{.pattern = path(".hidden")}}.packet(Example{1}.packet());
  EXPECT_TRUE(fs::exists(path("a.b/trace-2")));
  EXPECT_TRUE(fs::exists(path(".hidden-2")));
}

// Whoever may write to the folder must not choose what is written to.
TEST_F(CaptureTest, ASymbolicLinkIsNotFollowed) {
  write("victim", "precious");
  fs::create_symlink(path("victim"), path("t.pcapng"));
  fs::create_symlink(path("not there yet"), path("t-2.pcapng"));
  Capture c = capture("t.pcapng");
  c.packet(Example{1}.packet());
  EXPECT_EQ(text("victim"), "precious");
  EXPECT_FALSE(fs::exists(path("not there yet")));
  EXPECT_THAT(read("t-3.pcapng").packets, SizeIs(1));
}

TEST_F(CaptureTest, AFolderThatIsNotThereIsSaidOnce) {
  Capture c = capture("no/t.pcapng");
  ::testing::internal::CaptureStderr();
  c.packet(Example{1}.packet());
  c.packet(Example{1}.packet());
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, ::testing::HasSubstr("there will be no trace: " + path("no/t.pcapng")));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

TEST_F(CaptureTest, EndsAtItsSizeAndSaysSo) {
  constexpr uint64_t kMost = 900;  // of which 104 are the head's
  Capture c = capture("t.pcapng", kMost);
  Example e{1, 200};
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 10; ++i) c.packet(e.packet());
  const std::string said = ::testing::internal::GetCapturedStderr();
  const File f = read("t.pcapng");
  EXPECT_THAT(f.packets, ElementsAre(e.bytes(), e.bytes()));
  EXPECT_TRUE(f.whole);
  EXPECT_LE(fs::file_size(path("t.pcapng")), kMost);
  EXPECT_THAT(said, ::testing::HasSubstr("is full"));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

// A full disk: the block that was begun is taken back, so that the file stays readable.
TEST_F(CaptureTest, WhatCannotBeWrittenLeavesWholeBlocks) {
  (void)folder();  // one for both processes
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    Capture c = capture("t.pcapng");
    const rlimit most{.rlim_cur = 900, .rlim_max = 900};
    ::setrlimit(RLIMIT_FSIZE, &most);
    for (int i = 0; i < 10; ++i) c.packet(Example{1, 200}.packet());
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  const File f = read("t.pcapng");
  EXPECT_THAT(f.packets, ElementsAre(Example{1, 200}.bytes(), Example{1, 200}.bytes()));
  EXPECT_TRUE(f.whole);
}

// The kernel would end the process by SIGXFSZ.
TEST_F(CaptureTest, StopsBeforeTheLimitForFiles) {
  (void)folder();
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(::open("/dev/null", O_WRONLY), STDERR_FILENO);  // it may be a file, too
    const rlimit most{.rlim_cur = 900, .rlim_max = 900};
    ::setrlimit(RLIMIT_FSIZE, &most);
    Capture c = capture("t.pcapng");
    for (int i = 0; i < 10; ++i) c.packet(Example{1, 200}.packet());
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  const File f = read("t.pcapng");
  EXPECT_THAT(f.packets, ElementsAre(Example{1, 200}.bytes(), Example{1, 200}.bytes()));
  EXPECT_TRUE(f.whole);
}

TEST_F(CaptureTest, PayloadThatIsUnmappedMeanwhileIsLeftOut) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  void* memory = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(::munmap(memory, page), 0);
  Capture c = capture("t.pcapng");
  Example before{1};
  Example after{3};
  Example lost{2};
  const IoVec pieces[] = {{lost.payload.data(), 60}, {memory, 40}};
  trace::Packet p = lost.packet();
  p.payload = pieces;
  c.packet(before.packet());
  c.packet(p);
  c.packet(after.packet());
  const File f = read("t.pcapng");
  EXPECT_THAT(f.packets, ElementsAre(before.bytes(), lost.headers, after.bytes()));
  EXPECT_TRUE(f.whole);
}

TEST_F(CaptureTest, ThreadsWriteWholePackets) {
  Capture c = capture("t.pcapng", 1 << 30);
  constexpr int kEach = 200;
  const auto work = [&c](uint64_t seed) {
    Example e{seed, 1000 + seed};
    for (int i = 0; i < kEach; ++i) c.packet(e.packet());
  };
  std::thread one{work, 1};
  std::thread two{work, 2};
  one.join();
  two.join();
  const File f = read("t.pcapng");
  EXPECT_TRUE(f.whole);
  EXPECT_EQ(std::count(f.packets.begin(), f.packets.end(), Example(1, 1001).bytes()), kEach);
  EXPECT_EQ(std::count(f.packets.begin(), f.packets.end(), Example(2, 1002).bytes()), kEach);
}

TEST_F(CaptureTest, AChildDoesNotTouchItsParentsFile) {
  Capture c = capture("t-%p.pcapng");
  c.packet(Example{1}.packet());
  const pid_t child = ::fork();
  if (child == 0) {
    c.packet(Example{2}.packet());
    ::_exit(c.claim({}, {}) ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "a child records no connection of its parent";
  c.packet(Example{3}.packet());
  const std::string name = "t-" + std::to_string(::getpid()) + ".pcapng";
  EXPECT_THAT(files(), ElementsAre(name));
  EXPECT_THAT(read(name).packets, ElementsAre(Example{1}.bytes(), Example{3}.bytes()));
}

TEST_F(CaptureTest, AKilledProcessLeavesAllThatItHasMoved) {
  (void)folder();  // one for both processes
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    Capture c = capture("t.pcapng", 1 << 30);
    for (uint64_t i = 0; i < 50; ++i) c.packet(Example{i, 5000}.packet());
    (void)!::write(ready[1], "x", 1);
    ::pause();
  }
  char x = 0;
  ASSERT_EQ(::read(ready[0], &x, 1), 1);
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  const File f = read("t.pcapng");
  EXPECT_TRUE(f.whole);
  ASSERT_THAT(f.packets, SizeIs(50));
  for (uint64_t i = 0; i < 50; ++i) EXPECT_EQ(f.packets[i], Example(i, 5000).bytes()) << i;
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(CaptureTest, OfTwoEndsInOneProcessOneIsRecorded) {
  Capture c = capture("t.pcapng");
  const trace::Endpoint a{Gid::from_ipv4(0x7f000001), 1};
  const trace::Endpoint b{Gid::from_ipv4(0x7f000001), 2};
  EXPECT_TRUE(c.claim(a, b));
  EXPECT_FALSE(c.claim(b, a));
  EXPECT_TRUE(c.claim(a, a)) << "a socket that is connected with itself";
  c.release(a, b);
  EXPECT_TRUE(c.claim(b, a));
}

TEST_F(CaptureTest, TheProcessHasOneWhereTheOptionIsSet) {
  set_trace_for_death_test("%p.pcapng");
  ::setenv("WEFT_TRACE_SNAP", "77", 1);
  EXPECT_EXIT(
      {
        Capture* mine = Capture::of_process();
        const bool once = mine != nullptr && mine == Capture::of_process() && mine->keep() == 77;
        if (once) mine->packet(Example{1}.packet());
        const pid_t child = ::fork();
        if (child == 0) {
          Capture* own = Capture::of_process();
          if (own != nullptr && own != mine) own->packet(Example{2}.packet());
          ::_exit(0);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        std::exit(once && status == 0 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
  ::unsetenv("WEFT_TRACE");
  ::unsetenv("WEFT_TRACE_SNAP");
  ASSERT_THAT(files(), SizeIs(2)) << "the child's own";
  std::vector<Buffer> packets;
  for (const std::string& name : files()) {
    for (const Buffer& p : read(name).packets) packets.push_back(p);
  }
  EXPECT_THAT(packets, ::testing::UnorderedElementsAre(Example{1}.bytes(), Example{2}.bytes()));
}

}  // namespace
}  // namespace weft::port
