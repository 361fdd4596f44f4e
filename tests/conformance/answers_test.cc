// wire.md 5.4, row by row: which Terminate answers which violation, byte by byte.

#include "tests/conformance/peer.h"

namespace weft::conformance {
namespace {

wire::ReadRequest reading(Stag source, uint64_t to, uint32_t size) {
  return {.sink_stag = Stag{5}, .size = size, .source_stag = source, .source_to = TaggedOffset{to}};
}
wire::AtomicRequest adding(Stag stag, uint64_t to) {
  return {.request_id = 3, .stag = stag, .to = TaggedOffset{to}, .add_swap = 1};
}

// With the extension and without: the answer is the same.
void answers(const std::function<Buffer(Peer&)>& offence, wire::TermError error, Quoted quoted) {
  for (const bool extension : {true, false}) {
    SCOPED_TRACE(extension ? "between wefts" : "towards a plain peer");
    Peer p(extension);
    const Buffer u = offence(p);
    p.hears(u);
    expect_terminate(p, error, quoted, u);
    EXPECT_TRUE(p.memory_untouched());
  }
}
// Opcodes that only wefts know.
void answers_weft(const std::function<Buffer(Peer&)>& offence, wire::TermError error,
                  Quoted quoted) {
  Peer p;
  const Buffer u = offence(p);
  p.hears(u);
  expect_terminate(p, error, quoted, u);
  EXPECT_TRUE(p.memory_untouched());
}

// RFC 5044 section 4.4, section 8: a CRC that does not match.
TEST(Answers, CrcMismatch) {
  for (const bool extension : {true, false}) {
    Peer p(extension);
    Buffer frame = test::make_fpdu(tagged({.stag = p.open, .to = p.to}, pattern_bytes(8, 3)));
    frame.back() ^= std::byte{0x80};
    p.hears_bytes(frame);
    expect_terminate(p, term::kMpaCrc, Quoted::nothing, {});
    EXPECT_TRUE(p.memory_untouched());
  }
}

// The ULPDU is shorter than its opcode needs (wire.md 4.4); the header alone cut short is the same
// error.
TEST(Answers, UlpduTooShortForItsOpcode) {
  struct Row {
    Opcode op;
    size_t least;
  };
  constexpr Row kRows[] = {
      {Opcode::write, 14},          {Opcode::read_request, 46},    {Opcode::read_response, 14},
      {Opcode::send, 18},           {Opcode::send_inv, 18},        {Opcode::send_se, 18},
      {Opcode::send_se_inv, 18},    {Opcode::immediate, 26},       {Opcode::immediate_se, 26},
      {Opcode::atomic_request, 70}, {Opcode::atomic_response, 30}, {Opcode::send_imm, 18},
      {Opcode::send_se_imm, 18},    {Opcode::delivered, 14},
  };
  for (const Row& row : kRows) {
    SCOPED_TRACE(wire::to_string(row.op));
    const bool is_tagged = wire::is_tagged(row.op);
    const uint32_t qn = row.op == Opcode::read_request || row.op == Opcode::atomic_request ? 1
                        : row.op == Opcode::atomic_response                                ? 3
                                                                                           : 0;
    for (size_t n = 1; n < row.least; ++n) {
      Peer p;
      Buffer u = is_tagged ? tagged({.op = row.op, .stag = p.open, .to = p.to})
                           : untagged({.op = row.op, .qn = qn});
      u.resize(std::max(u.size(), row.least));
      u.resize(n);
      p.hears(u);
      // One byte tells only whether it is tagged; the sink asks for no more than there is.
      expect_terminate(p, term::kMpaLength, Quoted::nothing, u);
    }
  }
}

TEST(Answers, AnEmptyUlpdu) {
  Peer p;
  p.hears(Buffer{});
  expect_terminate(p, term::kMpaLength, Quoted::nothing, {});
}

// RFC 5041 section 7.1 and 7.2: DV other than 1.
TEST(Answers, DdpVersion) {
  for (const unsigned version : {0U, 2U, 3U}) {
    const auto with_version = [&](Buffer u) {
      u[0] = (u[0] & std::byte{0xfc}) | static_cast<std::byte>(version);
      return u;
    };
    answers(
        [&](Peer& p) {
          return with_version(tagged({.stag = p.open, .to = p.to}, pattern_bytes(8, 3)));
        },
        term::kTaggedVersion, Quoted::nothing);
    answers([&](Peer&) { return with_version(untagged({})); }, term::kUntaggedVersion,
            Quoted::nothing);
  }
}

// RFC 5040 section 7.2: RV other than 1.
TEST(Answers, RdmapVersion) {
  for (const unsigned version : {0U, 2U, 3U}) {
    const auto with_version = [&](Buffer u) {
      u[1] = (u[1] & std::byte{0x3f}) | static_cast<std::byte>(version << 6);
      return u;
    };
    answers(
        [&](Peer& p) {
          return with_version(tagged({.stag = p.open, .to = p.to}, pattern_bytes(8, 3)));
        },
        term::kOperationVersion, Quoted::nothing);
    answers([&](Peer&) { return with_version(untagged({})); }, term::kOperationVersion,
            Quoted::nothing);
  }
}

// RFC 5040 section 7.2: an opcode that is unassigned, not negotiated, or in the wrong kind of
// segment.
TEST(Answers, UnexpectedOpcode) {
  answers([](Peer&) { return untagged({.op = Opcode{15}}); }, term::kOperationUnexpectedOpcode,
          Quoted::nothing);
  answers([](Peer& p) { return tagged({.op = Opcode{15}, .stag = p.open}); },
          term::kOperationUnexpectedOpcode, Quoted::nothing);
  for (unsigned op = 0; op < 15; ++op) {
    SCOPED_TRACE(wire::to_string(static_cast<Opcode>(op)));
    const auto opcode = static_cast<Opcode>(op);
    Peer wrong_kind(op % 2 == 0);
    Buffer u = wire::is_tagged(opcode) ? untagged({.op = opcode})
                                       : tagged({.op = opcode, .stag = wrong_kind.open});
    u.resize(90);
    wrong_kind.hears(u);
    if (opcode == Opcode::terminate) {
      EXPECT_EQ(test::names(wrong_kind.says()), "") << "no Terminate is ever answered";
    } else {
      expect_terminate(wrong_kind, term::kOperationUnexpectedOpcode, Quoted::nothing, u);
    }
    if (!wire::needs_extension(opcode)) continue;
    Peer plain(false);
    Buffer v = wire::is_tagged(opcode)
                   ? tagged({.op = opcode})
                   : untagged({.op = opcode, .qn = opcode == Opcode::atomic_response ? 3U : 0U});
    v.resize(90);
    plain.hears(v);
    expect_terminate(plain, term::kOperationUnexpectedOpcode, Quoted::nothing, v);
  }
}

// RFC 5041 section 7.2, RFC 5040 section 7.2
TEST(Answers, WriteToWhatItMustNotTouch) {
  const Buffer data = pattern_bytes(16, 3);
  const auto write = [&](Stag stag, uint64_t to) { return tagged({.stag = stag, .to = to}, data); };
  answers([&](Peer& p) { return write(Peer::kUnknown, p.to); }, term::kTaggedInvalidStag,
          Quoted::ddp);
  answers([&](Peer& p) { return write(Stag{p.open.value() ^ 1}, p.to); }, term::kTaggedInvalidStag,
          Quoted::ddp);
  answers([&](Peer& p) { return write(p.open, p.to - 1); }, term::kTaggedBounds, Quoted::ddp);
  answers([&](Peer& p) { return write(p.open, p.to + Peer::kSize - 15); }, term::kTaggedBounds,
          Quoted::ddp);
  answers([&](Peer& p) { return write(p.open, p.to + Peer::kSize); }, term::kTaggedBounds,
          Quoted::ddp);
  answers([&](Peer& p) { return write(p.open, 0); }, term::kTaggedBounds, Quoted::ddp);
  answers([&](Peer& p) { return write(p.foreign, p.to); }, term::kTaggedNotOnStream, Quoted::ddp);
  answers([&](Peer& p) { return write(p.open, UINT64_MAX - 14); }, term::kTaggedToWrap,
          Quoted::ddp);
  answers([&](Peer& p) { return write(p.open, UINT64_MAX); }, term::kTaggedToWrap, Quoted::ddp);
  answers([&](Peer& p) { return write(p.read_only, p.to); }, term::kProtectionAccess, Quoted::ddp);
}

TEST(Answers, WriteThatEndsWithItsBuffer) {
  Peer p;
  p.hears(tagged({.stag = p.open, .to = p.to + Peer::kSize - 16}, pattern_bytes(16, 3)));
  EXPECT_FALSE(p.host.end);
}

// RFC 5041 section 7.1
TEST(Answers, SendWithWrongQueueMsnOrOffset) {
  for (const uint32_t qn : {1U, 2U, 3U, 4U, 0x10000U, 0xffffffffU}) {
    answers([&](Peer&) { return untagged({.qn = qn}); }, term::kUntaggedInvalidQn, Quoted::ddp);
  }
  for (const uint32_t msn : {0U, 2U, 0xffffffffU}) {
    answers([&](Peer&) { return untagged({.msn = msn}); }, term::kUntaggedMsnRange, Quoted::ddp);
  }
  for (const uint32_t mo : {1U, 0xffffffffU}) {
    answers([&](Peer&) { return untagged({.mo = mo}); }, term::kUntaggedInvalidMo, Quoted::ddp);
  }
  // A wrong queue is told before its number is compared with that queue's.
  answers([](Peer&) { return untagged({.qn = 1, .msn = 9}); }, term::kUntaggedInvalidQn,
          Quoted::ddp);
}

TEST(Answers, MessagesOfOtherQueuesOnTheWrongOne) {
  const Buffer read = test::encoded(reading(Stag{1}, 0, 0));
  for (const uint32_t qn : {0U, 2U, 3U, 7U}) {
    answers([&](Peer&) { return untagged({.op = Opcode::read_request, .qn = qn}, read); },
            term::kUntaggedInvalidQn, Quoted::ddp);
    answers_weft(
        [&](Peer& p) {
          return untagged({.op = Opcode::atomic_request, .qn = qn},
                          test::encoded(adding(p.open, p.to)));
        },
        term::kUntaggedInvalidQn, Quoted::ddp);
  }
  for (const uint32_t qn : {0U, 1U, 2U}) {
    answers_weft(
        [&](Peer&) { return untagged({.op = Opcode::atomic_response, .qn = qn}, Buffer(12)); },
        term::kUntaggedInvalidQn, Quoted::ddp);
  }
  for (const uint32_t qn : {1U, 2U, 3U}) {
    answers_weft([&](Peer&) { return untagged({.op = Opcode::immediate, .qn = qn}, Buffer(8)); },
                 term::kUntaggedInvalidQn, Quoted::ddp);
  }
}

// The segments of one message follow each other without gap and overlap.
TEST(Answers, SecondSegmentAtTheWrongOffset) {
  for (const uint32_t mo : {0U, 9U, 11U}) {
    for (const bool extension : {true, false}) {
      Peer p(extension);
      p.hears(untagged({.last = false}, pattern_bytes(10, 3)));
      const Buffer u = untagged({.mo = mo}, pattern_bytes(10, 4));
      p.hears(u);
      expect_terminate(p, term::kUntaggedInvalidMo, Quoted::ddp, u);
    }
  }
}

// design.md 4 rule 1: a plain peer's Send without a receive, once the time is over.
TEST(Answers, SendWithoutReceive) {
  Peer p(false);
  p.hears(untagged({.msn = 1}));
  const Buffer u = untagged({.msn = 2}, pattern_bytes(16, 3));
  p.hears(u);
  EXPECT_FALSE(p.host.end);
  p.later(std::chrono::seconds{10});
  expect_terminate(p, term::kUntaggedNoBuffer, Quoted::ddp, u);
}

// wire.md E8: the bytes that weft sends for it, as published. 16 bytes of payload, ULPDU 34.
TEST(Answers, TheExampleOfTheWireReference) {
  test::ScriptPeer p(test::script_config(false));
  p.hears(untagged({}, Buffer(16)));
  p.later(std::chrono::seconds{10});
  EXPECT_EQ(test::to_hex(p.says_bytes()),
            test::to_hex(test::from_hex(
                "00 2a 41 47 00 00 00 00 00 00 00 02 00 00 00 01 00 00 00 00  12 02 c0 00  00 22"
                "41 43 00 00 00 00 00 00 00 00 00 00 00 01 00 00 00 00   ce e4 e3 e8")));
}

TEST(Answers, SendLongerThanItsReceive) {
  answers([](Peer&) { return untagged({}, pattern_bytes(65, 3)); }, term::kUntaggedTooLong,
          Quoted::ddp);
  for (const bool extension : {true, false}) {
    Peer p(extension);
    p.hears(untagged({.last = false}, pattern_bytes(60, 3)));
    const Buffer u = untagged({.mo = 60}, pattern_bytes(5, 4));
    p.hears(u);
    expect_terminate(p, term::kUntaggedTooLong, Quoted::ddp, u);
    ASSERT_EQ(p.host.received.size(), 1U);
    EXPECT_EQ(p.host.received[0].status, rdmap::Status::local_length) << "the receive is spent";
  }
  Peer fits;
  fits.hears(untagged({}, pattern_bytes(64, 3)));
  EXPECT_EQ(fits.host.received.at(0).status, rdmap::Status::success);
}

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
  constexpr auto kAll = Quoted::ddp_and_rdmap;
  answers_weft([&](Peer& p) { return add(Peer::kUnknown, p.to); }, term::kProtectionInvalidStag,
               kAll);
  answers_weft([&](Peer& p) { return add(p.open, p.to + Peer::kSize); }, term::kProtectionBounds,
               kAll);
  answers_weft([&](Peer& p) { return add(p.read_only, p.to); }, term::kProtectionAccess, kAll);
  answers_weft([&](Peer& p) { return add(p.write_only, p.to); }, term::kProtectionAccess, kAll);
  answers_weft([&](Peer& p) { return add(p.foreign, p.to); }, term::kProtectionNotOnStream, kAll);
  // wire.md 4.8: misaligned 0/1/FF, bad AOpCode 0/2/06.
  for (uint64_t off = 1; off < 8; ++off) {
    answers_weft([&](Peer& p) { return add(p.open, p.to + off); }, term::kProtectionUnspecified,
                 kAll);
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
  expect_terminate(p, term::kProtectionUnspecified, Quoted::ddp_and_rdmap, u);
}

TEST(Answers, ReadRequestMsn) {
  for (const uint32_t msn : {0U, 2U}) {
    answers([&](Peer& p) { return test::read_request(msn, reading(p.open, p.to, 8)); },
            term::kUntaggedMsnRange, Quoted::ddp);
  }
  // Reads and atomics share the space.
  Peer p;
  p.hears(test::atomic_request(1, adding(p.open, p.to)));
  const Buffer u = test::read_request(1, reading(p.open, p.to, 8));
  p.hears(u);
  expect_terminate(p, term::kUntaggedMsnRange, Quoted::ddp, u);
}

// RFC 5040 section 6.5
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

// wire.md 4.6: L=1, MO=0 and no more payload than the header.
TEST(Answers, ControlMessagesHaveTheirExactSize) {
  answers(
      [](Peer& p) {
        Buffer u = test::read_request(1, reading(p.open, p.to, 8));
        u.push_back({});
        return u;
      },
      term::kUntaggedTooLong, Quoted::ddp);
  answers(
      [](Peer& p) {
        Buffer u = test::read_request(1, reading(p.open, p.to, 8));
        u[0] = std::byte{0x01};
        return u;
      },
      term::kUntaggedTooLong, Quoted::ddp);
  answers_weft(
      [](Peer& p) {
        Buffer u = test::atomic_request(1, adding(p.open, p.to));
        u.resize(u.size() + 4);
        return u;
      },
      term::kUntaggedTooLong, Quoted::ddp);
  answers_weft([](Peer&) { return untagged({.op = Opcode::immediate}, Buffer(9)); },
               term::kUntaggedTooLong, Quoted::ddp);
  answers_weft([](Peer&) { return tagged({.op = Opcode::delivered}, Buffer(1)); },
               term::kTaggedBounds, Quoted::ddp);
  answers_weft([](Peer&) { return tagged({.op = Opcode::delivered, .last = false}); },
               term::kTaggedBounds, Quoted::ddp);
}

// A stream with a Read of 32 bytes out; `sink` is what it asked for.
struct Reader : Peer {
  explicit Reader(bool extension) : Peer(extension), into(32) {
    host.post({.wr_id = 8, .operation = rdmap::Operation::read, .signaled = true},
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

// wire.md 4.5: from exactly the sink's STag and TO, contiguous, exactly the size, L on the last.
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
    EXPECT_EQ(good.host.sent.at(0).status, rdmap::Status::success);
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
  p.host.post({.operation = rdmap::Operation::fetch_add}, {test::segment(p.host, into)});
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

// RFC 5040 section 7.2
TEST(Answers, SendWithInvalidateOfABadStag) {
  const auto send = [](Stag stag) {
    return untagged({.op = Opcode::send_inv, .word = stag.value()}, pattern_bytes(8, 3));
  };
  answers([&](Peer&) { return send(Peer::kUnknown); }, term::kOperationCannotInvalidate,
          Quoted::ddp);
  answers([&](Peer&) { return send(Stag{0}); }, term::kOperationCannotInvalidate, Quoted::ddp);
  answers([&](Peer& p) { return send(p.foreign); }, term::kProtectionCannotInvalidate, Quoted::ddp);
}

// wire.md 5.4: local SGE fault while sending.
TEST(Answers, OwnMemoryThatIsNotThere) {
  for (const bool extension : {true, false}) {
    Peer p(extension);
    p.host.post({.operation = rdmap::Operation::send}, {{p.to, 8, Peer::kUnknown}});
    const auto frames = p.says();
    ASSERT_EQ(test::names(frames), extension ? "Delivered, Terminate" : "Terminate");
    EXPECT_EQ(test::to_hex(frames.back().ulpdu),
              test::to_hex(terminate_ulpdu(term::kLocalCatastrophic, Quoted::nothing, {})));
    EXPECT_EQ(p.host.sent.at(0).status, rdmap::Status::local_protection);
  }
}

// wire.md 4.5: messages are never interleaved.
TEST(Answers, MessagesInsideASend) {
  const auto inside = [](bool extension, const Buffer& u, wire::TermError error, Quoted quoted) {
    Peer p(extension);
    p.hears(untagged({.last = false}, pattern_bytes(8, 3)));
    p.hears(u);
    expect_terminate(p, error, quoted, u);
  };
  for (const bool extension : {true, false}) {
    inside(extension, test::read_request(1, reading(Stag{1}, 0, 0)),
           term::kOperationUnexpectedOpcode, Quoted::nothing);
    inside(extension, untagged({.op = Opcode::send_se, .mo = 8}), term::kOperationUnexpectedOpcode,
           Quoted::nothing);
  }
  inside(true, tagged({.stag = Stag{1}}), term::kOperationUnexpectedOpcode, Quoted::nothing);
  // siw tolerates, and so does weft from a plain peer, a tagged message inside an untagged one.
  Peer plain(false);
  plain.hears({untagged({.last = false}, pattern_bytes(8, 3)), tagged({.stag = Stag{1}}),
               untagged({.mo = 8}, pattern_bytes(8, 4))});
  EXPECT_FALSE(plain.host.end);
  EXPECT_EQ(plain.host.received.at(0).arrival.length, 16U);
}

}  // namespace
}  // namespace weft::conformance
