// What a stream says, and in which order.

#include <gtest/gtest.h>

#include <algorithm>

#include "base/slow_copy.h"
#include "tests/support/script_peer.h"

namespace weft::rdmap {
namespace {

using test::Buffer;
using test::delivered;
using test::names;
using test::pattern_bytes;
using test::script_config;
using test::ScriptPeer;
using test::segment;
using test::tagged;
using test::untagged;
using Output = Stream::Output;
namespace term = wire::term;

// A region of the stream's, and Read Requests for it.
struct Source {
  explicit Source(ScriptPeer& p, size_t n)
      : memory(pattern_bytes(n, 4)), stag(p.host.add_region(memory)) {}
  Buffer request(uint32_t msn, uint32_t size, size_t offset = 0) {
    return test::read_request(msn, {.sink_stag = Stag{0x500 + msn},
                                    .sink_to = TaggedOffset{7000},
                                    .size = size,
                                    .source_stag = stag,
                                    .source_to = test::address_of(memory, offset)});
  }
  Buffer memory;
  Stag stag;
};

// spec/rdmap 2.3, 1.5: starting exactly at the sink's STag and TO, contiguous, L on the last.
TEST(StreamOutput, AReadIsAnsweredFromItsSinkOn) {
  ScriptPeer p(script_config(false));
  Source s(p, 5000);
  p.hears(s.request(1, 4000, 100));
  const auto frames = p.says();
  ASSERT_EQ(names(frames), "RDMA Read Response, RDMA Read Response, RDMA Read Response");
  Buffer all;
  for (const auto& f : frames) {
    EXPECT_EQ(f.stag, Stag{0x501});
    EXPECT_EQ(f.to, 7000 + all.size());
    all.insert(all.end(), f.payload.begin(), f.payload.end());
    EXPECT_EQ(f.control.last, all.size() == 4000);
  }
  EXPECT_EQ(all, (Buffer{s.memory.begin() + 100, s.memory.begin() + 4100}));
}

TEST(StreamOutput, AReadOfNoBytesChecksNoStag) {
  ScriptPeer p;
  p.hears(test::read_request(1, {.sink_stag = Stag{9}, .size = 0, .source_stag = Stag{0xbad}}));
  const auto frames = p.says();
  ASSERT_EQ(names(frames), "RDMA Read Response");
  EXPECT_TRUE(frames[0].payload.empty() && frames[0].control.last);
  EXPECT_EQ(frames[0].stag, Stag{9});
}

// spec/rdmap 1.7: responses in request order, among themselves and relative to Read Responses.
TEST(StreamOutput, AnswersComeInTheOrderOfTheRequests) {
  ScriptPeer p;
  Source s(p, 64);
  wire::AtomicRequest add{
      .request_id = 0x99, .stag = s.stag, .to = test::address_of(s.memory), .add_swap = 1};
  p.hears({s.request(1, 10), test::atomic_request(2, add), s.request(3, 20),
           test::atomic_request(4, add)});
  const auto frames = p.says();
  ASSERT_EQ(names(frames),
            "RDMA Read Response, Atomic Response, RDMA Read Response, Atomic Response");
  EXPECT_EQ(frames[1].qn, 3U);
  EXPECT_EQ(frames[1].msn, 1U);
  EXPECT_EQ(frames[3].msn, 2U);
  EXPECT_EQ(wire::AtomicResponse::parse(frames[1].payload.data()).request_id, 0x99U);
}

// InfiniBand 10.3.1.5, the state SQD: no request is begun, those begun are finished.
TEST(StreamOutput, HeldRequestsWait) {
  ScriptPeer p;
  Buffer data = pattern_bytes(10, 1);
  p.stream.hold_requests(true);
  EXPECT_TRUE(p.stream.requests_idle());
  p.host.post({.wr_id = 1, .operation = work::Operation::send, .signaled = true},
              {segment(p.host, data)});
  EXPECT_EQ(names(p.says()), "");
  EXPECT_TRUE(p.stream.requests_idle()) << "it was not begun";
  p.stream.hold_requests(false);
  EXPECT_EQ(names(p.says()), "Send");
  EXPECT_FALSE(p.stream.requests_idle());
  p.hears(delivered(1));
  EXPECT_TRUE(p.stream.requests_idle());
}

TEST(StreamOutput, HoldingAsksForWhatNobodyAskedFor) {
  ScriptPeer p;
  Buffer data = pattern_bytes(10, 1);
  p.host.post({.wr_id = 1, .operation = work::Operation::send}, {segment(p.host, data)});
  EXPECT_EQ(names(p.says()), "Send");
  p.stream.hold_requests(true);
  const auto frames = p.says();
  ASSERT_EQ(names(frames), "RDMA Write");
  EXPECT_TRUE(frames[0].control.ack_wanted);
  EXPECT_FALSE(p.stream.requests_idle());
  p.hears(delivered(2));
  EXPECT_TRUE(p.stream.requests_idle());
}

// docs/design/16: a Write and an answer whose memory begins with a page. Where the kernel would
// copy that slowly the first FPDU is short, and the others end where they would have ended.
TEST(StreamOutput, OfWhatBeginsAPageTheFirstFpduMayBeShort) {
  constexpr size_t kPage = 4096;
  StreamConfig c = script_config();
  c.mpa.crc = false;
  ScriptPeer p(c);
  Buffer memory = pattern_bytes(160'000, 1);
  const size_t to_page = kPage - reinterpret_cast<uintptr_t>(memory.data()) % kPage;
  work::LocalSegment local = segment(p.host, memory);
  local.address += to_page;
  local.length = 150'000;
  p.host.post({.wr_id = 1, .operation = work::Operation::write, .remote_to = TaggedOffset{7000}},
              {local});
  const auto written = p.says();
  p.hears(test::read_request(1, {.sink_stag = Stag{0x501},
                                 .sink_to = TaggedOffset{7000},
                                 .size = 150'000,
                                 .source_stag = local.lkey,
                                 .source_to = test::address_of(memory, to_page)}));
  for (const auto& frames : {written, p.says()}) {
    std::vector<size_t> ends;
    Buffer all;
    for (const auto& f : frames) {
      EXPECT_EQ(f.to, 7000 + all.size());
      all.insert(all.end(), f.payload.begin(), f.payload.end());
      ends.push_back(all.size());
      EXPECT_EQ(f.control.last, all.size() == 150'000);
    }
    EXPECT_TRUE(std::equal(all.begin(), all.end(), memory.begin() + to_page));
    if (copies_slowly_close_by()) {
      ASSERT_FALSE(ends.empty());
      EXPECT_EQ(ends.front(), mpa::FpduWriter::kSlowPart);
      ends.erase(ends.begin());
    }
    EXPECT_EQ(ends, (std::vector<size_t>{61'440, 122'880, 150'000}));
  }
}

TEST(StreamOutput, AMessageInProgressIsFinishedWhenRequestsAreHeld) {
  ScriptPeer p(script_config(false));
  Buffer data = pattern_bytes(1'000'000, 1);
  p.host.post({.wr_id = 1, .operation = work::Operation::send}, {segment(p.host, data)});
  p.host.post({.wr_id = 2, .operation = work::Operation::send}, {segment(p.host, data)});
  mpa::TxBatch batch;
  p.stream.fill(batch, p.now);
  size_t first = 0;
  for (const IoVec& v : batch.pieces()) first += v.iov_len;
  ASSERT_LT(first, data.size());
  p.stream.hold_requests(true);
  const auto rest = p.says();
  ASSERT_FALSE(rest.empty());
  EXPECT_TRUE(rest.back().control.last);
  EXPECT_EQ(rest.back().msn, 1U) << "the second message is not begun";
  EXPECT_TRUE(p.stream.requests_idle());
}

// spec/rdmap 2.2: at most 4 responses in a row while own requests wait, and no message inside
// another.
TEST(StreamOutput, AnswersAndRequestsByTurns) {
  StreamConfig c = script_config(false);
  c.mpa.ird = 16;
  ScriptPeer p(c);
  Source s(p, 4000);
  Buffer data = pattern_bytes(3000, 1);
  const auto local = segment(p.host, data);
  std::vector<Buffer> requests;
  for (uint32_t msn = 1; msn <= 10; ++msn) p.hears(s.request(msn, 2000));
  for (int i = 0; i < 3; ++i) p.host.post({.operation = work::Operation::write}, {local});
  const auto frames = p.says();
  std::string order;
  for (const auto& f : frames) {
    if (f.control.last) order += f.op() == wire::Opcode::read_response ? 'r' : 'w';
  }
  EXPECT_EQ(std::count(order.begin(), order.end(), 'r'), 10) << order;
  EXPECT_EQ(std::count(order.begin(), order.end(), 'w'), 3) << order;
  EXPECT_EQ(order.substr(0, order.rfind('w')).find("rrrrr"), std::string::npos) << order;
  EXPECT_EQ(order.find("ww"), std::string::npos) << order;
  wire::Opcode open{};
  bool inside = false;
  for (const auto& f : frames) {
    if (inside) {
      EXPECT_EQ(f.op(), open) << "a message inside another";
    }
    open = f.op();
    inside = !f.control.last;
  }
}

TEST(StreamOutput, ADeliveredMayWaitUnlessItIsUrgent) {
  ScriptPeer p;
  p.hears(tagged({.stag = Stag{1}}));
  EXPECT_EQ(p.stream.output(), Output::none);
  p.hears(tagged({.stag = Stag{1}, .ack_wanted = true}));
  EXPECT_EQ(p.stream.output(), Output::deferrable);
  Buffer data = pattern_bytes(10, 1);
  p.host.post({.operation = work::Operation::send}, {segment(p.host, data)});
  EXPECT_EQ(p.stream.output(), Output::ready);
  EXPECT_EQ(names(p.says()), "Delivered, Send") << "it rides in front";
  p.hears(untagged({.msn = 1}));
  EXPECT_EQ(p.stream.output(), Output::ready) << "a message waits: said at once";
}

// spec/rdmap 4.3: one per pass over the stream is enough.
TEST(StreamOutput, OneDeliveredForAll) {
  ScriptPeer p;
  for (int i = 0; i < 20; ++i) p.hears(tagged({.stag = Stag{1}, .ack_wanted = true}));
  const auto frames = p.says();
  ASSERT_EQ(names(frames), "Delivered");
  EXPECT_EQ(frames[0].to, 20U);
  EXPECT_TRUE(frames[0].control.last && frames[0].payload.empty());
  EXPECT_EQ(frames[0].stag, Stag{0});
}

TEST(StreamOutput, ReservedBitFourOfAPlainPeerMeansNothing) {
  ScriptPeer p(script_config(false));
  p.hears(tagged({.stag = Stag{1}, .ack_wanted = true}));
  EXPECT_EQ(p.stream.output(), Output::none);
}

TEST(StreamOutput, ADeliveredMayStandInsideAMessage) {
  ScriptPeer p;
  Buffer data(2 << 20);
  p.host.post({.operation = work::Operation::write}, {segment(p.host, data)});
  mpa::TxBatch batch;
  p.stream.fill(batch, p.now);
  batch.clear();
  p.hears(tagged({.stag = Stag{1}, .ack_wanted = true}));
  const auto frames = p.says();
  EXPECT_EQ(frames.at(0).op(), wire::Opcode::delivered);
  EXPECT_EQ(frames.at(1).op(), wire::Opcode::write);
  EXPECT_NE(frames.at(1).to, 0U);
}

// A request too many for one batch goes on where it stopped.
TEST(StreamOutput, ALongReadIsServedInSlices) {
  ScriptPeer p;
  Source s(p, 3 << 20);
  p.hears(s.request(1, 3 << 20));
  size_t batches = 0;
  Buffer all;
  mpa::TxBatch batch;
  while (p.stream.output() != Output::none) {
    p.stream.fill(batch, p.now);
    EXPECT_LE(batch.bytes(), mpa::TxBatch::kMostBytes);
    Buffer bytes;
    for (const IoVec& v : batch.pieces()) {
      const auto* b = static_cast<const std::byte*>(v.iov_base);
      bytes.insert(bytes.end(), b, b + v.iov_len);
    }
    for (const auto& f : test::parse_stream(bytes))
      all.insert(all.end(), f.payload.begin(), f.payload.end());
    batch.clear();
    p.stream.llp_took_all(p.now);
    ++batches;
  }
  EXPECT_GE(batches, 6U);
  EXPECT_TRUE(all == s.memory);
}

// The region may go while the answer is on its way: looked up for each FPDU.
TEST(StreamOutput, ARegionThatGoesInTheMiddleOfAnAnswer) {
  ScriptPeer p;
  Source s(p, 3 << 20);
  const Buffer request = s.request(1, 3 << 20);
  p.hears(request);
  mpa::TxBatch batch;
  p.stream.fill(batch, p.now);
  batch.clear();
  p.host.regions.erase(s.stag);
  const auto frames = p.says();
  ASSERT_EQ(frames.back().op(), wire::Opcode::terminate);
  const auto t = wire::Terminate::parse(frames.back().payload, true, true);
  EXPECT_EQ(t.error, term::kProtectionInvalidStag);
  EXPECT_EQ(t.segment_length, 46U);
  EXPECT_EQ(test::to_hex(Bytes{t.ddp_header}.first(18)), test::to_hex(Bytes{request}.first(18)));
  EXPECT_EQ(test::to_hex(Bytes{t.rdmap_header}.first(28)),
            test::to_hex(Bytes{request}.subspan(18)));
  EXPECT_EQ(p.host.end->kind, work::StreamEnd::Kind::protocol_error);
}

// spec/rdmap 4.4: the WR to blame is then the first one that is not covered.
TEST(StreamOutput, ADeliveredBeforeTheTerminate) {
  ScriptPeer p;
  p.hears({tagged({.stag = Stag{1}}), tagged({.stag = Stag{1}}),
           tagged({.stag = Stag{0xbad}}, pattern_bytes(4, 1))});
  const auto frames = p.says();
  ASSERT_EQ(names(frames), "Delivered, Terminate");
  EXPECT_EQ(frames[0].to, 2U);

  ScriptPeer plain(script_config(false));
  plain.hears(tagged({.stag = Stag{0xbad}}, pattern_bytes(4, 1)));
  EXPECT_EQ(names(plain.says()), "Terminate");
}

TEST(StreamOutput, AnOwnFaultIsToldAfterThoseBeforeItAreThrough) {
  ScriptPeer p;
  Buffer data = pattern_bytes(10, 1);
  p.host.post({.wr_id = 1, .operation = work::Operation::send}, {segment(p.host, data)});
  p.host.post({.wr_id = 2, .operation = work::Operation::send}, {{1, 10, Stag{0xbad}}});
  p.host.post({.wr_id = 3, .operation = work::Operation::send}, {segment(p.host, data)});
  EXPECT_EQ(names(p.says()), "Send, RDMA Write") << "the Write asks to have the Send covered";
  EXPECT_FALSE(p.host.end);
  p.hears(delivered(2));
  EXPECT_EQ(names(p.says()), "Delivered, Terminate");
  ASSERT_EQ(p.host.sent.size(), 3U);
  EXPECT_EQ(p.host.sent[0].status, work::Status::success);
  EXPECT_EQ(p.host.sent[1].status, work::Status::local_protection);
  EXPECT_EQ(p.host.sent[2].status, work::Status::flushed);
  EXPECT_EQ(p.host.end->kind, work::StreamEnd::Kind::local_error);
}

TEST(StreamOutput, WithoutCrcTheFieldsAreZero) {
  StreamConfig c = script_config(false);
  c.mpa.crc = false;
  ScriptPeer p(c);
  Buffer data = pattern_bytes(5000, 1);
  p.host.post({.operation = work::Operation::send}, {segment(p.host, data)});
  EXPECT_EQ(p.says().size(), 4U);  // parse_stream checks the field
}

}  // namespace
}  // namespace weft::rdmap
