// spec/errors 3, continued: answers to what is found late, when bytes are placed or a message
// waits, and what gets no answer.

#include <functional>

#include "rdmap/limits.h"
#include "tests/conformance/peer.h"

namespace weft::conformance {
namespace {

using work::Status;
using work::StreamEnd;

// RFC 5044 section 8: also where the payload went straight to its place before its CRC was there.
// It is not delivered: no completion, and nothing behind it.
TEST(LateAnswers, CrcMismatchOfAPlacedFpdu) {
  for (const bool extension : {true, false}) {
    for (const bool send : {false, true}) {
      Peer p(extension);
      Buffer large(40'000);
      const auto box = test::segment(p.host, large);
      p.host.receives.clear();
      p.host.post_receive(2, {box});
      const Buffer data = pattern_bytes(30'000, 3);
      const Buffer u =
          send ? untagged({}, data) : tagged({.stag = box.lkey, .to = box.address}, data);
      Buffer frame = test::make_fpdu(u);
      frame.back() ^= std::byte{0x01};
      p.hears_bytes(Bytes{frame}.first(500));
      EXPECT_TRUE(p.stream.direct());
      p.hears_bytes(Bytes{frame}.subspan(500));
      expect_terminate(p, term::kMpaCrc, Quoted::nothing, {});
      for (const auto& r : p.host.received) EXPECT_NE(r.status, Status::success);
      EXPECT_TRUE(p.memory_untouched());
    }
  }
}

// The region goes while an FPDU is being placed in it: the rest has nowhere to go.
TEST(LateAnswers, RegionThatGoesInTheMiddleOfAnFpdu) {
  for (const bool extension : {true, false}) {
    Peer p(extension);
    Buffer large(40'000);
    const auto box = test::segment(p.host, large);
    const Buffer u = tagged({.stag = box.lkey, .to = box.address}, pattern_bytes(30'000, 3));
    const Buffer frame = test::make_fpdu(u);
    p.hears_bytes(Bytes{frame}.first(20'000));
    EXPECT_FALSE(p.host.end);
    const Buffer then = large;
    p.host.regions.erase(box.lkey);
    p.hears_bytes(Bytes{frame}.subspan(20'000));
    expect_terminate(p, term::kTaggedInvalidStag, Quoted::ddp, u);
    EXPECT_TRUE(large == then) << "nothing is written after the region is gone";
  }
}

// The receive's own memory is not there: this side's fault, but the peer's Send is what fails. It
// sees a remote operation error, as on InfiniBand.
TEST(LateAnswers, OwnReceiveThatIsNotThere) {
  for (const bool extension : {true, false}) {
    Peer p(extension);
    p.host.receives.clear();
    p.host.post_receive(2, {{p.to, 64, Peer::kUnknown}});
    const Buffer u = untagged({}, pattern_bytes(8, 3));
    p.hears(u);
    expect_terminate(p, term::kOperationCatastrophicStream, Quoted::ddp, u);
    EXPECT_EQ(p.host.end->kind, StreamEnd::Kind::local_error);
    ASSERT_EQ(p.host.received.size(), 1U);
    EXPECT_EQ(p.host.received[0].status, Status::local_protection);
  }
}

// spec/rdmap 4.6: a weft peer that sends more than its credit without a receive for it.
TEST(LateAnswers, MoreThanTheCredit) {
  Peer p;
  p.hears(untagged({.msn = 1}));
  constexpr uint32_t kBytes = 60'000;
  uint32_t msn = 2;
  for (uint64_t sent = 0; sent < 2 * rdmap::kSendCredit; sent += kBytes) {
    p.hears(untagged({.msn = msn++}, Buffer(kBytes)));
    ASSERT_FALSE(p.host.end) << sent;
  }
  const Buffer u = untagged({.msn = msn}, Buffer(kBytes));
  p.hears(u);
  expect_terminate(p, term::kUntaggedNoBuffer, Quoted::ddp, u);
}

// What waited for a receive is checked when it gets one: the Terminate quotes that message, not the
// last one that came.
TEST(LateAnswers, MessagesThatWaitedForAReceive) {
  struct Row {
    std::function<Buffer(Peer&)> waits;
    wire::TermError error;
    Quoted quoted;
  };
  const Row rows[] = {
      {[](Peer&) { return untagged({.msn = 2}, Buffer(65)); }, term::kUntaggedTooLong, Quoted::ddp},
      {[](Peer&) {
         return untagged({.op = Opcode::send_inv, .msn = 2, .word = Peer::kUnknown.value()});
       },
       term::kOperationCannotInvalidate, Quoted::ddp},
      {[](Peer& p) {
         return test::read_request(
             1, {.size = 8, .source_stag = p.write_only, .source_to = TaggedOffset{p.to}});
       },
       term::kProtectionAccess, Quoted::ddp_and_rdmap},
      {[](Peer& p) {
         return test::atomic_request(1, {.stag = p.open, .to = TaggedOffset{p.to | 1}});
       },
       term::kOperationCatastrophicStream, Quoted::ddp},
  };
  for (const Row& row : rows) {
    Peer p;
    p.hears(untagged({.msn = 1}));
    const Buffer u = row.waits(p);
    const bool is_send = wire::is_send(wire::Control::parse(u.data()).opcode);
    // A Read or an Atomic waits behind a Send that waits.
    if (!is_send) p.hears(untagged({.msn = 2}));
    p.hears(u);
    p.hears(tagged({.stag = Stag{1}}));
    EXPECT_FALSE(p.host.end);
    p.says();
    Buffer box(64);
    p.post_receive(5, {test::segment(p.host, box)});
    expect_terminate(p, row.error, row.quoted, u);
  }
}

// spec/errors 3, spec/errors 4: a Terminate with wrong QN, MSN, MO or size is not answered.
TEST(LateAnswers, ATerminateThatIsWrongItself) {
  const Buffer body = test::from_hex("20 02 00 00");
  const Buffer wrong[] = {
      untagged({.op = Opcode::terminate, .qn = 0}, body),
      untagged({.op = Opcode::terminate, .qn = 3}, body),
      untagged({.op = Opcode::terminate, .qn = 4}, body),
      untagged({.op = Opcode::terminate, .qn = 2, .msn = 0}, body),
      untagged({.op = Opcode::terminate, .qn = 2, .msn = 2}, body),
      untagged({.op = Opcode::terminate, .qn = 2, .mo = 4}, body),
      untagged({.op = Opcode::terminate, .qn = 2, .last = false}, body),
      untagged({.op = Opcode::terminate, .qn = 2}, Bytes{body}.first(3)),
      untagged({.op = Opcode::terminate, .qn = 2}, Buffer(77)),
  };
  for (const Buffer& u : wrong) {
    for (const bool extension : {true, false}) {
      Peer p(extension);
      p.hears(u);
      ASSERT_TRUE(p.host.end) << test::to_hex(u);
      EXPECT_EQ(test::names(p.says()), "") << test::to_hex(u);
      EXPECT_EQ(p.stream.wish(), rdmap::Stream::Wish::close);
    }
  }
}

// spec/errors 3: a Terminate while terminating: there is one of ours, and its reason stays.
TEST(LateAnswers, ATerminateWhileTerminating) {
  for (const bool before_ours_is_out : {true, false}) {
    Peer p;
    const Buffer u = tagged({.stag = Peer::kUnknown, .to = p.to}, pattern_bytes(8, 3));
    p.hears(u);
    const auto theirs = test::terminate({.error = term::kMpaCrc});
    if (before_ours_is_out) p.hears(theirs);
    expect_terminate(p, term::kTaggedInvalidStag, Quoted::ddp, u);
    p.hears(theirs);
    p.hears(theirs);
    EXPECT_EQ(test::names(p.says()), "");
    EXPECT_EQ(p.host.end->error, term::kTaggedInvalidStag);
  }
}

}  // namespace
}  // namespace weft::conformance
