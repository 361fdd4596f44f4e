#include "base/types.h"

#include <gtest/gtest.h>

#include <concepts>
#include <tuple>

namespace weft {
namespace {

template <class A, class B>
concept Mixes = requires(A a, B b) {
  a == b;
}
|| requires(A a, B b) {
  a < b;
}
|| std::constructible_from<A, B> || std::assignable_from<A&, B> || requires(A a, B b) {
  a + b;
};

// No number of RDMA can stand in for another, in either direction.
template <class A, class... Others>
constexpr bool mixes_with_none() {
  return (!Mixes<A, Others> && ...);
}
static_assert(mixes_with_none<Stag, TaggedOffset, Msn, MessageOffset, QueueNumber, Qpn>() &&
              mixes_with_none<TaggedOffset, Stag, Msn, MessageOffset, QueueNumber, Qpn>() &&
              mixes_with_none<Msn, Stag, TaggedOffset, MessageOffset, QueueNumber, Qpn>() &&
              mixes_with_none<MessageOffset, Stag, TaggedOffset, Msn, QueueNumber, Qpn>() &&
              mixes_with_none<QueueNumber, Stag, TaggedOffset, Msn, MessageOffset, Qpn>() &&
              mixes_with_none<Qpn, Stag, TaggedOffset, Msn, MessageOffset, QueueNumber>());

// Those of WDP, among themselves and against the ones that stand beside them in a header.
static_assert(mixes_with_none<Psn, Msn, MessageOffset, SessionToken, Xid, ReadId, QKey, Stag>() &&
              mixes_with_none<SessionToken, Psn, Xid, QKey, Qpn, HandshakeCookie, Stag>() &&
              mixes_with_none<Xid, Psn, SessionToken, ReadId, QKey, Qpn, HandshakeCookie>() &&
              mixes_with_none<ReadId, Psn, Msn, SessionToken, Xid, QKey, Stag, TaggedOffset>() &&
              mixes_with_none<QKey, Psn, Msn, SessionToken, Xid, ReadId, Qpn>() &&
              mixes_with_none<HandshakeCookie, TaggedOffset, SessionToken, Xid>());

template <class F, class A>
concept CallableWith = requires(F f, A a) {
  f(a);
};
static_assert(CallableWith<decltype([](Msn m) { return next(m); }), Msn>);
static_assert(!CallableWith<decltype([](Msn m) { return next(m); }), MessageOffset>);
static_assert(!CallableWith<decltype([](Qpn q) { return port_of(q); }), Stag>);
static_assert(!CallableWith<decltype([](Qpn q) { return port_of(q); }), uint32_t>);

// RFC 5040 section 4.1 and RFC 7306; spec/rdmap 1.4.
static_assert(kSendQueue.value() == 0 && kReadRequestQueue.value() == 1 &&
              kTerminateQueue.value() == 2 && kAtomicResponseQueue.value() == 3);

TEST(Msn, WrapsThroughZero) {
  // spec/rdmap 2.1: modulo 2^32, 0 is a legal value after the wrap.
  EXPECT_EQ(next(Msn{1}), Msn{2});
  EXPECT_EQ(next(Msn{0xffffffff}), Msn{0});
  EXPECT_EQ(next(Msn{0}), Msn{1});
}

TEST(Psn, WrapsThroughZero) {
  EXPECT_EQ(next(Psn{0xffffffff}), Psn{0});
  EXPECT_EQ(Psn{0xfffffff0} + 0x20, Psn{0x10});
}

TEST(Serial, DistanceIsModulo2To32) {
  // spec/wdp 2.4: serial arithmetic for PSN and MSN.
  struct Row {
    uint32_t from, to;
    int32_t distance;
  };
  const Row rows[] = {{5, 5, 0},
                      {5, 6, 1},
                      {6, 5, -1},
                      {0xffffffff, 0, 1},
                      {0, 0xffffffff, -1},
                      {0xfffffff0, 0x10, 0x20},
                      {0x10, 0xfffffff0, -0x20},
                      {0x80000000, 0xffffffff, 0x7fffffff},
                      {0, 0x80000000, INT32_MIN}};
  for (const Row& r : rows) {
    EXPECT_EQ(distance(Psn{r.from}, Psn{r.to}), r.distance) << r.from << " to " << r.to;
    EXPECT_EQ(distance(Msn{r.from}, Msn{r.to}), r.distance) << r.from << " to " << r.to;
  }
}

TEST(Offsets, MoveByBytes) {
  EXPECT_EQ(TaggedOffset{0x7f0000001000} + 1428, TaggedOffset{0x7f0000001594});
  EXPECT_EQ(MessageOffset{1424} + 1424, MessageOffset{2848});
}

TEST(Qpn, IsPortAndIndex) {
  // Example E12: QPN 40000/2 is 9c4002.
  EXPECT_EQ(make_qpn(40000, 2), Qpn{0x9c4002});
  EXPECT_EQ(port_of(Qpn{0x9c4002}), 40000);
  EXPECT_EQ(index_of(Qpn{0x9c4002}), 2);
  for (const uint16_t port : {1024, 24575, 32768, 65534}) {
    for (const uint8_t index : {1, 127, 254}) {
      const Qpn q = make_qpn(port, index);
      EXPECT_LE(q.value(), 0xffffffU);
      EXPECT_EQ(std::make_tuple(port_of(q), index_of(q)), std::make_tuple(port, index));
    }
  }
}

}  // namespace
}  // namespace weft
