// Who of a ring's receiver and consumers lives, and how the others hear of it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <thread>
#include <utility>

#include "kit/failure.h"
#include "ring_under_test.h"
#include "stream/ring.h"

namespace weft::stream {
namespace {

TEST(RingLives, ConsumersThatDieLetGo) {
  const std::string name = own_name("die");
  Ring ring{spec_of(name, false)};
  BlockStore& store = ring.stream(0);
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe(ready.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    weft_stream stream{};
    weft_stream_ring* seen = weft_stream_open(name.c_str());
    if (seen == nullptr || weft_stream_attach(seen, 0, &stream) != 0) ::_exit(1);
    (void)!::write(ready[1], "r", 1);
    for (;;) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  store.publish(0, {0xff}, 8);
  // It lives, whatever its number says here: that of nobody, or of another process.
  for (const uint32_t number : {0x7fff'fff0U, static_cast<uint32_t>(child)}) {
    store.state().consumer = number;
    store.look_after_consumer();
    EXPECT_TRUE(store.has_consumer());
    EXPECT_FALSE(store.is_free(4));
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  // A process of that number lives here.
  store.state().consumer = static_cast<uint32_t>(::getpid());
  store.look_after_consumer();
  EXPECT_FALSE(store.has_consumer());
  EXPECT_TRUE(store.is_free(4));
  ::close(ready[0]);
  ::close(ready[1]);
}

// A consumer in a process of its own, and a child that it forked: the child does what it is told.
class ConsumerWithChild {
 public:
  explicit ConsumerWithChild(const std::string& name) {
    if (::pipe(orders_.data()) != 0 || ::pipe(answers_.data()) != 0) {
      throw kit::system_failure("pipe");
    }
    consumer_ = ::fork();
    if (consumer_ == 0) consume(name);
    ::close(orders_[0]);
    ::close(answers_[1]);
    if (answer() != 'r') throw kit::Failure{"the consumer does not attach"};
  }
  ConsumerWithChild(const ConsumerWithChild&) = delete;
  ConsumerWithChild& operator=(const ConsumerWithChild&) = delete;
  ~ConsumerWithChild() {
    kill();
    ::close(orders_[1]);  // the child reads this as the end
    EXPECT_EQ(answer(), 0);
    ::close(answers_[0]);
  }
  void kill() {
    if (consumer_ <= 0) return;
    ::kill(consumer_, SIGKILL);
    ::waitpid(std::exchange(consumer_, 0), nullptr, 0);
  }
  char child_does(char order) {
    (void)!::write(orders_[1], &order, 1);
    return answer();
  }

 private:
  char answer() const {
    char byte = 0;
    return ::read(answers_[0], &byte, 1) == 1 ? byte : char{0};
  }
  void consume(const std::string& name) {
    ::close(orders_[1]);
    weft_stream stream{};
    weft_stream_ring* seen = weft_stream_open(name.c_str());
    if (seen == nullptr || weft_stream_attach(seen, 0, &stream) != 0) ::_exit(1);
    if (::fork() != 0) {
      ::close(answers_[1]);
      for (;;) ::pause();
    }
    (void)!::write(answers_[1], "r", 1);
    for (char order = 0; ::read(orders_[0], &order, 1) == 1;) {
      (void)!::write(answers_[1], obey(order, seen, stream) ? "y" : "n", 1);
    }
    ::_exit(0);
  }
  static bool obey(char order, weft_stream_ring* seen, weft_stream& stream) {
    weft_stream another{};
    switch (order) {
      case 'd':
        weft_stream_detach(&stream);
        return true;
      case 'f':
        return weft_stream_after_fork(seen) == 0 && weft_stream_after_fork(seen) == 0;
      default:  // all that there is, after 'f'
        weft_stream_release(&stream);
        weft_stream_detach(&stream);
        return weft_stream_attach(seen, 0, &another) == -1 && errno == EBADF &&
               weft_stream_alive(seen) == 0 && weft_stream_front(&stream) == nullptr &&
               weft_stream_wait(&stream, 60'000) == -1;
    }
  }

  std::array<int, 2> orders_{};
  std::array<int, 2> answers_{};
  pid_t consumer_ = 0;
};

// The child has the parent's lock, and must not give it back.
TEST(RingLives, AChildsCleanupDoesNotSendItsParentAway) {
  const std::string name = own_name("cleanup");
  Ring ring{spec_of(name, false)};
  BlockStore& store = ring.stream(0);
  ConsumerWithChild pair{name};
  EXPECT_EQ(pair.child_does('d'), 'y');
  store.look_after_consumer();
  EXPECT_TRUE(store.has_consumer());
  EXPECT_EQ(pair.child_does('f'), 'y');
  store.publish(0, {0xff}, 8);
  EXPECT_EQ(pair.child_does('a'), 'y') << "what a child may do afterwards";
  store.look_after_consumer();
  EXPECT_TRUE(store.has_consumer());
  EXPECT_FALSE(store.is_free(4)) << "the child released its parent's block";
}

TEST(RingLives, AConsumerThatDiesLetsGoThoughItsChildLives) {
  const std::string name = own_name("orphan");
  Ring ring{spec_of(name, false)};
  BlockStore& store = ring.stream(0);
  ConsumerWithChild pair{name};
  pair.kill();
  store.look_after_consumer();
  EXPECT_TRUE(store.has_consumer()) << "the child has the lock, too";
  EXPECT_EQ(pair.child_does('f'), 'y');
  store.look_after_consumer();
  EXPECT_FALSE(store.has_consumer());
}

// It is gone, and the receiver has not noticed yet: the next one waits for that.
TEST(RingLives, TheNextConsumerComesWhenTheLastOneIsGone) {
  const std::string name = own_name("next");
  Ring ring{spec_of(name, false)};
  BlockStore& store = ring.stream(0);
  weft_stream_ring* first = weft_stream_open(name.c_str());
  weft_stream_ring* second = weft_stream_open(name.c_str());
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  weft_stream stream{};
  ASSERT_EQ(weft_stream_attach(first, 0, &stream), 0);
  EXPECT_EQ(weft_stream_attach(second, 0, &stream), -1);
  EXPECT_EQ(errno, EBUSY);
  weft_stream_close(first);  // as its death would
  std::atomic<bool> over{false};
  std::thread receiver{[&] {
    while (!over) store.look_after_consumer();
  }};
  EXPECT_EQ(weft_stream_attach(second, 0, &stream), 0);
  over = true;
  receiver.join();
  EXPECT_TRUE(store.has_consumer());
  weft_stream_close(second);
}

// Another process makes a ring, does something with it, and is killed when told to.
class OtherReceiver {
 public:
  explicit OtherReceiver(
      const std::string& name, const std::function<void(Ring&)>& use = [](Ring&) {}) {
    std::array<int, 2> made{};
    if (::pipe(made.data()) != 0) throw kit::system_failure("pipe");
    child_ = ::fork();
    if (child_ == 0) {
      Ring ring{spec_of(name, false)};
      use(ring);
      (void)!::write(made[1], "r", 1);
      for (;;) ::pause();
    }
    char ready = 0;
    (void)!::read(made[0], &ready, 1);
    ::close(made[0]);
    ::close(made[1]);
  }
  OtherReceiver(const OtherReceiver&) = delete;
  OtherReceiver& operator=(const OtherReceiver&) = delete;
  ~OtherReceiver() { kill(); }
  void kill() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(std::exchange(child_, 0), nullptr, 0);
  }

 private:
  pid_t child_ = 0;
};

TEST(RingLives, KnowsHowFarAPredecessorPublished) {
  const std::string name = own_name("follows");
  OtherReceiver old{name, [](Ring& ring) {
                      for (uint64_t block : {7, 8, 9, 11, 12, 13}) {
                        ring.stream(1).publish(block, {0x0f}, 4);
                        ring.stream(1).look_after_consumer();
                      }
                    }};
  EXPECT_FALSE((Ring{spec_of("", false)}.end_before(1)));
  old.kill();
  {
    const Ring next{spec_of(name, false)};
    EXPECT_FALSE(next.end_before(0)) << "nothing was published";
    EXPECT_EQ(next.end_before(1), 14 * 8U);
    EXPECT_FALSE(next.end_before(2));
  }
  EXPECT_FALSE((Ring{spec_of(name, false)}.end_before(1))) << "that one ended by itself";
}

TEST(RingLives, DoesNotFollowPacketsOfAnotherFormat) {
  const std::string name = own_name("format");
  OtherReceiver old{name, [](Ring& ring) { ring.stream(0).publish(7, {0xff}, 8); }};
  old.kill();
  RingSpec other = spec_of(name, false);
  other.shape.format = Format::spead;
  EXPECT_FALSE(Ring{other}.end_before(0));
}

TEST(RingLives, EndsAndAPredecessorsConsumerHearsOfIt) {
  const std::string name = own_name("again");
  OtherReceiver old{name};
  weft_stream_ring* seen = weft_stream_open(name.c_str());
  ASSERT_NE(seen, nullptr);
  weft_stream stream{};
  ASSERT_EQ(weft_stream_attach(seen, 0, &stream), 0);
  // While it lives, nobody takes its ring.
  EXPECT_THROW(Ring{spec_of(name, false)}, kit::Failure);
  EXPECT_EQ(weft_stream_wait(&stream, 1), 0);
  EXPECT_TRUE(weft_stream_alive(seen));
  old.kill();
  EXPECT_FALSE(weft_stream_alive(seen));
  EXPECT_EQ(weft_stream_wait(&stream, 60'000), -1) << "it was killed";
  EXPECT_EQ(seen->ended, 0U);
  {
    const Ring next{spec_of(name, false)};
    EXPECT_EQ(weft_stream_wait(&stream, 60'000), -1);
    EXPECT_NE(seen->ended, 0U);
    weft_stream_ring* fresh = weft_stream_open(name.c_str());
    ASSERT_NE(fresh, nullptr);
    EXPECT_NE(fresh->session, seen->session);
    EXPECT_EQ(fresh->ended, 0U);
    weft_stream_close(fresh);
  }
  EXPECT_NE(::access(("/dev/shm/" + name).c_str(), F_OK), 0);
  weft_stream_close(seen);
}

// Consumer and receiver are killed: nobody will take the consumer's name away.
TEST(RingLives, NobodyAttachesToARingThatIsOver) {
  const std::string name = own_name("over");
  OtherReceiver old{name};
  weft_stream_ring* dead = weft_stream_open(name.c_str());
  weft_stream_ring* seen = weft_stream_open(name.c_str());
  ASSERT_NE(dead, nullptr);
  ASSERT_NE(seen, nullptr);
  weft_stream stream{};
  ASSERT_EQ(weft_stream_attach(dead, 0, &stream), 0);
  weft_stream_close(dead);  // as its death would
  EXPECT_EQ(weft_stream_attach(seen, 0, &stream), -1);
  EXPECT_EQ(errno, EBUSY);
  old.kill();
  EXPECT_EQ(weft_stream_attach(seen, 0, &stream), -1);
  EXPECT_EQ(errno, EPIPE);
  weft_stream_close(seen);
  ::unlink(("/dev/shm/" + name).c_str());
}

// A program with a profiler's timer, say. What interrupts a sleep does not make it longer.
TEST(RingLives, ASleepEndsThoughSignalsInterruptIt) {
  const std::string name = own_name("signals");
  Ring ring{spec_of(name, false)};
  weft_stream_ring* seen = weft_stream_open(name.c_str());
  ASSERT_NE(seen, nullptr);
  weft_stream stream{};
  ASSERT_EQ(weft_stream_attach(seen, 0, &stream), 0);
  struct sigaction act {
  }, before{};
  act.sa_handler = [](int) {};
  ASSERT_EQ(::sigaction(SIGUSR1, &act, &before), 0);
  std::atomic<bool> over{false};
  const pthread_t sleeper = ::pthread_self();
  constexpr int kMost = 2000;
  int sent = 0;
  std::thread sender{[&] {
    for (; !over && sent < kMost; ++sent) {
      ::pthread_kill(sleeper, SIGUSR1);
      std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
  }};
  EXPECT_EQ(weft_stream_wait(&stream, 100), 0);
  over = true;
  sender.join();
  EXPECT_LT(sent, kMost) << "it slept for as long as signals came";
  EXPECT_EQ(::sigaction(SIGUSR1, &before, nullptr), 0);
  weft_stream_detach(&stream);
  weft_stream_close(seen);
}

}  // namespace
}  // namespace weft::stream
