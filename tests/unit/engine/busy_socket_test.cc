// A socket that is busy alone leaves the epoll set while the program polls it (docs/design/19), and
// is heard all the same: by the program, by the helper when the program stops, by threads that
// sleep.

#include <dirent.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <string>
#include <thread>

#include "engine/engine.h"

namespace {

// The user's watches are used up (epoll(7), max_user_watches).
std::atomic<bool> watches_used_up{false};

}  // namespace

extern "C" int epoll_ctl(int set, int operation, int fd, epoll_event* event) noexcept {
  if (operation == EPOLL_CTL_ADD && watches_used_up.load()) {
    errno = ENOSPC;
    return -1;
  }
  using Control = int(int, int, int, epoll_event*);
  static auto* const control = reinterpret_cast<Control*>(::dlsym(RTLD_NEXT, "epoll_ctl"));
  return control(set, operation, fd, event);
}

namespace weft::engine {
namespace {

using namespace std::chrono_literals;

// Reads what comes, when it is told to and when it is asked.
class Reader final : public EventHandler {
 public:
  explicit Reader(int socket) : fd(socket) {}
  void on_ready(Token& token, bool readable, bool writable) override {
    if (readable) (void)read();
    if (!writable) return;
    token.runtime().want_write(token, *this, false);
    has_written = true;
  }
  void on_broken(Token&) override { is_broken = true; }
  bool try_receive(Token&) override {
    ++asked;
    return read();
  }
  bool tries_receive() const override { return true; }
  void on_deadline(Token&) override {}
  void on_doorbell(Token&) override {}
  void abandon_in_child() override {}
  bool read() {
    char bytes[64];
    const ssize_t n = ::recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n <= 0) return false;
    got += static_cast<int>(n);
    return true;
  }
  const int fd;
  std::atomic<int> got{0};
  std::atomic<int> asked{0};  // without epoll
  std::atomic<bool> has_written{false};
  std::atomic<bool> is_broken{false};
};

// Is the descriptor in any epoll set of this process? As the kernel says, proc(5).
bool watched(int fd) {
  DIR* dir = ::opendir("/proc/self/fdinfo");
  if (dir == nullptr) return false;
  bool found = false;
  while (const dirent* entry = ::readdir(dir)) {
    std::ifstream file(std::string("/proc/self/fdinfo/") + entry->d_name);
    for (std::string word; file >> word;) {
      int target = -1;
      if (word == "tfd:" && file >> target && target == fd) found = true;
    }
  }
  ::closedir(dir);
  return found;
}

class BusySocketTest : public ::testing::Test {
 protected:
  BusySocketTest() {
    auto e = Engine::create(0);
    EXPECT_TRUE(e.ok());
    if (e.ok()) engine = std::move(*e);
    for (Pair& p : pairs) {
      EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p.ends), 0);
      auto reader = std::make_unique<Reader>(p.ends[0]);
      p.reader = reader.get();
      Hold h = engine->hold();
      engine->add(h.token(), std::move(reader), p.ends[0], true, false);
    }
  }
  ~BusySocketTest() override {
    engine.reset();
    for (Pair& p : pairs) {
      ::close(p.ends[0]);
      ::close(p.ends[1]);
    }
  }
  struct Pair {
    int ends[2] = {-1, -1};
    Reader* reader = nullptr;
    void write() { ASSERT_EQ(::send(ends[1], "x", 1, 0), 1); }
  };
  // One message after the other, each polled for, until the first socket was seen out of the set.
  // The look itself takes time, in which the program does not poll: the helper may have put it back
  // by now.
  void make_busy() {
    bool left = false;
    for (int i = 0; i < 20'000 && !left; ++i) {
      for (int k = 0; k < 100; ++k) {
        const int before = pairs[0].reader->got;
        pairs[0].write();
        while (pairs[0].reader->got == before) engine->progress();
      }
      left = !watched(pairs[0].ends[0]);
    }
    ASSERT_TRUE(left);
  }
  // Without a turn of this thread's.
  void await_unpolled(Pair& p, int more) {
    const int wanted = p.reader->got + more;
    p.write();
    for (int i = 0; i < 20'000 && p.reader->got < wanted; ++i) ::usleep(1000);
    EXPECT_EQ(p.reader->got, wanted);
  }

  std::unique_ptr<Engine> engine;
  Pair pairs[2];
};

TEST_F(BusySocketTest, TheHelperHearsItWhenTheProgramStopsPolling) {
  make_busy();
  await_unpolled(pairs[0], 1);
  EXPECT_TRUE(watched(pairs[0].ends[0]));
}

// A program that goes on polling when nothing comes any more asks the set, which has the socket
// again, and changes nothing there from then on.
TEST_F(BusySocketTest, ItComesBackOnceWhenItIsSilent) {
  make_busy();
  for (const Time end = Engine::clock() + 5ms; Engine::clock() < end;) engine->progress();
  engine->progress();
  EXPECT_TRUE(watched(pairs[0].ends[0]));
  const uint64_t changes = engine->counters().epoll_ctl_calls.value();
  for (int i = 0; i < 1000; ++i) engine->progress();
  EXPECT_EQ(engine->counters().epoll_ctl_calls.value(), changes);
}

TEST_F(BusySocketTest, OthersAreHeardMeanwhile) {
  make_busy();
  pairs[1].write();
  while (pairs[1].reader->got == 0) engine->progress();
  // And the two together, for neither is alone any more.
  for (int i = 1; i <= 100; ++i) {
    const int first = pairs[0].reader->got;
    pairs[0].write();
    pairs[1].write();
    while (pairs[0].reader->got == first || pairs[1].reader->got <= i) engine->progress();
  }
}

TEST_F(BusySocketTest, ASleeperHearsIt) {
  make_busy();
  const port::Fd event{::eventfd(0, EFD_CLOEXEC)};
  const int before = pairs[0].reader->got;
  std::thread writer([&] {
    ::usleep(20'000);  // most likely while the other one sleeps
    pairs[0].write();
  });
  EXPECT_EQ(engine->wait(event.get(), [&] { return pairs[0].reader->got > before; }), 0);
  writer.join();
}

TEST_F(BusySocketTest, ItStaysInTheSetForThoseWhoAreAboutToSleep) {
  make_busy();
  engine->expect_sleeper();
  EXPECT_TRUE(watched(pairs[0].ends[0]));
  for (int i = 0; i < 1000; ++i) {
    const int before = pairs[0].reader->got;
    pairs[0].write();
    while (pairs[0].reader->got == before) engine->progress();
  }
  EXPECT_TRUE(watched(pairs[0].ends[0]));
  engine->forget_sleeper();
}

TEST_F(BusySocketTest, InterestAndEndAreKept) {
  make_busy();
  Reader& reader = *pairs[0].reader;
  {
    Hold h = engine->hold();
    engine->want_read(h.token(), reader, false);
  }
  EXPECT_TRUE(watched(pairs[0].ends[0])) << "its end must be heard";
  {
    Hold h = engine->hold();
    engine->want_read(h.token(), reader, true);
  }
  make_busy();
  {
    Hold h = engine->hold();
    engine->remove(h.token(), reader);
  }
  EXPECT_FALSE(watched(pairs[0].ends[0]));
  pairs[0].write();
  for (int i = 0; i < 1000; ++i) engine->progress();
}

TEST_F(BusySocketTest, ItIsNotAskedDirectlyWhileItsOutputWaitsForRoom) {
  Pair& busy = pairs[0];
  while (::send(busy.ends[0], "12345678", 8, MSG_DONTWAIT) > 0) {
  }
  make_busy();
  {
    Hold h = engine->hold();
    engine->want_write(h.token(), *busy.reader, true);
  }
  const auto asked = [&] {
    const int before = busy.reader->asked;
    for (int i = 0; i < 1000; ++i) {
      const int got = busy.reader->got;
      busy.write();
      while (busy.reader->got == got) engine->progress();
    }
    return busy.reader->asked - before;
  };
  EXPECT_EQ(asked(), 0) << "epoll tells of what comes";
  {
    Hold h = engine->hold();
    engine->want_write(h.token(), *busy.reader, false);
  }
  EXPECT_GT(asked(), 0);
}

// A socket that has left the set, and finds no room in it when it comes back.
class LeftOutTest : public BusySocketTest {
 protected:
  LeftOutTest() {
    watches_used_up = true;
    make_busy();
    engine->progress(Engine::Ask::all);
    EXPECT_FALSE(watched(busy.ends[0]));
  }
  ~LeftOutTest() override { watches_used_up = false; }

  Pair& busy = pairs[0];
};

TEST_F(LeftOutTest, TheHelperLooksAfterItWhileTheProgramDoesNotPoll) {
  for (int i = 0; i < 3; ++i) await_unpolled(busy, 1);
  EXPECT_FALSE(watched(busy.ends[0]));
}

TEST_F(LeftOutTest, TheHelperLooksAfterItForOneThatMaySleep) {
  engine->expect_sleeper();
  for (int i = 0; i < 3; ++i) await_unpolled(busy, 1);
  engine->forget_sleeper();
}

TEST_F(LeftOutTest, ASleeperIsWokenForIt) {
  const port::Fd event{::eventfd(0, EFD_CLOEXEC)};
  for (int i = 0; i < 3; ++i) {
    const int before = busy.reader->got;
    std::thread writer([&] {
      ::usleep(20'000);  // most likely while the other one sleeps
      busy.write();
      // As a completion's channel does. The helper has read the byte by then, or the sleeper.
      for (int k = 0; k < 20'000 && busy.reader->got == before; ++k) ::usleep(1000);
      const uint64_t one = 1;
      EXPECT_EQ(::write(event.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
    });
    EXPECT_EQ(engine->wait(event.get(), [&] { return busy.reader->got > before; }), 0);
    writer.join();
  }
}

TEST_F(LeftOutTest, WhoPollsHearsItBesideOthers) {
  for (int i = 0; i < 100; ++i) {
    const int first = busy.reader->got;
    const int second = pairs[1].reader->got;
    busy.write();
    pairs[1].write();
    while (busy.reader->got == first || pairs[1].reader->got == second) engine->progress();
  }
}

TEST_F(LeftOutTest, RoomToSendIsHeard) {
  {
    Hold h = engine->hold();
    engine->want_write(h.token(), *busy.reader, true);
  }
  while (!busy.reader->has_written) engine->progress();
}

TEST_F(LeftOutTest, ItsEndIsHeardByWhoDoesNotRead) {
  {
    Hold h = engine->hold();
    engine->want_read(h.token(), *busy.reader, false);
  }
  ::shutdown(busy.ends[0], SHUT_RDWR);
  while (!busy.reader->is_broken) engine->progress();
}

TEST_F(LeftOutTest, ItComesBackWhereThereIsRoomAgain) {
  watches_used_up = false;
  await_unpolled(busy, 1);
  (void)engine->hold();  // the helper's turn is over
  EXPECT_TRUE(watched(busy.ends[0]));
}

}  // namespace
}  // namespace weft::engine
