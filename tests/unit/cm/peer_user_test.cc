// Callers of this host, of this user and of others. Queue pairs that are called so are in
// tests/verbs/other_user_test.cc.

#include "cm/peer_user.h"

#include <poll.h>

#include "port/tcp_listener.h"
#include "tests/support/as_user.h"
#include "tests/unit/cm/one_pair.h"

namespace weft::cm {
namespace {

using port::Address;
using port::TcpListener;
using port::TcpStream;
using test::as_user;
using test::kOtherUser;
using test::kSomeUser;

// A call that was accepted here, and who may have made it.
class PeerUser : public testing::Test {
 protected:
  PeerUser() : here_(**adapter(), one_address()) {}
  static TcpListener listen() {
    auto l = TcpListener::listen(Address::from_gid(kHere, 0), 4);
    EXPECT_TRUE(l.ok());
    return std::move(*l);
  }
  static TcpStream call(const TcpListener& to) {
    auto tcp = TcpStream::connect({}, to.local());
    EXPECT_TRUE(tcp.ok());
    return std::move(*tcp);
  }
  TcpStream accepted() {
    pollfd p{.fd = own_.fd(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&p, 1, 20'000), 1);
    auto tcp = own_.accept();
    EXPECT_TRUE(tcp);
    return std::move(*tcp);
  }
  static Qpn at(const TcpListener& port) { return make_qpn(port.local().port(), 3); }

  verbs::Context here_;
  TcpListener own_ = listen();
};

TEST_F(PeerUser, ThisProcessSpeaksForAnybody) {
  const TcpStream caller = call(own_);
  EXPECT_TRUE(speaks_for(here_, accepted(), make_qpn(1, 1)));
}

// What is left of a socket that was closed is the kernel's, and anybody may have had it.
TEST_F(PeerUser, ASocketThatNobodyHasSpeaksForNobody) {
  TcpStream caller = call(own_);
  const TcpStream here = accepted();
  caller.close();
  EXPECT_FALSE(speaks_for(here_, here, make_qpn(1, 1)));
}

// spec/addressing 2.2: the port in a number is its user's.
TEST_F(PeerUser, AnotherUserSpeaksForItsOwnPortAlone) {
  if (!test::many_users()) GTEST_SKIP() << "only root can be several users";
  std::optional<TcpListener> somebodys;
  std::optional<TcpListener> of_the_third;
  TcpStream caller;
  as_user(kOtherUser, [&] { of_the_third = listen(); });
  as_user(kSomeUser, [&] {
    somebodys = listen();
    caller = call(own_);
  });
  const TcpStream here = accepted();
  EXPECT_TRUE(speaks_for(here_, here, at(*somebodys)));
  EXPECT_FALSE(speaks_for(here_, here, at(*of_the_third)));
  EXPECT_FALSE(speaks_for(here_, here, at(own_))) << "this process's own";
  const Qpn number = at(*somebodys);
  somebodys.reset();
  EXPECT_FALSE(speaks_for(here_, here, number)) << "a port that nobody has any more";
}

}  // namespace
}  // namespace weft::cm
