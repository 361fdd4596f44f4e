#include "cm/listener.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <new>

namespace weft::cm {
namespace {

using namespace std::chrono_literals;
using engine::Token;
using stats::CmRejection;
using stats::StartRefusal;

class Poor final : public ListenerHandler {
 public:
  void connection_requested(Token&, PassiveStart&, const mpa::Responder::Request&) override {
    ++came;
    throw std::bad_alloc{};
  }
  int came = 0;
};

// spec/mpa 2.3.4: a close without a Reply would be taken for a peer that does not know weft's
// extension.
TEST(Listener, WantOfMemoryIsARejection) {
  auto engine = engine::Engine::create(0);
  ASSERT_TRUE(engine.ok());
  auto tcp = port::TcpListener::listen(port::Address::from_gid(Gid::from_ipv4(0x7f000001), 0), 1);
  ASSERT_TRUE(tcp.ok());
  const auto where = tcp->local();
  Poor handler;
  Listener* listener = nullptr;
  {
    auto h = (*engine)->hold();
    listener = &Listener::start(h.token(), handler, *tcp);
  }
  auto peer = port::TcpStream::connect({}, where);
  ASSERT_TRUE(peer.ok());
  pollfd p{.fd = peer->fd(), .events = POLLOUT, .revents = 0};
  ASSERT_EQ(::poll(&p, 1, 10'000), 1);
  char request[21] = "MPA ID Req Frame\x40\x01\x00\x00";
  const IoVec whole{request, 20};
  ASSERT_EQ(peer->send({&whole, 1}).bytes, 20U);
  char reply[21] = {};
  const IoVec room{reply, 20};
  size_t got = 0;
  for (const auto end = std::chrono::steady_clock::now() + 20s;
       std::chrono::steady_clock::now() < end && got == 0;) {
    (*engine)->progress();
    const auto t = peer->receive({&room, 1});
    if (t.would_block) continue;
    ASSERT_EQ(t.bytes, 20U) << "closed without a Reply";
    got = t.bytes;
  }
  ASSERT_EQ(got, 20U);
  auto h = (*engine)->hold();
  EXPECT_EQ(handler.came, 1);
  EXPECT_EQ(std::string_view(reply, 16), "MPA ID Rep Frame");
  EXPECT_NE(reply[16] & 0x20, 0) << "R: rejected (spec/mpa 2.1)";
  const stats::EngineCounters& counted = (*engine)->counters();
  EXPECT_EQ(counted.cm_rejected[static_cast<size_t>(CmRejection::no_memory)].value(), 1U);
  EXPECT_EQ(counted.start_refused[static_cast<size_t>(StartRefusal::no_memory)].value(), 0U)
      << "that is for what gets no Reply";
  listener->stop(h.token());
}

}  // namespace
}  // namespace weft::cm
