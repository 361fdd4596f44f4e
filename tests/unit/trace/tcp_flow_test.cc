#include "trace/tcp_flow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/hex.h"
#include "wire/fpdu.h"
#include "wire/mpa_start.h"

namespace weft::trace {
namespace {

using test::Buffer;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using namespace tcp_flag;

const Endpoint kHere{Gid::from_ipv4(0xc0000201), 4791};
const Endpoint kThere{Gid::from_ipv4(0xc0000202), 18515};

// A segment as a reader of the file finds it.
struct Seen {
  Direction direction;
  uint8_t flags;
  uint32_t sequence;
  uint32_t acknowledgment;
  size_t size;  // of the payload
  friend bool operator==(const Seen&, const Seen&) = default;
};
std::ostream& operator<<(std::ostream& o, const Seen& s) {
  return o << (s.direction == Direction::out ? "out" : "in") << " flags " << unsigned{s.flags}
           << " seq " << s.sequence << " ack " << s.acknowledgment << " size " << s.size;
}

class Recorder final : public PacketSink {
 public:
  void packet(const Packet& p) override {
    const std::byte* ip = p.headers.data();
    const std::byte* tcp = ip + 20;
    const bool out = load_be<uint16_t>(tcp) == kHere.port;
    EXPECT_EQ(out, p.direction == Direction::out) << "addresses and direction disagree";
    EXPECT_EQ(load_be<uint32_t>(ip + 12), out ? kHere.address.ipv4() : kThere.address.ipv4());
    EXPECT_EQ(load_be<uint32_t>(ip + 16), out ? kThere.address.ipv4() : kHere.address.ipv4());
    EXPECT_EQ(load_be<uint16_t>(tcp + 2), out ? kThere.port : kHere.port);
    EXPECT_EQ(load_be<uint16_t>(ip + 2), p.headers.size() + p.size);
    EXPECT_EQ(p.at, time);
    seen.push_back({p.direction, std::to_integer<uint8_t>(tcp[13]), load_be<uint32_t>(tcp + 4),
                    load_be<uint32_t>(tcp + 8), p.size});
    Buffer& bytes = p.direction == Direction::out ? sent : received;
    size_t left = p.kept;
    for (const IoVec& v : p.payload) {
      const size_t n = std::min(left, v.iov_len);
      const auto* b = static_cast<const std::byte*>(v.iov_base);
      bytes.insert(bytes.end(), b, b + n);
      left -= n;
    }
    EXPECT_EQ(left, 0U) << "the payload has less than is to be kept";
  }
  std::vector<Seen> take() { return std::exchange(seen, {}); }

  int64_t time = 5;
  std::vector<Seen> seen;
  Buffer sent;
  Buffer received;
};

class TcpFlowTest : public ::testing::Test {
 protected:
  TcpFlow& flow(bool active = true, size_t keep = 0) {
    flow_.emplace(recorder, kHere, kThere, active, keep);
    flow_->open(recorder.time);
    return *flow_;
  }
  // An open one, past its handshake.
  TcpFlow& connected(size_t keep = 0) {
    TcpFlow& f = flow(true, keep);
    recorder.take();
    return f;
  }
  void move(TcpFlow& f, Direction direction, Buffer bytes) {
    const IoVec v{bytes.data(), bytes.size()};
    f.moved(recorder.time, direction, {&v, 1}, bytes.size());
  }
  Recorder recorder;

 private:
  std::optional<TcpFlow> flow_;
};

TEST_F(TcpFlowTest, TheSideThatConnectsSendsTheSyn) {
  flow(true);
  EXPECT_THAT(recorder.take(), ElementsAre(Seen{Direction::out, kSyn, 0, 0, 0},
                                           Seen{Direction::in, kSyn | kAck, 0, 1, 0},
                                           Seen{Direction::out, kAck, 1, 1, 0}));
  flow(false);
  EXPECT_THAT(recorder.take(), ElementsAre(Seen{Direction::in, kSyn, 0, 0, 0},
                                           Seen{Direction::out, kSyn | kAck, 0, 1, 0},
                                           Seen{Direction::in, kAck, 1, 1, 0}));
}

TEST_F(TcpFlowTest, EachSideAcknowledgesWhatTheOtherHasSent) {
  TcpFlow& f = connected();
  move(f, Direction::out, test::pattern(100, 1));
  move(f, Direction::in, test::pattern(30, 2));
  move(f, Direction::in, test::pattern(5, 3));
  move(f, Direction::out, test::pattern(1, 4));
  EXPECT_THAT(recorder.take(), ElementsAre(Seen{Direction::out, kPsh | kAck, 1, 1, 100},
                                           Seen{Direction::in, kPsh | kAck, 1, 101, 30},
                                           Seen{Direction::in, kPsh | kAck, 31, 101, 5},
                                           Seen{Direction::out, kPsh | kAck, 101, 36, 1}));
  EXPECT_EQ(recorder.sent, test::join({test::pattern(100, 1), test::pattern(1, 4)}));
  EXPECT_EQ(recorder.received, test::join({test::pattern(30, 2), test::pattern(5, 3)}));
}

TEST_F(TcpFlowTest, OfWhatWasOfferedOnlyWhatMovedIsThere) {
  TcpFlow& f = connected();
  Buffer one = test::pattern(10, 1);
  Buffer two = test::pattern(10, 2);
  const IoVec pieces[] = {{one.data(), one.size()}, {nullptr, 0}, {two.data(), two.size()}};
  f.moved(5, Direction::out, pieces, 13);
  f.moved(5, Direction::out, pieces, 0);
  EXPECT_THAT(recorder.take(), ElementsAre(Seen{Direction::out, kPsh | kAck, 1, 1, 13}));
  EXPECT_EQ(recorder.sent, test::join({one, Bytes{two}.first(3)}));
}

TEST_F(TcpFlowTest, LongTransfersAreSeveralSegments) {
  TcpFlow& f = connected();
  const Buffer bytes = test::pattern(2 * kMostPayload + 10, 1);
  Buffer copy = bytes;
  // The pieces' ends and the segments' do not meet.
  const IoVec pieces[] = {{copy.data(), 1000}, {copy.data() + 1000, copy.size() - 1000}};
  f.moved(5, Direction::in, pieces, copy.size());
  const auto most = static_cast<uint32_t>(kMostPayload);
  EXPECT_THAT(recorder.take(),
              ElementsAre(Seen{Direction::in, kPsh | kAck, 1, 1, kMostPayload},
                          Seen{Direction::in, kPsh | kAck, 1 + most, 1, kMostPayload},
                          Seen{Direction::in, kPsh | kAck, 1 + 2 * most, 1, 10}));
  EXPECT_EQ(recorder.received, bytes);
}

TEST_F(TcpFlowTest, OneSidedTrafficIsAcknowledgedInBetween) {
  TcpFlow& f = connected();
  const Buffer kilobytes = test::pattern(60'000, 1);
  for (int i = 0; i < 100; ++i) move(f, Direction::out, kilobytes);
  size_t unacknowledged = 0;
  size_t acks = 0;
  for (const Seen& s : recorder.take()) {
    if (s.direction == Direction::out) {
      unacknowledged += s.size;
      EXPECT_LE(unacknowledged, 1024U * 1024 + 60'000);
      continue;
    }
    EXPECT_EQ(s.flags, kAck);
    EXPECT_EQ(s.size, 0U);
    unacknowledged = 0;
    ++acks;
  }
  EXPECT_EQ(acks, 5U) << "6 MB, one for each of at least 1 MiB";
}

TEST_F(TcpFlowTest, SequenceNumbersWrap) {
  Buffer bytes(64 << 20);
  const IoVec v{bytes.data(), bytes.size()};
  class Count final : public PacketSink {
   public:
    void packet(const Packet& p) override {
      if (p.direction == Direction::in) return;
      EXPECT_EQ(load_be<uint32_t>(p.headers.data() + 24), next);
      next += static_cast<uint32_t>(p.size);
    }
    uint32_t next = 0;
  } count;
  TcpFlow long_one{count, kHere, kThere, false, 0};
  for (int i = 0; i < 65; ++i) long_one.moved(5, Direction::out, {&v, 1}, bytes.size());
  EXPECT_EQ(count.next, 64U << 20) << "65 times 64 MiB are 64 MiB above 2^32";
}

TEST_F(TcpFlowTest, FinsOfBothSides) {
  TcpFlow& f = connected();
  move(f, Direction::out, test::pattern(9, 1));
  f.finish(5, Direction::out);
  f.finish(5, Direction::out);
  move(f, Direction::in, test::pattern(4, 1));
  f.finish(5, Direction::in);
  f.close(5);
  EXPECT_THAT(recorder.take(), ElementsAre(Seen{Direction::out, kPsh | kAck, 1, 1, 9},
                                           Seen{Direction::out, kFin | kAck, 10, 1, 0},
                                           Seen{Direction::in, kPsh | kAck, 1, 11, 4},
                                           Seen{Direction::in, kFin | kAck, 5, 11, 0}));
}

TEST_F(TcpFlowTest, AClosedConnectionHasItsFinAndNothingMore) {
  TcpFlow& f = connected();
  f.close(5);
  f.close(5);
  move(f, Direction::in, test::pattern(4, 1));
  f.reset(5, Direction::in);
  EXPECT_THAT(recorder.take(), ElementsAre(Seen{Direction::out, kFin | kAck, 1, 1, 0}));
}

TEST_F(TcpFlowTest, NothingFollowsAReset) {
  TcpFlow& f = connected();
  f.reset(5, Direction::in);
  f.reset(5, Direction::out);
  move(f, Direction::out, test::pattern(4, 1));
  f.finish(5, Direction::out);
  f.close(5);
  EXPECT_THAT(recorder.take(), ElementsAre(Seen{Direction::in, kRst | kAck, 1, 1, 0}));
}

Buffer start_up(bool markers = false) {
  Buffer b(wire::MpaStart::kSize);
  wire::MpaStart{.kind = wire::MpaStart::Kind::request, .markers = markers}.encode(b.data());
  return b;
}
Buffer fpdu(size_t ulpdu, uint64_t seed) {
  Buffer b = test::pattern(wire::fpdu_size(ulpdu), seed);
  store_be(b.data(), static_cast<uint16_t>(ulpdu));
  return b;
}

TEST_F(TcpFlowTest, WithASnapLengthEachFrameIsAPacket) {
  TcpFlow& f = connected(50);
  const Buffer small = fpdu(14, 1);   // 20 bytes
  const Buffer large = fpdu(200, 2);  // 208 bytes
  move(f, Direction::out, test::join({start_up(), small, Bytes{large}.first(100)}));
  move(f, Direction::out, test::join({Bytes{large}.subspan(100), small}));
  EXPECT_THAT(recorder.take(), ElementsAre(Seen{Direction::out, kPsh | kAck, 1, 1, 20},
                                           Seen{Direction::out, kPsh | kAck, 21, 1, 20},
                                           Seen{Direction::out, kPsh | kAck, 41, 1, 208},
                                           Seen{Direction::out, kPsh | kAck, 249, 1, 20}));
  EXPECT_EQ(recorder.sent, test::join({start_up(), small, Bytes{large}.first(50), small}));
}

TEST_F(TcpFlowTest, WithASnapLengthTheEndShowsUnfinishedFrames) {
  TcpFlow& f = connected(50);
  move(f, Direction::out, test::join({start_up(), Bytes{fpdu(100, 1)}.first(60)}));
  move(f, Direction::in, test::join({start_up(), Bytes{fpdu(100, 1)}.first(1)}));
  recorder.take();
  f.close(5);
  EXPECT_THAT(recorder.take(), ElementsAre(Seen{Direction::out, kPsh | kAck, 21, 21, 60},
                                           Seen{Direction::in, kPsh | kAck, 21, 81, 1},
                                           Seen{Direction::out, kFin | kAck, 81, 22, 0}));
}

TEST_F(TcpFlowTest, WithASnapLengthTheLargestFpduIsTwoPackets) {
  TcpFlow& f = connected(16);
  move(f, Direction::out, start_up());
  recorder.take();
  recorder.sent.clear();
  move(f, Direction::out, fpdu(65535, 1));
  const size_t rest = wire::fpdu_size(wire::kMaxUlpdu) - kMostPayload;
  EXPECT_THAT(recorder.take(),
              ElementsAre(Seen{Direction::out, kPsh | kAck, 21, 1, kMostPayload},
                          Seen{Direction::out, kPsh | kAck, 21 + uint32_t{kMostPayload}, 1, rest}));
  EXPECT_EQ(recorder.sent.size(), 16U);
}

// RFC 5044 section 7.1: M in one direction's start-up frame means markers in the other's FPDUs.
TEST_F(TcpFlowTest, WithASnapLengthADirectionWithMarkersIsCutByCalls) {
  TcpFlow& f = connected(16);
  move(f, Direction::out, start_up(true));
  move(f, Direction::in, start_up());
  recorder.take();
  move(f, Direction::in, Buffer(test::pattern(40, 1)));
  move(f, Direction::out, test::join({fpdu(14, 1), fpdu(14, 2)}));
  EXPECT_THAT(recorder.take(), ElementsAre(Seen{Direction::in, kPsh | kAck, 21, 21, 40},
                                           Seen{Direction::out, kPsh | kAck, 21, 61, 20},
                                           Seen{Direction::out, kPsh | kAck, 41, 61, 20}));
}

// A socket that is connected with itself has no start-up.
TEST_F(TcpFlowTest, BothEndsTheSame) {
  class Sizes final : public PacketSink {
   public:
    void packet(const Packet& p) override {
      if (p.size > 0) sizes.push_back(p.size);
    }
    std::vector<size_t> sizes;
  } sink;
  TcpFlow f{sink, kHere, kHere, true, 16};
  move(f, Direction::out, test::join({fpdu(14, 1), fpdu(100, 2)}));
  EXPECT_THAT(sink.sizes, ElementsAre(20U, 108U));
}

}  // namespace
}  // namespace weft::trace
