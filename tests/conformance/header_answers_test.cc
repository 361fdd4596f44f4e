// spec/errors 3, row by row: which Terminate answers which violation, byte by byte. Here those of
// the FPDU and of its headers: length, version, opcode, queue, MSN and offset.

#include "tests/conformance/answers.h"

namespace weft::conformance {
namespace {

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

// The ULPDU is shorter than its opcode needs (spec/rdmap 1.4); the header alone cut short is the
// same error.
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

// RFC 5041 sections 4.1 and 7.2: DV other than 1.
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

// RFC 5040 sections 4.1 and 4.8: RV other than 1.
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

// spec/rdmap 1.5: L=1, MO=0 and no more payload than the header.
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

}  // namespace
}  // namespace weft::conformance
