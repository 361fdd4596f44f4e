// spec/errors 3, row by row: which Terminate answers which violation, byte by byte. Here those of
// Reads and Atomics, and of their responses.

#include "tests/conformance/answers.h"

namespace weft::conformance {
namespace {

// RFC 5040 section 7.2: the source of a Read is checked before a byte of it is sent.
TEST(Answers, ReadOfWhatItMustNotSee) {
  const auto read = [](Stag stag, uint64_t to, uint32_t size) {
    return test::read_request(1, reading(stag, to, size));
  };
  constexpr auto kAll = Quoted::ddp_and_rdmap;
  answers([&](Peer& p) { return read(Peer::kUnknown, p.to, 8); }, term::kProtectionInvalidStag,
          kAll);
  answers([&](Peer& p) { return read(p.open, p.to - 1, 8); }, term::kProtectionBounds, kAll);
  answers([&](Peer& p) { return read(p.open, p.to + 1, Peer::kSize); }, term::kProtectionBounds,
          kAll);
  answers([&](Peer& p) { return read(p.open, p.to, 0xffffffff); }, term::kProtectionBounds, kAll);
  answers([&](Peer& p) { return read(p.write_only, p.to, 8); }, term::kProtectionAccess, kAll);
  answers([&](Peer& p) { return read(p.foreign, p.to, 8); }, term::kProtectionNotOnStream, kAll);
  answers([&](Peer& p) { return read(p.open, UINT64_MAX - 6, 8); }, term::kProtectionToWrap, kAll);
}

TEST(Answers, AtomicOnWhatItMustNotTouch) {
  const auto add = [](Stag stag, uint64_t to) { return test::atomic_request(1, adding(stag, to)); };
  // RFC 7306 section 8.1: the request's own header is not quoted.
  constexpr auto kAll = Quoted::ddp;
  answers_weft([&](Peer& p) { return add(Peer::kUnknown, p.to); }, term::kProtectionInvalidStag,
               kAll);
  answers_weft([&](Peer& p) { return add(p.open, p.to + Peer::kSize); }, term::kProtectionBounds,
               kAll);
  answers_weft([&](Peer& p) { return add(p.read_only, p.to); }, term::kProtectionAccess, kAll);
  answers_weft([&](Peer& p) { return add(p.write_only, p.to); }, term::kProtectionAccess, kAll);
  answers_weft([&](Peer& p) { return add(p.foreign, p.to); }, term::kProtectionNotOnStream, kAll);
  // RFC 7306 section 8.2: misaligned 0/2/07. spec/rdmap 1.7: bad AOpCode 0/2/06.
  for (uint64_t off = 1; off < 8; ++off) {
    answers_weft([&](Peer& p) { return add(p.open, p.to + off); },
                 term::kOperationCatastrophicStream, Quoted::ddp);
  }
  for (const unsigned code : {1U, 3U, 15U}) {
    answers_weft(
        [&](Peer& p) {
          auto r = adding(p.open, p.to);
          r.code = static_cast<wire::AtomicRequest::Code>(code);
          return test::atomic_request(1, r);
        },
        term::kOperationUnexpectedOpcode, Quoted::nothing);
  }
}

// A zero-based region may lie at an odd address: then it is the memory that is misaligned.
TEST(Answers, AtomicOnMemoryThatIsMisaligned) {
  Peer p;
  Buffer memory(64);
  const Stag stag = p.host.add_region(memory, 15, 0);
  p.host.regions[stag].base += 4;
  const Buffer u = test::atomic_request(1, adding(stag, 8));
  p.hears(u);
  expect_terminate(p, term::kOperationCatastrophicStream, Quoted::ddp, u);
}

// RFC 5040 section 6.1
TEST(Answers, MoreReadsThanTheIrd) {
  for (const uint16_t ird : {0, 1, 4}) {
    for (const bool extension : {true, false}) {
      Peer p(extension, ird);
      for (uint32_t msn = 1; msn <= ird; ++msn)
        p.hears(test::read_request(msn, reading(p.open, p.to, 8)));
      EXPECT_FALSE(p.host.end);
      const Buffer u = test::read_request(ird + 1U, reading(p.open, p.to, 8));
      p.hears(u);
      expect_terminate(p, term::kOperationCatastrophicStream, Quoted::ddp_and_rdmap, u);
    }
  }
  Peer p(true, 1);
  p.hears(test::atomic_request(1, adding(p.open, p.to)));
  const Buffer u = test::atomic_request(2, adding(p.open, p.to));
  p.hears(u);
  ASSERT_TRUE(p.host.end);
  EXPECT_EQ(p.host.end->error, term::kOperationCatastrophicStream) << "the count is shared";
}

// A stream with a Read of 32 bytes out; `sink` is what it asked for.
struct Reader : Peer {
  explicit Reader(bool extension) : Peer(extension), into(32) {
    host.post({.wr_id = 8, .operation = work::Operation::read, .signaled = true},
              {test::segment(host, into)});
    const auto frames = says();
    EXPECT_EQ(test::names(frames), "RDMA Read Request");
    if (!frames.empty()) request = wire::ReadRequest::parse(frames[0].payload.data());
  }
  Buffer response(size_t n, bool last = true, uint64_t offset = 0) const {
    return tagged({.op = Opcode::read_response,
                   .stag = request.sink_stag,
                   .to = request.sink_to.value() + offset,
                   .last = last},
                  pattern_bytes(n, 9));
  }
  Buffer into;
  wire::ReadRequest request;
};

// spec/rdmap 2.3: from exactly the sink's STag and TO, contiguous, exactly the size, L on the last.
TEST(Answers, ReadResponseThatWasNotAskedFor) {
  answers(
      [](Peer& p) {
        return tagged({.op = Opcode::read_response, .stag = p.open, .to = p.to},
                      pattern_bytes(8, 3));
      },
      term::kTaggedInvalidStag, Quoted::ddp);
  for (const bool extension : {true, false}) {
    const auto expect = [&](const std::function<Buffer(Reader&)>& make, wire::TermError error) {
      Reader r(extension);
      const Buffer before = r.into;
      const Buffer u = make(r);
      r.hears(u);
      expect_terminate(r, error, Quoted::ddp, u);
      EXPECT_EQ(r.into, before);
    };
    expect(
        [](Reader& r) {
          return tagged({.op = Opcode::read_response, .stag = r.open, .to = r.to},
                        pattern_bytes(32, 1));
        },
        term::kTaggedInvalidStag);
    expect([](Reader& r) { return r.response(31); }, term::kTaggedBounds);
    expect([](Reader& r) { return r.response(33); }, term::kTaggedBounds);
    expect([](Reader& r) { return r.response(32, false); }, term::kTaggedBounds);
    expect([](Reader& r) { return r.response(31, true, 1); }, term::kTaggedBounds);
    expect([](Reader& r) { return r.response(32, true, UINT64_MAX); }, term::kTaggedBounds);
    // The sink is no memory that a Write could reach.
    expect(
        [](Reader& r) {
          return tagged({.stag = r.request.sink_stag, .to = r.request.sink_to.value()},
                        pattern_bytes(8, 1));
        },
        term::kTaggedInvalidStag);

    Reader gap(extension);
    gap.hears(gap.response(16, false));
    const Buffer u = gap.response(12, true, 20);
    gap.hears(u);
    expect_terminate(gap, term::kTaggedBounds, Quoted::ddp, u);

    Reader good(extension);
    good.hears({good.response(16, false), good.response(16, true, 16)});
    EXPECT_FALSE(good.host.end);
    EXPECT_EQ(good.host.sent.at(0).status, work::Status::success);
    const Buffer again = good.response(32);
    good.hears(again);
    expect_terminate(good, term::kTaggedInvalidStag, Quoted::ddp, again);
  }
}

TEST(Answers, AtomicResponseThatWasNotAskedFor) {
  answers_weft([](Peer&) { return untagged({.op = Opcode::atomic_response, .qn = 3}, Buffer(12)); },
               term::kOperationUnspecified, Quoted::ddp);
  Peer p;
  Buffer into(8);
  p.host.post({.operation = work::Operation::fetch_add}, {test::segment(p.host, into)});
  const auto request = wire::AtomicRequest::parse(p.says().at(0).payload.data());
  const Buffer u =
      untagged({.op = Opcode::atomic_response, .qn = 3},
               test::encoded(wire::AtomicResponse{.request_id = request.request_id + 1}));
  p.hears(u);
  expect_terminate(p, term::kOperationUnspecified, Quoted::ddp, u);
}

// A response of the other kind than the oldest request.
TEST(Answers, ResponseOfTheOtherKind) {
  Reader r(true);
  const Buffer u = untagged({.op = Opcode::atomic_response, .qn = 3}, Buffer(12));
  r.hears(u);
  expect_terminate(r, term::kOperationUnspecified, Quoted::ddp, u);
}

}  // namespace
}  // namespace weft::conformance
