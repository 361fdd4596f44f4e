// Questions to a port of the loopback interface that is open and answers nothing. Each is one byte,
// so that the test knows whose it is.

#include "drive/port_check.h"

#include <gtest/gtest.h>

#include <sys/socket.h>

#include <set>
#include <vector>

#include "engine/engine.h"
#include "port/udp_bind.h"
#include "port/udp_socket.h"
#include "tests/support/closed_port.h"

namespace weft::drive {
namespace {

using engine::Engine;
using engine::Hold;

constexpr Gid kHere = Gid::from_ipv4(INADDR_LOOPBACK);
constexpr size_t kMost = 8;

struct Owner final : PortCheckOwner {
  void port_checked(Token&, bool is_closed) override {
    ++told;
    closed = is_closed;
  }
  int told = 0;
  bool closed = false;
};

class PortCheckTest : public testing::Test {
 protected:
  PortCheckTest() {
    const timeval patience{20, 0};
    EXPECT_EQ(::setsockopt(silent_.fd(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    auto e = Engine::create(0);
    EXPECT_TRUE(e.ok());
    engine_ = std::move(*e);
    Hold h = engine_->hold();
    auto udp = port::bind_udp(port::Address::from_gid(kHere, 0));
    EXPECT_TRUE(udp.ok());
    driver_ = &DatagramDriver::start(
        h.token(), nobody_,
        std::make_unique<port::UdpSocket>(std::move(*udp), DatagramDriver::kBuffer));
  }

  PortCheck& ask(Hold& h, uint8_t what) {
    return PortCheck::start(h.token(), *driver_, owner_,
                            {.to = {.address = kHere, .port = silent_.number()}, .from = kHere},
                            {std::byte{what}}, h.token().now());
  }
  // Waits for `n` questions that are new, and takes those that are there besides.
  std::set<uint8_t> await_questions(size_t n) {
    std::set<uint8_t> all;
    uint8_t what = 0;
    for (int flags = 0; ::recv(silent_.fd(), &what, 1, flags) == 1;
         flags = all.size() < n ? 0 : MSG_DONTWAIT) {
      all.insert(what);
    }
    return all;
  }

  const test::SilentPort silent_;
  Owner owner_;
  DatagramOwner nobody_;
  std::unique_ptr<Engine> engine_;
  DatagramDriver* driver_ = nullptr;
};

// Each has a descriptor, and the peers of a host that is gone are many. The test holds the engine
// all the time, so that no check ends by itself.
TEST_F(PortCheckTest, EightAskAtATime) {
  Hold h = engine_->hold();
  std::vector<PortCheck*> checks;
  for (uint8_t i = 0; i < 20; ++i) checks.push_back(&ask(h, i));
  EXPECT_EQ(await_questions(kMost), (std::set<uint8_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  // One that ends makes room for one.
  checks[3]->stop(h.token());
  checks[3] = &ask(h, 100);
  checks.push_back(&ask(h, 101));
  EXPECT_EQ(await_questions(1), std::set<uint8_t>{100});
  // One that waits takes nobody's room with it.
  checks[19]->stop(h.token());
  checks[19] = &ask(h, 102);
  for (PortCheck* c : checks) c->stop(h.token());
  checks = {&ask(h, 110), &ask(h, 111)};
  EXPECT_EQ(await_questions(2), (std::set<uint8_t>{110, 111}));
  for (PortCheck* c : checks) c->stop(h.token());
  EXPECT_EQ(owner_.told, 0);
}

TEST_F(PortCheckTest, ThoseThatWaitAskInTheirTurn) {
  {
    Hold h = engine_->hold();
    for (uint8_t i = 0; i < kMost + 1; ++i) ask(h, i);
    EXPECT_EQ(await_questions(kMost).size(), kMost);
  }
  EXPECT_EQ(await_questions(1), std::set<uint8_t>{kMost});
}

TEST_F(PortCheckTest, ATcpPortWithoutAListenerIsClosed) {
  // Nobody else has it meanwhile.
  const port::Fd held{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  const port::Address any = port::Address::from_gid(kHere, 0);
  ASSERT_EQ(::bind(held.get(), any.get(), any.length), 0);
  const uint16_t number = port::Address::of_socket(held.get()).port();
  {
    Hold h = engine_->hold();
    PortCheck::start_by_tcp(h.token(), *driver_, owner_,
                            {.to = {.address = kHere, .port = number}, .from = kHere});
  }
  const auto told = [&] {
    Hold h = engine_->hold();
    return owner_.told != 0;
  };
  while (!told()) engine_->progress();  // a second later at the latest
  Hold h = engine_->hold();
  EXPECT_TRUE(owner_.closed);
}

}  // namespace
}  // namespace weft::drive
