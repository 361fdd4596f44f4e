// spec/errors 3, row by row: which Terminate answers which violation, byte by byte. Here those of
// Writes and Sends.

#include "tests/conformance/answers.h"

namespace weft::conformance {
namespace {

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

// spec/rdmap 4.7: a plain peer's Send without a receive, once the time is over.
TEST(Answers, SendWithoutReceive) {
  Peer p(false);
  p.hears(untagged({.msn = 1}));
  const Buffer u = untagged({.msn = 2}, pattern_bytes(16, 3));
  p.hears(u);
  EXPECT_FALSE(p.host.end);
  p.later(std::chrono::seconds{10});
  expect_terminate(p, term::kUntaggedNoBuffer, Quoted::ddp, u);
}

// spec/examples 8: the bytes that weft sends for it. 16 bytes of payload, ULPDU 34.
TEST(Answers, TheExampleOfTheSpecification) {
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
    EXPECT_EQ(p.host.received[0].status, work::Status::local_length) << "the receive is spent";
  }
  Peer fits;
  fits.hears(untagged({}, pattern_bytes(64, 3)));
  EXPECT_EQ(fits.host.received.at(0).status, work::Status::success);
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

// spec/errors 3: local SGE fault while sending.
TEST(Answers, OwnMemoryThatIsNotThere) {
  for (const bool extension : {true, false}) {
    Peer p(extension);
    p.host.post({.operation = work::Operation::send}, {{p.to, 8, Peer::kUnknown}});
    const auto frames = p.says();
    ASSERT_EQ(test::names(frames), extension ? "Delivered, Terminate" : "Terminate");
    EXPECT_EQ(test::to_hex(frames.back().ulpdu),
              test::to_hex(terminate_ulpdu(term::kLocalCatastrophic, Quoted::nothing, {})));
    EXPECT_EQ(p.host.sent.at(0).status, work::Status::local_protection);
  }
}

// spec/rdmap 2.2: messages are never interleaved.
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
