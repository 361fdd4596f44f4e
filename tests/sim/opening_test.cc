// Who may speak first (spec/mpa 2.4, 2.5; RFC 5044 section 7.1.2, RFC 6581 section 9).

#include <gtest/gtest.h>

#include "tests/support/pair.h"

namespace weft::test {
namespace {

using namespace std::chrono_literals;
using work::Operation;
using work::Status;

// A Send of B's, posted before anything was said.
struct ServerSpeaksFirst {
  explicit ServerSpeaksFirst(const PairOptions& o) : p(o), data(pattern_bytes(100, 1)), box(100) {
    p.a.host.post_receive(1, {segment(p.a.host, box)});
    p.b.host.post({.operation = Operation::send, .signaled = true}, {segment(p.b.host, data)});
  }
  Pair p;
  Buffer data;
  Buffer box;
};

PairOptions opened_by(bool extension, mpa::Rtr rtr) {
  PairOptions o;
  o.mpa.extension = extension;
  o.mpa.peer_to_peer = rtr != mpa::Rtr::none;
  o.mpa.rtr = rtr;
  return o;
}

TEST(Opening, EveryRtrKindLetsTheResponderSpeak) {
  for (const bool extension : {true, false}) {
    for (const auto rtr : {mpa::Rtr::fpdu, mpa::Rtr::write, mpa::Rtr::read}) {
      ServerSpeaksFirst s(opened_by(extension, rtr));
      EXPECT_FALSE(s.p.b.host.ready);
      s.p.drive(1ms);
      EXPECT_TRUE(s.p.b.host.ready);
      EXPECT_EQ(s.box, s.data) << "without waiting for any timer";
    }
  }
}

TEST(Opening, AnInitiatorWithNothingToSayOpensItAllTheSame) {
  ServerSpeaksFirst weft(opened_by(true, mpa::Rtr::none));
  weft.p.drive(1ms);
  EXPECT_EQ(weft.box, weft.data);
  ServerSpeaksFirst plain(opened_by(false, mpa::Rtr::none));
  plain.p.drive(9ms);
  EXPECT_FALSE(plain.p.b.host.ready);
  plain.p.drive(2ms);
  EXPECT_EQ(plain.box, plain.data);
}

TEST(Opening, TheRtrReadLeavesTheReadsAlone) {
  for (const uint16_t ird : {0, 1, 4}) {
    PairOptions o = opened_by(true, mpa::Rtr::read);
    o.mpa.ird = o.mpa.ord = ird;
    Pair p{o};
    Buffer source = pattern_bytes(1000, 3);
    Buffer sink(1000);
    if (ird > 0) {
      p.a.host.post({.operation = Operation::read,
                     .signaled = true,
                     .remote_stag = p.b.host.add_region(source),
                     .remote_to = address_of(source)},
                    {segment(p.a.host, sink)});
    }
    p.drive();
    EXPECT_FALSE(p.a.host.end || p.b.host.end);
    if (ird > 0) {
      EXPECT_EQ(sink, source);
    }
  }
}

// siw may sleep over our first FPDU until another segment comes (spec/mpa 2.5.5).
TEST(Opening, AKickWakesASleepingPeer) {
  Pair p{opened_by(false, mpa::Rtr::none)};
  Buffer data = pattern_bytes(10, 1);
  Buffer to(10);
  p.a.host.post({.operation = Operation::write,
                 .signaled = true,
                 .remote_stag = p.b.host.add_region(to),
                 .remote_to = address_of(to)},
                {segment(p.a.host, data)});
  p.b.deaf(true);
  p.drive(4ms);
  const size_t first = p.link.b().readable();
  EXPECT_GT(first, 0U);
  p.drive(2ms);
  EXPECT_EQ(p.link.b().readable(), first + wire::fpdu_size(14)) << "an empty Write";
  p.b.deaf(false);
  p.drive();
  EXPECT_EQ(to, data);
  EXPECT_FALSE(p.a.host.end || p.b.host.end);
}

}  // namespace
}  // namespace weft::test
