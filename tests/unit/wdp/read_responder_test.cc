// The responder's side of UC Reads: spec/wdp-uc 5.3.

#include "wdp/read_responder.h"

#include "tests/unit/wdp/uc_receive_fixture.h"

namespace weft::wdp {
namespace {

struct ReadResponderTest : UcReceiveTest {
  ReadResponderTest() { configure({.max_payload = 448}); }  // STRIDE 400

  struct Request {
    uint32_t id = 1;
    uint32_t length = 0;  // of the whole Read
    uint32_t mo = 0;
    uint32_t range = 0;
    uint32_t attempt = 0;
    uint16_t stride = 0;
    std::optional<Stag> stag = {};
  };
  void ask(const Request& r) {
    Buffer payload(wire::WdpReadRange::kSize);
    wire::WdpReadRange{.length = r.range, .attempt = r.attempt}.encode(payload.data());
    give(encode({.psn = Psn{psn++},
                 .msn = Msn{++msn},
                 .mo = MessageOffset{r.mo},
                 .mlen = r.length,
                 .last = true,
                 .opcode = Opcode::read_request,
                 .stride = r.stride,
                 .stag = r.stag.value_or(stag),
                 .imm_or_read = r.id,
                 .to = test::address_of(target)},
                payload));
  }
  struct Answer {
    WdpData header;
    Buffer payload;
  };
  std::vector<Answer> answers() {
    std::vector<Answer> all;
    each_said([&](const WdpData& h, Bytes d) {
      all.push_back({h, Buffer(d.begin() + WdpData::kSize, d.end())});
    });
    return all;
  }
  // Offsets of the answer's segments, each with the right bytes of the target.
  std::vector<uint32_t> offsets() {
    std::vector<uint32_t> all;
    for (const Answer& a : answers()) {
      EXPECT_EQ(a.header.opcode, Opcode::read_response);
      EXPECT_TRUE(
          std::equal(a.payload.begin(), a.payload.end(), target.begin() + a.header.mo.value()));
      all.push_back(a.header.mo.value());
    }
    return all;
  }
  uint32_t msn = 0;
};
using Offsets = std::vector<uint32_t>;

TEST_F(ReadResponderTest, AnswersWithTheWholeReadsNumbers) {
  ask({.id = 0xabc, .length = 1000, .range = 1000});
  const auto a = answers();
  ASSERT_EQ(a.size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    const WdpData& h = a[i].header;
    EXPECT_EQ(h.opcode, Opcode::read_response);
    EXPECT_EQ(h.read_id(), ReadId{0xabc});
    EXPECT_EQ(h.mo.value(), i * 400);
    EXPECT_EQ(h.mlen, 1000U);
    EXPECT_EQ(h.stride, 400);
    EXPECT_EQ(h.last, i == 2);
    EXPECT_EQ(h.to.value(), i * 400);
    EXPECT_EQ(h.stag, Stag{});
    EXPECT_TRUE(std::equal(a[i].payload.begin(), a[i].payload.end(),
                           target.begin() + static_cast<ptrdiff_t>(i * 400)));
  }
  EXPECT_EQ(counters().reads_answered, 1U);
}

// "Responder rounds the range outward to its STRIDE."
TEST_F(ReadResponderTest, RoundsTheRangeOutward) {
  ask({.length = 3000, .mo = 500, .range = 400});
  EXPECT_EQ(offsets(), (Offsets{400, 800}));
  ask({.length = 3000, .mo = 2801, .range = 199, .attempt = 1});
  EXPECT_EQ(offsets(), (Offsets{2800}));
}

TEST_F(ReadResponderTest, GrantsAWishThatIsNeitherTooLargeNorTooSmall) {
  const auto granted = [&](uint16_t wish, uint32_t id) {
    ask({.id = id, .length = 3000, .range = 3000, .stride = wish});
    return answers().at(0).header.stride;
  };
  EXPECT_EQ(granted(0, 1), 400);
  EXPECT_EQ(granted(300, 2), 300);
  EXPECT_EQ(granted(400, 3), 400);
  EXPECT_EQ(granted(500, 4), 400);
  EXPECT_EQ(granted(1, 5), 400);
}

TEST_F(ReadResponderTest, AReadOfNothingIsAnEmptySegment) {
  ask({.stag = Stag{0xdead}});
  const auto a = answers();
  ASSERT_EQ(a.size(), 1U);
  EXPECT_TRUE(a[0].payload.empty());
  EXPECT_TRUE(a[0].header.last);
}

TEST_F(ReadResponderTest, AnswersInTheOrderOfTheRequests) {
  ask({.id = 1, .length = 1000, .range = 400});
  ask({.id = 2, .length = 1000, .range = 400});
  const auto a = answers();
  ASSERT_EQ(a.size(), 2U);
  EXPECT_EQ(a[0].header.read_id(), ReadId{1});
  EXPECT_EQ(a[1].header.read_id(), ReadId{2});
  EXPECT_NE(a[0].header.msn, a[1].header.msn);
}

// "ignore an exact (RID, attempt, MO) seen in the last 64"
TEST_F(ReadResponderTest, TheSameRequestIsAnsweredOnce) {
  ask({.length = 1000, .range = 400});
  ask({.length = 1000, .range = 400});
  EXPECT_EQ(offsets(), (Offsets{0}));
  EXPECT_EQ(drops(WdpDrop::repeated_read), 1U);
  ask({.length = 1000, .range = 400, .attempt = 1});
  ask({.length = 1000, .mo = 400, .range = 400, .attempt = 1});
  ask({.id = 2, .length = 1000, .range = 400, .attempt = 1});
  EXPECT_EQ(offsets(), (Offsets{0, 400, 0}));
}

// "total bytes queued per session <= IRD * 1 MiB, else drop"
TEST_F(ReadResponderTest, QueuesAsManyBytesAsItsIrdAllows) {
  Buffer big = pattern_bytes(8 << 20, 3);
  const Stag s = host->host.add_region(big);
  const uint32_t all = 8 << 20;
  const auto ask_big = [&](uint32_t id, uint32_t range) {
    Buffer payload(8);
    wire::WdpReadRange{.length = range}.encode(payload.data());
    give(encode({.psn = Psn{psn++},
                 .msn = Msn{++msn},
                 .mlen = all,
                 .last = true,
                 .opcode = Opcode::read_request,
                 .stag = s,
                 .imm_or_read = id,
                 .to = test::address_of(big)},
                payload));
  };
  for (uint32_t id = 1; id <= 4; ++id) ask_big(id, 1 << 20);  // IRD is 4
  EXPECT_EQ(drops(WdpDrop::read_queue_full), 0U);
  ask_big(5, 400);
  EXPECT_EQ(drops(WdpDrop::read_queue_full), 1U);
  EXPECT_EQ(answers().size(), 4 * ((1U << 20) / 400 + 1));
  ask_big(6, all);
  EXPECT_EQ(drops(WdpDrop::read_queue_full), 2U);
}

TEST_F(ReadResponderTest, QueuesSomeRequestsAndNoMore) {
  for (uint32_t i = 0; i < 80; ++i) ask({.id = i, .length = 10, .range = 10});
  EXPECT_EQ(drops(WdpDrop::too_many_reads), 80U - 4 - kMostReRequests);
}

TEST_F(ReadResponderTest, WithoutIrdNothingIsAnswered) {
  configure({.reads = false});
  ask({.length = 10, .range = 10});
  EXPECT_EQ(drops(WdpDrop::not_negotiated), 1U);
  EXPECT_TRUE(answers().empty());
}

TEST_F(ReadResponderTest, ForeignMemoryIsNotReadAndThePeerIsTold) {
  ask({.length = 10, .range = 10, .stag = Stag{0xdead}});
  ask({.id = 2, .length = 4001, .range = 10});
  Buffer secret = pattern_bytes(50, 1);
  const Stag writable =
      host->host.add_region(secret, static_cast<uint8_t>(work::Access::remote_write));
  ask({.id = 3, .length = 10, .range = 10, .stag = writable});
  EXPECT_EQ(drops(WdpDrop::protection), 3U);
  const auto c = said();
  ASSERT_EQ(c.size(), 3U);
  EXPECT_EQ(c[0].error(), wire::term::kProtectionInvalidStag);
  EXPECT_EQ(c[1].error(), wire::term::kProtectionBounds);
  EXPECT_EQ(load_be<uint32_t>(c[1].offending.data() + 36), 2U);
}

// spec/wdp-uc 3.3: what is untagged waits behind a gap. So a Read sees the Write before it.
TEST_F(ReadResponderTest, ARequestThatOvertookAWriteWaitsForIt) {
  const auto overtaken = cut(write(++msn, 100, 0));
  ask({.length = 100, .range = 100});
  EXPECT_TRUE(answers().empty());
  give(overtaken);
  const auto a = answers();
  ASSERT_EQ(a.size(), 1U);
  EXPECT_EQ(a[0].payload, pattern_bytes(100, msn - 1));
  // Where it is lost the Read waits no longer than that.
  ++psn;
  ask({.id = 2, .length = 100, .range = 100});
  EXPECT_TRUE(answers().empty());
  later(kHoldFor);
  EXPECT_EQ(offsets(), (Offsets{0}));
}

// The program unmapped what it had registered; the kernel says EFAULT.
TEST_F(ReadResponderTest, TheKernelMissesMemoryThatIsRead) {
  ask({.length = 4000, .range = 4000});
  ask({.id = 2, .length = 10, .range = 10});
  // A request of our own that waits has nothing to do with it.
  session->hold_requests(true);
  host->host.post({.wr_id = 5, .operation = work::Operation::send}, {});
  Train t;
  session->fill(t, now);
  EXPECT_EQ(t.datagrams(), 11U);
  session->own_memory_lost(now);
  const auto c = said();
  ASSERT_EQ(c.size(), 1U);
  EXPECT_EQ(c[0].type, wire::CtlType::err);
  EXPECT_TRUE(host->host.sent.empty());
  EXPECT_FALSE(host->host.end);
  ask({.id = 3, .length = 10, .range = 10});
  EXPECT_EQ(offsets(), (Offsets{0}));
}

TEST_F(ReadResponderTest, MemoryThatGoesAwayEndsTheAnswer) {
  Buffer big = pattern_bytes(100'000, 3);
  const Stag s = host->host.add_region(big);
  Buffer payload(8);
  wire::WdpReadRange{.length = 100'000}.encode(payload.data());
  give(encode({.psn = Psn{psn++},
               .msn = Msn{++msn},
               .mlen = 100'000,
               .last = true,
               .opcode = Opcode::read_request,
               .stag = s,
               .imm_or_read = 1,
               .to = test::address_of(big)},
              payload));
  Train t;
  session->fill(t, now);
  EXPECT_EQ(t.datagrams(), 64U);
  host->host.regions.erase(s);
  session->llp_took_all(now);
  EXPECT_TRUE(answers().empty());
  EXPECT_EQ(counters().errors_sent, 1U);
  EXPECT_FALSE(session->ready(now));
  // The next one has its turn.
  ask({.id = 2, .length = 10, .range = 10});
  EXPECT_EQ(offsets(), (Offsets{0}));
}

}  // namespace
}  // namespace weft::wdp
