#include "sdp/sockets/handover.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <future>
#include <memory>

#include "sdp/sockets/mirror.h"
#include "sdp/sockets/shown_name.h"
#include "tests/support/sanitizer.h"

namespace weft::sdp {
namespace {

constexpr int kNobody = 65534;

Address name_of(int fd) {
  Address name{};
  socklen_t size = sizeof name;
  EXPECT_EQ(::getsockname(fd, &name.any, &size), 0);
  return name;
}

Address place(uint32_t address, uint16_t port) {
  Address a{};
  a.v4 = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(address)}};
  return a;
}

// A wake-up connection, and what was accepted of it.
class HandoverTest : public testing::Test {
 protected:
  void SetUp() override {
    const File listener{::socket(AF_INET, SOCK_STREAM, 0)};
    const Address any = place(INADDR_LOOPBACK, 0);
    ASSERT_EQ(::bind(listener.get(), &any.any, any.size()), 0);
    ASSERT_EQ(::listen(listener.get(), 1), 0);
    const Address at = name_of(listener.get());
    wake_up_.reset(::socket(AF_INET, SOCK_STREAM, 0));
    ASSERT_EQ(::connect(wake_up_.get(), &at.any, at.size()), 0);
    accepted_.reset(::accept(listener.get(), nullptr, nullptr));
    ASSERT_TRUE(accepted_);
    static Loop* const loop = Loop::start();
    ASSERT_NE(loop, nullptr);
    loop_ = loop;
  }
  void TearDown() override {
    on_loop([this] { handover_.reset(); });
  }
  void open(const Handover::Asked& asked) {
    on_loop(
        [&] { handover_ = std::make_unique<Handover>(*loop_, name_of(wake_up_.get()), asked); });
  }
  void on_loop(const Loop::Task& task) {
    std::promise<void> done;
    loop_->post([&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }

  Loop* loop_ = nullptr;
  File wake_up_;
  File accepted_;
  std::unique_ptr<Handover> handover_;
};

TEST_F(HandoverTest, TheProcessThatAcceptedTheWakeUpGetsTheConnection) {
  SocketPair pair;
  ASSERT_TRUE(pair.open());
  open([&](const File& asker) { Handover::answer(asker, place(0xc0000207, 40112), pair.outer); });
  const auto answer = Handover::ask(accepted_.get());
  ASSERT_TRUE(answer);
  EXPECT_EQ(to_string(answer->peer), "192.0.2.7:40112");
  ASSERT_TRUE(answer->connection);
  EXPECT_EQ(cookie_of(answer->connection.get()), cookie_of(pair.outer.get()));
}

TEST_F(HandoverTest, OrTheClientsNameAlone) {
  open([](const File& asker) { Handover::answer(asker, place(0xc0000207, 1), File{}); });
  const auto answer = Handover::ask(accepted_.get());
  ASSERT_TRUE(answer);
  EXPECT_EQ(to_string(answer->peer), "192.0.2.7:1");
  EXPECT_FALSE(answer->connection);
}

TEST_F(HandoverTest, OtherConnectionsHaveNone) {
  EXPECT_FALSE(Handover::ask(accepted_.get()));
  EXPECT_FALSE(Handover::ask(-1));
}

TEST_F(HandoverTest, SomebodyWhoAnswersNothingIsGivenUp) {
  open([](const File&) {});
  EXPECT_FALSE(Handover::ask(accepted_.get()));
}

TEST_F(HandoverTest, IsClosedToOtherUsersOnBothSides) {
  if (::geteuid() != 0) GTEST_SKIP() << "root alone can be another user";
#ifdef WEFT_TSAN
  GTEST_SKIP() << "ThreadSanitizer lets no child of a process with threads have threads";
#endif
  bool asked = false;
  open([&](const File& asker) {
    asked = true;
    Handover::answer(asker, place(0xc0000207, 1), File{});
  });
  const auto as_nobody = [](const auto& question) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(::seteuid(kNobody) != 0 ? 2 : question() ? 1 : 0);
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  };
  EXPECT_EQ(as_nobody([&] { return Handover::ask(accepted_.get()).has_value(); }), 0);
  on_loop([] {});
  EXPECT_FALSE(asked) << "nobody took a connection of root's";

  // A stranger that answers for a connection of its own lends it no other name.
  on_loop([&] { handover_.reset(); });
  std::array<int, 2> ready{};
  std::array<int, 2> done{};
  ASSERT_EQ(::pipe(ready.data()), 0);
  ASSERT_EQ(::pipe(done.data()), 0);
  const pid_t stranger = ::fork();
  if (stranger == 0) {
    if (::seteuid(kNobody) != 0) ::_exit(2);
    Loop* const loop = Loop::start();
    std::unique_ptr<Handover> handover;
    loop->post([&] {
      handover = std::make_unique<Handover>(*loop, name_of(wake_up_.get()), [](const File& asker) {
        Handover::answer(asker, place(0x0a000001, 1), File{});
      });
      (void)!::write(ready[1], "r", 1);
    });
    char end = 0;
    ::_exit(::read(done[0], &end, 1) == 1 ? 0 : 3);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_FALSE(Handover::ask(accepted_.get()));
  ASSERT_EQ(::write(done[1], "d", 1), 1);
  int status = -1;
  ASSERT_EQ(::waitpid(stranger, &status, 0), stranger);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  for (const int fd : {ready[0], ready[1], done[0], done[1]}) ::close(fd);
}

}  // namespace
}  // namespace weft::sdp
