// One side is killed (SIGKILL) at any moment: while it connects, while it answers, in the middle of
// a message. The other side gets the event that ends each connection and every request back, keeps
// nothing of it, and goes on.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <random>

#include "tests/abi/cm_party.h"

namespace weft::test {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr int kWarmUp = 20;

// A process that is a Party for as long as it may live. `begin` gets it under way; the number it
// gives is told to the parent.
class Doomed {
 public:
  explicit Doomed(const std::function<uint16_t(Party&)>& begin) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    pid_ = fork();
    if (pid_ == 0) {
      close(ends[0]);
      live(begin, ends[1]);
      _exit(1);
    }
    close(ends[1]);
    told_ = ends[0];
  }
  Doomed(const Doomed&) = delete;
  Doomed& operator=(const Doomed&) = delete;
  ~Doomed() {
    kill(pid_, SIGKILL);
    int status = 0;
    waitpid(pid_, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status)) << "it ended before it was killed, with status " << status;
    close(told_);
  }
  uint16_t number() const {
    uint16_t n = 0;
    EXPECT_EQ(read(told_, &n, sizeof n), static_cast<ssize_t>(sizeof n));
    return n;
  }

 private:
  static void live(const std::function<uint16_t(Party&)>& begin, int tell) {
    Party party;
    const uint16_t n = begin(party);
    (void)!write(tell, &n, sizeof n);
    while (party.why().empty()) party.turn();
    const std::string why = "in the child: " + party.why() + "\n";
    (void)!write(STDERR_FILENO, why.data(), why.size());
  }

  pid_t pid_;
  int told_;
};

class CmKill : public testing::Test {
 protected:
  void SetUp() override { raise_descriptor_limit(); }

  // Lets the survivor work until `done`. Not for ever: nothing may hang.
  void work_until(const std::function<bool()>& done) {
    const auto end = Clock::now() + 10s;
    while (!done()) {
      survivor.turn();
      ASSERT_EQ(survivor.why(), "");
      ASSERT_LT(Clock::now(), end) << survivor.connections() << " connections are left\n"
                                   << survivor.states();
    }
  }
  // The moment to kill: half of them fall into the beginnings, the others into the traffic.
  void work_up_to_the_moment() {
    if (random() % 2 == 0) {
      const uint64_t some = survivor.messages() + 1 + random() % 200;
      work_until([&] { return survivor.messages() >= some; });
    } else {
      const auto moment = Clock::now() + std::chrono::microseconds{random() % 8000};
      work_until([&] { return Clock::now() >= moment; });
    }
  }
  void all_are_gone() {
    work_until([&] { return survivor.connections() == 0; });
  }
  void goes_on(uint16_t port) {
    const uint64_t enough = survivor.messages() + 200;
    const Doomed fresh([port](Party& p) {
      p.connect(port);
      return uint16_t{0};
    });
    work_until([&] { return survivor.messages() >= enough; });
  }
  void expect_nothing_left(const Counts& before, size_t ports_before) {
    const auto end = Clock::now() + 5s;
    Counts after = Counts::now(survivor.ports());
    // Sockets may wait a moment for what the kernel still has to say about the dead.
    while (after.descriptors > before.descriptors && Clock::now() < end) {
      usleep(10'000);
      after = Counts::now(survivor.ports());
    }
    EXPECT_LE(after.descriptors, before.descriptors) << "before: " << before;
    EXPECT_EQ(after.threads, before.threads);
    EXPECT_LE(after.heap, before.heap + heap_growth(survivor.ports().size() - ports_before))
        << "before: " << before << "; after: " << after;
  }

  std::mt19937 random{20'251};
  Party survivor;
};

TEST_F(CmKill, TheSideThatConnects) {
  constexpr int kRounds = 150;
  const uint16_t port = survivor.listen();
  ASSERT_NE(port, 0);
  Counts before{};
  size_t ports_before = 0;
  for (int round = 0; round < kWarmUp + kRounds; ++round) {
    SCOPED_TRACE(round);
    if (round == kWarmUp) {
      all_are_gone();
      before = Counts::now(survivor.ports());
      ports_before = survivor.ports().size();
    }
    {
      const size_t many = 1 + random() % 4;
      const Doomed client([port, many](Party& p) {
        for (size_t i = 0; i < many; ++i) p.connect(port);
        return uint16_t{0};
      });
      work_up_to_the_moment();
    }
    if (HasFailure()) return;
    // What the dead asked for may still come: that is for the rounds that follow, too.
    if (random() % 2 == 0) all_are_gone();
    if (HasFailure()) return;
  }
  all_are_gone();
  expect_nothing_left(before, ports_before);
  EXPECT_GT(survivor.established, size_t{kRounds} / 3);
  EXPECT_EQ(survivor.disconnected, survivor.established);
  goes_on(port);
}

TEST_F(CmKill, TheSideThatListens) {
  constexpr int kRounds = 60;  // a refusal counts only when it stands for a while, which takes time
  Counts before{};
  size_t ports_before = 0;
  size_t connects = 0;
  for (int round = 0; round < kWarmUp + kRounds; ++round) {
    SCOPED_TRACE(round);
    if (round == kWarmUp) {
      before = Counts::now(survivor.ports());
      ports_before = survivor.ports().size();
    }
    {
      const Doomed server([](Party& p) { return p.listen(); });
      const uint16_t port = server.number();
      const size_t many = 1 + random() % 4;
      connects += many;
      for (size_t i = 0; i < many; ++i) survivor.connect(port);
      work_up_to_the_moment();
    }
    if (HasFailure()) return;
    // Each connect has an end that is told.
    all_are_gone();
    if (HasFailure()) return;
  }
  expect_nothing_left(before, ports_before);
  EXPECT_GT(survivor.established, size_t{kRounds} / 3);
  EXPECT_EQ(survivor.disconnected, survivor.established);
  EXPECT_EQ(survivor.established + survivor.refused, connects);
}

}  // namespace
}  // namespace weft::test
