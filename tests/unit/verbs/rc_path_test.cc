#include "verbs/rc_path.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include "port/tcp_listener.h"
#include "tests/unit/verbs/pair_fixture.h"

namespace weft::verbs {
namespace {

int option_of(int fd, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  EXPECT_EQ(::getsockopt(fd, IPPROTO_TCP, name, &value, &size), 0);
  return value;
}

// The socket is the queue pair's from then on, whoever made it.
TEST_F(PairTest, TheSocketOfAStreamIsPrepared) {
  auto qp = make();
  to_rts(*qp);
  const auto listener = port::TcpListener::listen(port::Address::from_gid(kHere, 0), 1);
  ASSERT_TRUE(listener.ok());
  auto tcp = port::TcpStream::connect({}, listener->local());
  ASSERT_TRUE(tcp.ok());
  const int fd = tcp->fd();
  auto h = qp->engine().hold();
  qp->transport().stream_adopter()->adopt(
      h.token(), {.tcp = std::move(*tcp),
                  .config = {.mpa = {.ird = 1, .ord = 1}, .initiator = true},
                  .early = {}});
  EXPECT_EQ(option_of(fd, TCP_NOTSENT_LOWAT), 16 * 1024) << "design/20";
  EXPECT_EQ(option_of(fd, TCP_KEEPIDLE) + option_of(fd, TCP_KEEPINTVL) * option_of(fd, TCP_KEEPCNT),
            30)
      << "seconds without an answer, and the peer is lost";
}

}  // namespace
}  // namespace weft::verbs
