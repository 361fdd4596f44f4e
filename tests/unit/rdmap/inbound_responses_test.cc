#include "rdmap/inbound_responses.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/rdmap/send_path_fixture.h"

namespace weft::rdmap {
namespace {

using wire::Refusal;
namespace term = wire::term;

class InboundResponsesTest : public SendPathTest {
 protected:
  InboundResponsesTest() { responses.emplace(*path); }

  void read_into(Buffer& memory) {
    post({.operation = work::Operation::read, .signaled = true}, memory);
    say();
  }
  // Its id.
  uint32_t add_into(Buffer& memory) {
    post({.operation = work::Operation::fetch_add, .signaled = true}, memory);
    say();
    return path->reads().oldest()->request_id;
  }
  // A segment for the oldest read.
  ddp::Segment segment(uint64_t to, size_t payload, bool last) const {
    ddp::Segment s;
    s.control = {.tagged = true, .last = last, .opcode = Opcode::read_response};
    s.stag = path->reads().oldest()->sink;
    s.to = TaggedOffset{to};
    s.payload = static_cast<uint32_t>(payload);
    return s;
  }
  // These bytes of the response come, and the last ones of all if `last`.
  std::optional<wire::TermError> hears(uint64_t to, const Buffer& data, bool last) {
    const auto s = segment(to, data.size(), last);
    if (auto v = responses->open_read(s); !v.ok()) return v.error();
    PieceList places;
    if (auto v = responses->where_read(0, data.size(), places); !v.ok()) return v.error();
    EXPECT_EQ(places.bytes(), data.size());
    size_t done = 0;
    for (const IoVec& p : places.pieces()) {
      std::memcpy(p.iov_base, data.data() + done, p.iov_len);
      done += p.iov_len;
    }
    responses->read_placed(s);
    return {};
  }
  void expect_refused(const mpa::Verdict& v, wire::TermError error, Refusal why) {
    ASSERT_FALSE(v.ok());
    EXPECT_EQ(v.error(), error);
    EXPECT_EQ(v.error().why, why);
  }
  mpa::Verdict atomic_response(uint32_t id, uint64_t original) {
    std::array<std::byte, wire::AtomicResponse::kSize> bytes{};
    wire::AtomicResponse{.request_id = id, .original = original}.encode(bytes.data());
    return responses->deliver_atomic(bytes.data());
  }
  mpa::Verdict report(uint64_t run, uint32_t stag = 0) {
    ddp::Segment s;
    s.control = {.tagged = true, .last = true, .opcode = Opcode::delivered};
    s.to = TaggedOffset{run};
    s.stag = Stag{stag};
    return responses->deliver_report(s);
  }

  std::optional<InboundResponses> responses;
  Buffer sink = Buffer(90);
};

TEST_F(InboundResponsesTest, AReadIsCompleteWithItsLastByte) {
  Buffer second(40);
  read_into(sink);
  read_into(second);
  const Buffer data = pattern_bytes(90, 3);
  EXPECT_FALSE(hears(0, {data.begin(), data.begin() + 50}, false));
  EXPECT_TRUE(completed().empty());
  EXPECT_FALSE(hears(50, {data.begin() + 50, data.end()}, true));
  EXPECT_EQ(sink, data);
  EXPECT_EQ(completed(), Ids{1});
  const Buffer rest = pattern_bytes(40, 4);
  EXPECT_FALSE(hears(0, rest, true)) << "the next one is the oldest now";
  EXPECT_EQ(second, rest);
  EXPECT_EQ(completed(), (Ids{1, 2}));
}

TEST_F(InboundResponsesTest, APartOfASegmentGoesBehindWhatIsThere) {
  read_into(sink);
  EXPECT_FALSE(hears(0, pattern_bytes(30, 1), false));
  ASSERT_TRUE(responses->open_read(segment(30, 60, true)).ok());
  PieceList places;
  ASSERT_TRUE(responses->where_read(20, 40, places).ok());
  EXPECT_EQ(places.pieces().front().iov_base, sink.data() + 50);
  EXPECT_EQ(places.bytes(), 40U);
}

TEST_F(InboundResponsesTest, AResponseFitsItsRequest) {
  ddp::Segment unasked;
  unasked.control = {.tagged = true, .last = true, .opcode = Opcode::read_response};
  expect_refused(responses->open_read(unasked), term::kTaggedInvalidStag,
                 Refusal::read_response_unasked);
  read_into(sink);
  auto foreign = segment(0, 90, true);
  foreign.stag = Stag{foreign.stag.value() + 1};
  expect_refused(responses->open_read(foreign), term::kTaggedInvalidStag,
                 Refusal::read_response_unasked);
  EXPECT_FALSE(hears(0, pattern_bytes(40, 1), false));
  const ddp::Segment misfits[] = {
      segment(0, 50, true),    // again
      segment(41, 49, true),   // with a gap
      segment(40, 51, true),   // beyond its end
      segment(40, 51, false),  // and still not the last
      segment(40, 50, false),  // its end, and not the last
      segment(40, 49, true),   // the last, and not its end
  };
  for (const auto& s : misfits) {
    SCOPED_TRACE(s.to.value());
    SCOPED_TRACE(s.payload);
    expect_refused(responses->open_read(s), term::kTaggedBounds, Refusal::read_response_misfit);
  }
  EXPECT_TRUE(responses->open_read(segment(40, 50, true)).ok());
}

TEST_F(InboundResponsesTest, ALostSinkBlamesItsRequest) {
  read_into(sink);
  ASSERT_TRUE(responses->open_read(segment(0, 90, true)).ok());
  host->regions.clear();
  PieceList places;
  expect_refused(responses->where_read(0, 90, places), term::kLocalCatastrophic,
                 Refusal::own_sink_memory);
  EXPECT_EQ(host->send_queue().at(0).status, work::Status::local_protection);
}

TEST_F(InboundResponsesTest, AnUnreachableSinkBlamesItsRequest) {
  read_into(sink);
  const auto error = responses->unreachable();
  EXPECT_EQ(error, term::kLocalCatastrophic);
  EXPECT_EQ(error.why, Refusal::own_sink_memory);
  EXPECT_EQ(host->send_queue().at(0).status, work::Status::local_protection);
}

// RFC 7306 section 5: it names its request.
TEST_F(InboundResponsesTest, AnAtomicResponseGoesToItsRequest) {
  Buffer word(8);
  expect_refused(atomic_response(0, 1), term::kOperationUnspecified,
                 Refusal::atomic_response_unasked);
  const uint32_t id = add_into(word);
  expect_refused(atomic_response(id + 1, 1), term::kOperationUnspecified,
                 Refusal::atomic_response_unasked);
  ASSERT_TRUE(atomic_response(id, 0x1122334455667788U).ok());
  uint64_t original = 0;
  std::memcpy(&original, word.data(), sizeof original);
  EXPECT_EQ(original, 0x1122334455667788U);
  EXPECT_EQ(completed(), Ids{1});
  expect_refused(atomic_response(id, 1), term::kOperationUnspecified,
                 Refusal::atomic_response_unasked);
}

TEST_F(InboundResponsesTest, ReadsAndAtomicsAreNotTakenForEachOther) {
  Buffer word(8);
  const uint32_t id = add_into(word);
  auto s = segment(0, 8, true);
  expect_refused(responses->open_read(s), term::kTaggedInvalidStag, Refusal::read_response_unasked);
  ASSERT_TRUE(atomic_response(id, 1).ok());
  read_into(sink);
  expect_refused(atomic_response(path->reads().oldest()->request_id, 1),
                 term::kOperationUnspecified, Refusal::atomic_response_unasked);
}

TEST_F(InboundResponsesTest, AnAtomicWithoutItsMemoryIsBlamed) {
  Buffer word(8);
  const uint32_t id = add_into(word);
  host->regions.clear();
  expect_refused(atomic_response(id, 1), term::kLocalCatastrophic, Refusal::own_sink_memory);
  EXPECT_EQ(host->send_queue().at(0).status, work::Status::local_protection);
}

// spec/rdmap 4.1.
TEST_F(InboundResponsesTest, TheLongestRunIsTold) {
  EXPECT_FALSE(responses->take_report());
  for (int i = 0; i < 3; ++i) post({.operation = work::Operation::send}, small);
  say();
  ASSERT_TRUE(report(2).ok());
  ASSERT_TRUE(report(1, wire::kDeliveredWaiting | 17).ok());
  const auto told = responses->take_report();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->run, 2U);
  EXPECT_EQ(told->waits_with_timer, 17);
  EXPECT_FALSE(responses->take_report()) << "once";
  ASSERT_TRUE(report(1).ok());
  EXPECT_EQ(responses->take_report()->run, 1U);
}

TEST_F(InboundResponsesTest, TheLastReportSaysWhetherAMessageWaits) {
  post({.operation = work::Operation::send}, small);
  say();
  ASSERT_TRUE(report(0, wire::kDeliveredWaiting | 3).ok());
  ASSERT_TRUE(report(1).ok());
  EXPECT_FALSE(responses->take_report()->waits_with_timer);
}

TEST_F(InboundResponsesTest, AReportOfMoreThanWasSentIsRefused) {
  post({.operation = work::Operation::send}, small);
  say();
  expect_refused(report(2), term::kOperationCatastrophicStream, Refusal::delivered_beyond_sent);
  EXPECT_FALSE(responses->take_report());
  EXPECT_TRUE(report(1).ok());
}

TEST_F(InboundResponsesTest, AReportIsOneSegmentWithoutBytes) {
  ddp::Segment s;
  s.control = {.tagged = true, .last = true, .opcode = Opcode::delivered};
  EXPECT_TRUE(InboundResponses::open_report(s).ok());
  s.payload = 1;
  expect_refused(InboundResponses::open_report(s), term::kTaggedBounds,
                 Refusal::delivered_malformed);
  s.payload = 0;
  s.control.last = false;
  expect_refused(InboundResponses::open_report(s), term::kTaggedBounds,
                 Refusal::delivered_malformed);
}

}  // namespace
}  // namespace weft::rdmap
