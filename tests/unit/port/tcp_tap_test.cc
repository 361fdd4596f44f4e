// Real connections over the loopback interface, and what the capture has of them.
#include "port/tcp_tap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <cerrno>

#include "port/capture.h"
#include "port/tcp_listener.h"
#include "tests/support/hex.h"
#include "tests/unit/port/capture_fixture.h"

namespace weft::port {
namespace {

using test::Buffer;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using trace::Direction;
namespace flag = trace::tcp_flag;

const Address kHere = Address::from_gid(Gid::from_ipv4(0xc0000201), 4791);
const Address kThere = Address::from_gid(Gid::from_ipv4(0xc0000202), 18515);

// "out SYN", "in 12" for 12 bytes; `here` is the port that is this end.
std::string seen(const Buffer& packet, uint16_t here) {
  const size_t ip = std::to_integer<unsigned>(packet[0]) >> 4 == 4 ? 20 : 40;
  const std::byte* tcp = packet.data() + ip;
  const auto flags = std::to_integer<unsigned>(tcp[13]);
  const size_t header = (std::to_integer<size_t>(tcp[12]) >> 4) * 4;
  std::string text = load_be<uint16_t>(tcp) == here ? "out" : "in";
  if ((flags & flag::kSyn) != 0) text += " SYN";
  if ((flags & flag::kFin) != 0) text += " FIN";
  if ((flags & flag::kRst) != 0) text += " RST";
  if ((flags & flag::kPsh) != 0) text += " " + std::to_string(packet.size() - ip - header);
  return text;
}

class TcpTapTest : public CaptureFixture {
 protected:
  std::vector<std::string> story(uint16_t here = 4791) {
    std::vector<std::string> lines;
    for (const Buffer& p : read("t.pcapng").packets) lines.push_back(seen(p, here));
    return lines;
  }
  void move(TcpTap& tap, Direction direction, size_t n) {
    Buffer bytes = test::pattern(n, 1);
    const IoVec v{bytes.data(), bytes.size()};
    tap.moved(5, direction, {&v, 1}, n);
  }
  Capture capture{{.pattern = path("t.pcapng")}};
};

TEST_F(TcpTapTest, FromTheHandshakeToTheEnd) {
  {
    TcpTap tap{capture};
    tap.connects();
    EXPECT_FALSE(tap.knows_ends());
    tap.meet(5, kHere, kThere);
    EXPECT_TRUE(tap.knows_ends());
    move(tap, Direction::out, 20);
    move(tap, Direction::in, 30);
    tap.peer_finished(5);
  }
  EXPECT_THAT(story(),
              ElementsAre("out SYN", "in SYN", "out", "out 20", "in 30", "in FIN", "out FIN"));
}

TEST_F(TcpTapTest, AnAcceptedOneBeginsWithThePeer) {
  {
    TcpTap tap{capture};
    tap.meet(5, kHere, kThere);
    tap.finished(5);
    move(tap, Direction::in, 1);
  }
  EXPECT_THAT(story(), ElementsAre("in SYN", "out SYN", "in", "out FIN", "in 1"));
}

TEST_F(TcpTapTest, ResetsByEitherSide) {
  {
    TcpTap tap{capture};
    tap.meet(5, kHere, kThere);
    tap.failed(5, ETIMEDOUT);
    tap.failed(5, ECONNRESET);
  }
  {
    TcpTap tap{capture};
    tap.meet(5, kHere, kThere);
    tap.reset(5);
  }
  EXPECT_THAT(story(), ElementsAre("in SYN", "out SYN", "in", "in RST", "in SYN", "out SYN", "in",
                                   "out RST"));
}

TEST_F(TcpTapTest, AConnectionThatIsGoneBeforeItsEndsAreKnownIsNotRecorded) {
  {
    TcpTap tap{capture};
    tap.meet(5, kHere, {});
    EXPECT_TRUE(tap.knows_ends());
    move(tap, Direction::in, 1);
  }
  { const TcpTap never_used{capture}; }
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(TcpTapTest, TheOtherEndInTheSameProcessIsNotRecordedAgain) {
  {
    TcpTap one{capture};
    one.connects();
    one.meet(5, kHere, kThere);
    TcpTap other{capture};
    other.meet(5, kThere, kHere);
    move(one, Direction::out, 3);
    move(other, Direction::in, 3);
    move(other, Direction::out, 4);
    move(one, Direction::in, 4);
  }
  EXPECT_THAT(story(), ElementsAre("out SYN", "in SYN", "out", "out 3", "in 4", "out FIN"));
}

TEST_F(TcpTapTest, ASocketWithItselfHasWhatItSends) {
  {
    TcpTap tap{capture};
    tap.connects();
    tap.meet(5, kHere, kHere);
    move(tap, Direction::out, 8);
    move(tap, Direction::in, 8);
    tap.peer_finished(5);
  }
  EXPECT_THAT(story(), ElementsAre("out SYN", "out SYN", "out", "out 8", "out FIN"));
}

using TcpStreamTraceTest = TcpTapTest;

bool ready(int fd, short events) {
  pollfd p{.fd = fd, .events = events, .revents = 0};
  return ::poll(&p, 1, 10'000) == 1;
}

[[noreturn]] void talk() {
  auto listener = TcpListener::listen(Address::from_gid(Gid::from_ipv4(INADDR_LOOPBACK), 0), 4);
  if (!listener.ok()) std::exit(3);
  auto active = TcpStream::connect({}, listener->local());
  if (!active.ok() || !ready(listener->fd(), POLLIN)) std::exit(4);
  auto passive = listener->accept();
  if (!passive || !ready(active->fd(), POLLOUT)) std::exit(5);
  Buffer bytes = test::pattern(33, 1);
  const IoVec pieces[] = {{bytes.data(), 11}, {bytes.data() + 11, 22}};
  // Nothing there yet.
  const IoVec whole{bytes.data(), bytes.size()};
  if (!passive->receive({&whole, 1}).would_block) std::exit(6);
  if (active->send(pieces).bytes != 33) std::exit(7);
  if (!ready(passive->fd(), POLLIN) || passive->receive({&whole, 1}).bytes != 33) std::exit(8);
  if (passive->send({&whole, 1}).bytes != 33) std::exit(9);
  passive->shut_write();
  if (!ready(active->fd(), POLLIN) || active->receive({&whole, 1}).bytes != 33) std::exit(10);
  TcpStream moved = std::move(*active);
  if (!ready(moved.fd(), POLLIN) || !moved.receive({&whole, 1}).end) std::exit(11);
  moved.reset();
  std::exit(0);
}

TEST_F(TcpStreamTraceTest, TheCallsOfAStreamAreInTheFile) {
  set_trace_for_death_test("t.pcapng");
  EXPECT_EXIT(talk(), ::testing::ExitedWithCode(0), "");
  ::unsetenv("WEFT_TRACE");
  const File file = read("t.pcapng");
  ASSERT_FALSE(file.packets.empty());
  // The accepted stream was the first to be used, so the file is from its side.
  const uint16_t here = load_be<uint16_t>(file.packets[1].data() + 20);
  EXPECT_THAT(story(here), ElementsAre("in SYN", "out SYN", "in", "in 33", "out 33", "out FIN"));
  EXPECT_TRUE(std::is_sorted(file.times.begin(), file.times.end()));
  EXPECT_EQ(load_be<uint32_t>(file.packets[0].data() + 12), INADDR_LOOPBACK);
}

TEST_F(TcpStreamTraceTest, WithoutTheOptionThereIsNone) {
  EXPECT_EXIT(talk(), ::testing::ExitedWithCode(0), "");
  EXPECT_THAT(files(), IsEmpty());
}

}  // namespace
}  // namespace weft::port
