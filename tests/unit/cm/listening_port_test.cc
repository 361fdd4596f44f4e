// The port that an Id listens at, on TCP and UDP, without memory for all that this takes.

#include "cm/listening_port.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <new>

#include "port/udp_bind.h"
#include "tests/unit/cm/memory.h"

namespace weft::cm {
namespace {

port::Address here(uint16_t number) {
  return port::Address::from_gid(Gid::from_ipv4(0x7f000001), number);
}

struct Nobody final : ListeningPortHandler {
  bool crowded() const override { return false; }
  PendingRequestHandler* connection_requested(engine::Token&, const ConnectionRequest&) override {
    return nullptr;
  }
};

class ListeningPortTest : public testing::Test {
 protected:
  ListeningPortTest() {
    auto e = engine::Engine::create(0);
    EXPECT_TRUE(e.ok());
    if (e.ok()) engine_ = std::move(*e);
    EXPECT_EQ(port_.bind(here(0), false), 0);
    at_ = here(port_.number());
  }
  ~ListeningPortTest() override {
    if (engine_ == nullptr) return;
    auto h = engine_->hold();
    listening_.stop(h.token());
  }
  int start() {
    auto h = engine_->hold();
    return listening_.start(h.token(), port_, at_, {});
  }
  bool has_udp() const {
    const auto other = port::bind_udp(at_);
    return !other.ok() && other.error().code == EADDRINUSE;
  }
  // A second listener would be refused.
  bool listens() const { return !port::TcpListener::listen(at_, 1).ok(); }

  std::unique_ptr<engine::Engine> engine_;
  Nobody handler_;
  BoundPort port_;
  ListeningPort listening_{handler_};
  port::Address at_;
};

TEST_F(ListeningPortTest, ListensOnTcpAndUdpUntilItIsStopped) {
  ASSERT_EQ(start(), 0);
  EXPECT_TRUE(listens());
  EXPECT_TRUE(has_udp());
  {
    auto h = engine_->hold();
    listening_.stop(h.token());
  }
  EXPECT_FALSE(has_udp());
  EXPECT_TRUE(port_.valid());
  port_.close();
  EXPECT_FALSE(listens());
}

// Each time a larger piece of memory is there, until all are.
TEST_F(ListeningPortTest, WithoutMemoryItKeepsItsNumberAndDoesNotListen) {
  int failed = 0;
  for (size_t most = 0; !listens(); most = most * 2 + 1) {
    ASSERT_LT(most, SIZE_MAX / 4);
    most_memory = most;
    bool threw = false;
    try {
      EXPECT_EQ(start(), 0);
    } catch (const std::bad_alloc&) {
      threw = true;
    }
    most_memory = SIZE_MAX;
    if (!threw) continue;
    ++failed;
    EXPECT_FALSE(listens());
    EXPECT_TRUE(port_.valid());
    EXPECT_TRUE(has_udp());
  }
  EXPECT_GT(failed, 1);
}

TEST_F(ListeningPortTest, WhereSomebodyHasItsNumberOnUdpItServesTcp) {
  port_.close_udp();
  const auto other = port::bind_udp(at_);
  ASSERT_TRUE(other.ok());
  ASSERT_EQ(start(), 0);
  EXPECT_TRUE(listens());
}

}  // namespace
}  // namespace weft::cm
