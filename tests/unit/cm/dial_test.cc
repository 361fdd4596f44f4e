#include "cm/dial.h"

#include <gtest/gtest.h>
#include <poll.h>

#include "port/tcp_listener.h"
#include "rdmap/limits.h"

namespace weft::cm {
namespace {

using namespace std::chrono_literals;
using engine::Token;

class NobodyCares final : public DialHandler {
 public:
  void dial_connected(Token&, Dial&, Started&&) override { ++told; }
  void dial_failed(Token&, Dial&, DialFailure&&) override { ++told; }
  int told = 0;
};

// Both ends of a dial: weft's engine on one side, bare bytes on the other.
class DialTest : public testing::Test {
 protected:
  void SetUp() override {
    auto e = engine::Engine::create(0);
    ASSERT_TRUE(e.ok());
    engine_ = std::move(*e);
    auto l = port::TcpListener::listen(port::Address::from_gid(Gid::from_ipv4(0x7f000001), 0), 1);
    ASSERT_TRUE(l.ok());
    listener_.emplace(std::move(*l));
  }
  Dial& dial(bool peer_to_peer) {
    auto h = engine_->hold();
    return Dial::start(
        h.token(), handler_,
        {.to = listener_->local(),
         .offer = {.extension = false, .peer_to_peer = peer_to_peer, .ird = 1, .ord = 1},
         .timeout = 30s});
  }
  void accept() {
    pollfd p{.fd = listener_->fd(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&p, 1, 10'000), 1);
    auto tcp = listener_->accept();
    ASSERT_TRUE(tcp);
    peer_.emplace(std::move(*tcp));
  }
  void cancel(Dial& d) {
    auto h = engine_->hold();
    d.cancel(h.token());
  }
  // What comes until there are `n` bytes or the end.
  std::vector<std::byte> hear(size_t n) {
    std::vector<std::byte> all;
    ended_ = false;
    while (all.size() < n) {
      engine_->progress();
      std::byte buffer[256];
      const IoVec piece{buffer, std::min(sizeof buffer, n - all.size())};
      const auto t = peer_->receive({&piece, 1});
      if (t.would_block) continue;
      if (t.end || t.error != 0) {
        ended_ = true;
        break;
      }
      all.insert(all.end(), buffer, buffer + t.bytes);
    }
    return all;
  }
  void say(const std::vector<uint8_t>& bytes) {
    const IoVec piece{const_cast<uint8_t*>(bytes.data()), bytes.size()};
    ASSERT_EQ(peer_->send({&piece, 1}).bytes, bytes.size());
  }

  NobodyCares handler_;
  std::unique_ptr<engine::Engine> engine_;
  std::optional<port::TcpListener> listener_;
  std::optional<port::TcpStream> peer_;
  bool ended_ = false;
};

// Length, tagged and last, RDMA Write.
const std::vector<std::byte> kEmptyWrite{std::byte{0}, std::byte{14}, std::byte{0xc1},
                                         std::byte{0x40}};
constexpr size_t kRequest = 24;  // with the enhanced block

std::vector<uint8_t> reply(uint8_t ird_high, uint8_t ord_high) {
  std::vector<uint8_t> bytes;
  for (const char c : std::string_view{"MPA ID Rep Frame"})
    bytes.push_back(static_cast<uint8_t>(c));
  // S and C, revision 2, PD_Length 4, IRD 1, ORD 1.
  for (const uint8_t b : {uint8_t{0x50}, uint8_t{2}, uint8_t{0}, uint8_t{4}, ird_high, uint8_t{1},
                          ord_high, uint8_t{1}}) {
    bytes.push_back(b);
  }
  return bytes;
}

// wire.md 2.5 rule 6: a kernel with siw dies of a connection that closes between its Reply and the
// RTR, or right behind that.
TEST_F(DialTest, GivenUpBeforeTheReplyItStillSendsTheRtrAndClosesLater) {
  struct Kind {
    uint8_t ird_high;  // A, B
    uint8_t ord_high;  // C, D
    size_t fpdu;
    uint8_t opcode;
  };
  for (const Kind& k : {Kind{0xc0, 0, 8, 0}, Kind{0x80, 0x80, 20, 0}, Kind{0x80, 0x40, 52, 1}}) {
    Dial& d = dial(true);
    accept();
    ASSERT_EQ(hear(kRequest).size(), kRequest);
    cancel(d);
    const auto before = std::chrono::steady_clock::now();
    say(reply(k.ird_high, k.ord_high));
    const auto rtr = hear(k.fpdu);
    ASSERT_EQ(rtr.size(), k.fpdu);
    if (k.fpdu > 8) {
      EXPECT_EQ(static_cast<uint8_t>(rtr[3]) & 0x0f, k.opcode);
    }
    // siw may sleep over the RTR, and would wake to the end.
    const auto kicks = hear(3 * 20);
    ASSERT_EQ(kicks.size(), 3U * 20);
    for (size_t i = 0; i < kicks.size(); i += 20) {
      EXPECT_EQ((std::vector<std::byte>{kicks.begin() + static_cast<long>(i),
                                        kicks.begin() + static_cast<long>(i) + 4}),
                kEmptyWrite)
          << i;
    }
    EXPECT_GE(std::chrono::steady_clock::now() - before, rdmap::kKickAfter[2]);
    EXPECT_TRUE(hear(1).empty());
    EXPECT_TRUE(ended_);
    EXPECT_GE(std::chrono::steady_clock::now() - before, rdmap::kRtrSettles);
    EXPECT_EQ(handler_.told, 0);
  }
}

TEST_F(DialTest, GivenUpWithoutAnRtrToSendItClosesAtOnce) {
  Dial& d = dial(false);
  accept();
  ASSERT_EQ(hear(kRequest).size(), kRequest);
  cancel(d);
  EXPECT_TRUE(hear(1).empty());
  EXPECT_TRUE(ended_);
  EXPECT_EQ(handler_.told, 0);
}

// No second try for nobody.
TEST_F(DialTest, GivenUpItDoesNotFallBack) {
  Dial& d = dial(true);
  accept();
  ASSERT_EQ(hear(kRequest).size(), kRequest);
  cancel(d);
  peer_.reset();
  for (int i = 0; i < 1000; ++i) engine_->progress();
  pollfd p{.fd = listener_->fd(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&p, 1, 100), 0);
  EXPECT_EQ(handler_.told, 0);
}

}  // namespace
}  // namespace weft::cm
