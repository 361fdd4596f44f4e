#include "rdmap/stream.h"

#include <gtest/gtest.h>

#include "tests/unit/rdmap/stream_fixture.h"

namespace weft::rdmap {
namespace {

// --- opening

// RFC 5044 section 7.1.3: the Responder MUST NOT send any FPDU before it has received one.
TEST(Stream, AResponderIsSilentUntilTheFirstFpdu) {
  ScriptPeer p(responder());
  Buffer data = pattern_bytes(10, 1);
  post_send(p, data);
  EXPECT_EQ(names(p.says()), "");
  p.later(5s);
  EXPECT_EQ(names(p.says()), "");
  EXPECT_FALSE(p.host.ready);
  p.hears(kEmptyWrite);
  EXPECT_TRUE(p.host.ready);
  EXPECT_EQ(names(p.says()), "Send");
}

TEST(Stream, AnFpduThatIsRefusedOpensNothing) {
  ScriptPeer p(responder());
  p.hears(tagged({.stag = Stag{0xbad}}, pattern_bytes(8, 1)));
  EXPECT_FALSE(p.host.ready);
  EXPECT_EQ(p.host.end->kind, Kind::protocol_error);
}

TEST(Stream, AResponderThatClosesStaysSilent) {
  ScriptPeer p(responder());
  Buffer data = pattern_bytes(10, 1);
  post_send(p, data);
  p.stream.close(p.now);
  EXPECT_EQ(names(p.says()), "");
  EXPECT_EQ(p.stream.wish(), Wish::none) << "the first FPDU may come yet";
  p.later(1s);
  EXPECT_EQ(p.stream.wish(), Wish::shutdown_write);

  ScriptPeer idle(responder());
  idle.stream.close(idle.now);
  EXPECT_EQ(idle.stream.wish(), Wish::shutdown_write) << "nothing to wait for";

  ScriptPeer opened(responder());
  post_send(opened, data);
  opened.stream.close(opened.now);
  opened.hears(kEmptyWrite);
  EXPECT_EQ(names(opened.says()), "Delivered, Send");
  EXPECT_FALSE(opened.host.ready) << "it is closing";
}

TEST(Stream, AResponderThatAbortsSaysNothing) {
  ScriptPeer p(responder());
  p.stream.abort(p.now);
  EXPECT_EQ(names(p.says()), "");
  EXPECT_EQ(p.stream.wish(), Wish::close);
}

// wire.md 2.4: the frame that was agreed on is the very first one.
TEST(Stream, TheRtrFrameComesFirst) {
  for (const auto& [rtr, expected] : {std::pair{mpa::Rtr::write, "RDMA Write, Send"},
                                      std::pair{mpa::Rtr::read, "RDMA Read Request, Send"},
                                      std::pair{mpa::Rtr::fpdu, "empty FPDU, Send"}}) {
    StreamConfig c = script_config();
    c.mpa.peer_to_peer = true;
    c.mpa.rtr = rtr;
    ScriptPeer p(c);
    Buffer data = pattern_bytes(10, 1);
    post_send(p, data);
    EXPECT_EQ(names(p.says()), expected);
  }
}

// siw's Responder does not wait for it: its requests may be there before ours are out.
TEST(Stream, TheRtrWriteComesBeforeAnswersToAnImpatientPeer) {
  StreamConfig c = script_config();
  c.mpa.peer_to_peer = true;
  c.mpa.rtr = mpa::Rtr::write;
  ScriptPeer p(c);
  p.hears(test::read_request(1, {.sink_stag = Stag{5}, .size = 0}));
  EXPECT_EQ(names(p.says()), "RDMA Write, RDMA Read Response");
}

// A Responder may choose the RTR read and allow no other.
TEST(Stream, TheRtrReadNeedsNoOrd) {
  StreamConfig c = script_config();
  c.mpa = {.peer_to_peer = true, .rtr = mpa::Rtr::read, .ird = 0, .ord = 0};
  ScriptPeer active(c);
  const auto frames = active.says();
  ASSERT_EQ(names(frames), "RDMA Read Request");
  const auto request = wire::ReadRequest::parse(frames[0].payload.data());
  EXPECT_EQ(request.size, 0U);

  c.initiator = false;
  ScriptPeer passive(c);
  passive.hears(frames[0].ulpdu);
  const auto answer = passive.says();
  ASSERT_EQ(names(answer), "RDMA Read Response");
  EXPECT_FALSE(passive.host.end);
  active.hears(answer[0].ulpdu);
  EXPECT_FALSE(active.host.end);
  EXPECT_TRUE(active.host.sent.empty()) << "it completes no request";
}

TEST(Stream, OnlyAResponderTakesAnEmptyFpdu) {
  StreamConfig c = script_config();
  c.mpa.peer_to_peer = true;
  c.mpa.rtr = mpa::Rtr::fpdu;
  ScriptPeer active(c);
  active.hears(Buffer{});
  EXPECT_EQ(active.host.end->error, term::kMpaLength);
  c.initiator = false;
  ScriptPeer passive(c);
  passive.hears(Buffer{});
  EXPECT_TRUE(passive.host.ready);
}

// wire.md 2.4: a server that speaks first waits for an FPDU that no program posted.
TEST(Stream, AnIdleInitiatorOpensWithAnEmptyWrite) {
  ScriptPeer weft(script_config(true));
  weft.later(0s);
  EXPECT_EQ(names(weft.says()), "RDMA Write") << "at once where X is agreed";
  ScriptPeer plain(script_config(false));
  plain.later(9ms);
  EXPECT_EQ(names(plain.says()), "");
  plain.later(1ms);
  EXPECT_EQ(names(plain.says()), "RDMA Write");
  plain.later(4ms);
  EXPECT_EQ(names(plain.says()), "");
}

TEST(Stream, AnInitiatorWithWorkNeedsNoEmptyWrite) {
  ScriptPeer p(script_config(false));
  Buffer data = pattern_bytes(10, 1);
  post_send(p, data);
  EXPECT_EQ(names(p.says()), "Send");
  p.hears(kEmptyWrite);
  p.later(1s);
  EXPECT_EQ(names(p.says()), "");
}

// wire.md 2.5 rule 5: 5, 20, 80 and 320 ms after the first FPDU, until a byte comes.
TEST(Stream, KicksAPeerThatSaysNothing) {
  ScriptPeer p(script_config(false));
  Buffer data = pattern_bytes(10, 1);
  post_send(p, data);
  EXPECT_EQ(names(p.says()), "Send");
  const Time first = p.now;
  std::vector<Duration> kicks;
  for (int ms = 1; ms <= 2000; ++ms) {
    p.later(1ms);
    if (!p.says().empty()) kicks.push_back(p.now - first);
  }
  EXPECT_EQ(kicks, (std::vector<Duration>{5ms, 20ms, 80ms, 320ms}));
  EXPECT_EQ(p.host.sent.size(), 1U) << "a kick completes nothing";
}

TEST(Stream, TheFirstByteEndsTheKicks) {
  ScriptPeer p(script_config(false));
  Buffer data = pattern_bytes(10, 1);
  post_send(p, data);
  p.says();
  p.later(6ms);
  EXPECT_EQ(names(p.says()), "RDMA Write");
  p.hears_bytes(Buffer(1));
  p.later(1s);
  EXPECT_EQ(names(p.says()), "");
}

TEST(Stream, NoKicksBetweenWeftsNorFromAResponder) {
  Buffer data = pattern_bytes(10, 1);
  for (const bool initiator : {true, false}) {
    StreamConfig c = script_config(initiator);
    c.initiator = initiator;
    ScriptPeer p(c);
    if (!initiator) p.hears(kEmptyWrite);
    post_send(p, data, false);
    EXPECT_EQ(names(p.says()), "Send");
    p.later(2s);
    EXPECT_EQ(names(p.says()), "");
  }
}

TEST(Stream, KicksGoOnAfterARtr) {
  StreamConfig c = script_config(false);
  c.mpa.peer_to_peer = true;
  c.mpa.rtr = mpa::Rtr::write;
  ScriptPeer p(c);
  EXPECT_EQ(names(p.says()), "RDMA Write");
  p.later(5ms);
  EXPECT_EQ(names(p.says()), "RDMA Write");
}

// --- Terminate

TEST(Stream, ATerminateOfOurs) {
  ScriptPeer p;
  Buffer data = pattern_bytes(10, 1);
  post_send(p, data);
  p.says();
  p.hears(tagged({.stag = Stag{0xbad}}, pattern_bytes(8, 1)));
  ASSERT_TRUE(p.host.end);
  EXPECT_EQ(p.host.end->kind, Kind::protocol_error);
  EXPECT_EQ(p.host.end->error, term::kTaggedInvalidStag);
  EXPECT_EQ(p.stream.wish(), Wish::none) << "the Terminate goes out first";
  EXPECT_EQ(names(p.says()), "Delivered, Terminate");
  EXPECT_EQ(names(p.says()), "");
  EXPECT_EQ(p.stream.wish(), Wish::shutdown_write);
  p.stream.write_side_shut(p.now);
  EXPECT_EQ(p.stream.wish(), Wish::none) << "what still comes is drained (wire.md 5.5)";
  EXPECT_TRUE(p.stream.wants_bytes());
  p.hears_bytes(pattern_bytes(1000, 3));
  EXPECT_EQ(p.stream.wish(), Wish::none);
  p.stream.peer_closed();
  EXPECT_EQ(p.stream.wish(), Wish::close);
}

TEST(Stream, ATerminateDoesNotWaitLongerThanASecondForTheFin) {
  ScriptPeer p;
  p.hears(tagged({.stag = Stag{0xbad}}, pattern_bytes(8, 1)));
  p.says();
  p.stream.write_side_shut(p.now);
  p.later(999ms);
  EXPECT_EQ(p.stream.wish(), Wish::none);
  p.later(1ms);
  EXPECT_EQ(p.stream.wish(), Wish::close);
}

// wire.md 5.5: if it cannot finish within 1 s, RST.
TEST(Stream, ATerminateThatDoesNotGetOutEndsInAReset) {
  ScriptPeer unsent;
  unsent.hears(tagged({.stag = Stag{0xbad}}, pattern_bytes(8, 1)));
  unsent.later(1s);
  EXPECT_EQ(unsent.stream.wish(), Wish::reset);

  // It is with the driver, and the socket takes nothing.
  ScriptPeer stuck;
  stuck.hears(tagged({.stag = Stag{0xbad}}, pattern_bytes(8, 1)));
  stuck.says();
  stuck.later(1s);
  EXPECT_EQ(stuck.stream.wish(), Wish::reset);
}

TEST(Stream, ATerminateOfThePeersIsNotAnswered) {
  ScriptPeer p;
  Buffer data = pattern_bytes(10, 1);
  post_send(p, data);
  p.says();
  p.hears(test::terminate({.error = term::kUntaggedNoBuffer}));
  EXPECT_EQ(p.host.end->kind, Kind::terminated);
  ASSERT_EQ(p.host.sent.size(), 1U);
  EXPECT_EQ(p.host.sent[0].status, Status::rnr_retry_exceeded);
  EXPECT_EQ(names(p.says()), "");
  EXPECT_EQ(p.stream.wish(), Wish::shutdown_write);
}

TEST(Stream, WhatStandsBehindATerminateIsNotDone) {
  ScriptPeer p;
  Buffer memory(64);
  const Buffer before = memory;
  const Stag stag = p.host.add_region(memory);
  p.hears({test::terminate({.error = term::kMpaCrc}),
           tagged({.stag = stag, .to = test::address_of(memory).value()}, pattern_bytes(8, 1))});
  EXPECT_EQ(memory, before);
  EXPECT_EQ(p.host.end->kind, Kind::terminated);
  EXPECT_EQ(p.host.end->error, term::kMpaCrc);
  EXPECT_EQ(names(p.says()), "");
}

// wire.md 5.4: a Terminate that is wrong itself is not answered either.
TEST(Stream, AWrongTerminateEndsItQuietly) {
  const Buffer good = test::terminate({.error = term::kMpaCrc});
  Buffer wrong_queue = good;
  wrong_queue[9] = std::byte{0};
  Buffer wrong_msn = good;
  wrong_msn[13] = std::byte{2};
  Buffer wrong_offset = good;
  wrong_offset[17] = std::byte{4};
  Buffer not_last = good;
  not_last[0] = std::byte{0x01};
  Buffer too_short{good.begin(), good.begin() + 20};
  Buffer too_long = good;
  too_long.resize(18 + 77);
  for (const Buffer& u : {wrong_queue, wrong_msn, wrong_offset, not_last, too_short, too_long}) {
    ScriptPeer p;
    p.hears(u);
    ASSERT_TRUE(p.host.end);
    EXPECT_EQ(p.host.end->kind, Kind::lost);
    EXPECT_EQ(names(p.says()), "");
    EXPECT_EQ(p.stream.wish(), Wish::close);
  }
}

// The count of what was delivered decides over completions, so a wrong one ends the stream. A
// broken request behind it in the same piece of bytes must not get mixed up with it.
TEST(Stream, ADeliveredBeyondWhatWasSent) {
  ScriptPeer p;
  Buffer request = test::read_request(1, {.size = 5});
  request.resize(request.size() + 1000, std::byte{0x5a});
  p.hears({delivered(1), request});
  EXPECT_EQ(p.host.end->error, term::kOperationCatastrophicStream);
  const auto t = terminate_in(p.says());
  EXPECT_EQ(t.error, term::kOperationCatastrophicStream);
  EXPECT_EQ(t.ddp_header_size, 14U) << "the Delivered is quoted";
  EXPECT_EQ(t.rdmap_header_size, 0U);
}

// --- the peer goes

TEST(Stream, AFinBetweenFpdusIsAnEnd) {
  ScriptPeer p;
  p.hears(kEmptyWrite);
  p.stream.peer_closed();
  EXPECT_EQ(p.host.end->kind, Kind::peer_closed);
  EXPECT_EQ(p.stream.wish(), Wish::close);
}

TEST(Stream, AFinInsideAnFpduIsALoss) {
  ScriptPeer p;
  p.hears_bytes(Bytes{test::make_fpdu(kEmptyWrite)}.first(7));
  p.stream.peer_closed();
  EXPECT_EQ(p.host.end->kind, Kind::lost);
  EXPECT_EQ(p.host.end->error, term::kMpaConnectionLost);
}

TEST(Stream, AResetIsALoss) {
  ScriptPeer p;
  Buffer data = pattern_bytes(10, 1);
  post_send(p, data);
  p.says();
  p.stream.connection_lost();
  EXPECT_EQ(p.host.end->kind, Kind::lost);
  EXPECT_EQ(p.host.sent.at(0).status, Status::flushed);
  EXPECT_EQ(p.stream.wish(), Wish::close);
  EXPECT_FALSE(p.stream.wants_bytes());
}

TEST(Stream, MemoryThatTheKernelCannotReach) {
  ScriptPeer p;
  Buffer data = pattern_bytes(10, 1);
  post_send(p, data);
  p.says();
  p.stream.own_memory_lost(false);
  EXPECT_EQ(p.host.end->kind, Kind::local_error);
  EXPECT_EQ(p.host.sent.at(0).status, Status::local_protection);
  EXPECT_EQ(names(p.says()), "") << "no FPDU can follow the bytes that are missing";
}

// --- receiver not ready

// design.md 4 rule 1: a plain peer gets a Terminate after rnr_wait.
TEST(Stream, APlainPeersSendWaitsForAReceiveButNotForEver) {
  ScriptPeer p(script_config(false));
  const Buffer message = untagged({.msn = 1}, pattern_bytes(12, 1));
  p.hears({message, kEmptyWrite});
  p.later(9999ms);
  EXPECT_FALSE(p.host.end);
  p.later(1ms);
  ASSERT_TRUE(p.host.end);
  EXPECT_EQ(p.host.end->error, term::kUntaggedNoBuffer);
  const auto t = terminate_in(p.says());
  EXPECT_EQ(t.error, term::kUntaggedNoBuffer);
  EXPECT_EQ(test::to_hex(Bytes{t.ddp_header}.first(t.ddp_header_size)),
            test::to_hex(Bytes{message}.first(18)))
      << "the message that waits, not the Write that came last";
  EXPECT_EQ(t.segment_length, message.size());
}

TEST(Stream, AProgramThatPostsReceivesNowAndThenIsInTime) {
  ScriptPeer p(script_config(false));
  for (uint32_t msn = 1; msn <= 10; ++msn) p.hears(untagged({.msn = msn}));
  for (uint32_t i = 1; i < 10; ++i) {
    p.later(6s);
    p.post_receive(i, {});
    ASSERT_FALSE(p.host.end) << "receive " << i;
    EXPECT_EQ(p.host.received.size(), i);
  }
  p.later(10s);
  EXPECT_TRUE(p.host.end) << "and the last one waits in vain";
}

TEST(Stream, BetweenWeftsTheReceiverWaits) {
  ScriptPeer p;
  p.hears(untagged({.msn = 1}));
  const auto frames = p.says();
  ASSERT_EQ(names(frames), "Delivered");
  EXPECT_EQ(frames[0].stag, Stag{0x100 | 12}) << "waiting, with the code of min_rnr_timer";
  EXPECT_EQ(frames[0].to, 0U);
  p.later(3600s);
  EXPECT_FALSE(p.host.end) << "the sender decides when to give up";
  p.post_receive(1, {});
  const auto got = p.says();
  ASSERT_EQ(names(got), "Delivered");
  EXPECT_EQ(got[0].stag, Stag{0}) << "said at once, AW or not";
  EXPECT_EQ(got[0].to, 1U);
}

TEST(Stream, TheSenderGivesUpAfterItsRetries) {
  StreamConfig c = script_config();
  c.rnr_retry = 2;
  ScriptPeer p(c);
  Buffer data = pattern_bytes(10, 1);
  post_send(p, data);
  p.says();
  p.hears(delivered(0, 0x100 | 14));
  p.later(3 * 1280us - 1us);
  EXPECT_FALSE(p.host.end);
  p.later(1us);
  ASSERT_TRUE(p.host.end);
  EXPECT_EQ(p.host.end->kind, Kind::local_error);
  EXPECT_EQ(p.host.sent.at(0).status, Status::rnr_retry_exceeded);
  EXPECT_EQ(terminate_in(p.says()).error, term::kLocalCatastrophic);
}

// The receive came while the message was still on its way: its rest may take as long as it likes.
TEST(Stream, TheSenderIsPatientOnceTheReceiveIsThere) {
  StreamConfig c = script_config();
  c.rnr_retry = 2;
  ScriptPeer p(c);
  Buffer data = pattern_bytes(10, 1);
  post_send(p, data);
  p.says();
  p.hears(delivered(0, 0x100 | 14));
  p.hears(delivered(0));
  p.later(3600s);
  EXPECT_FALSE(p.host.end);
  p.hears(delivered(1));
  EXPECT_EQ(p.host.sent.at(0).status, Status::success);
}

TEST(Stream, NewSettingsOfTheQueuePairCount) {
  ScriptPeer p;
  p.stream.set_rnr(1, 20);
  p.hears(untagged({.msn = 1}));
  EXPECT_EQ(p.says().at(0).stag, Stag{0x100 | 20});
  Buffer data = pattern_bytes(10, 1);
  post_send(p, data);
  p.says();
  p.hears(delivered(0, 0x100 | 1));
  p.later(20us);
  EXPECT_TRUE(p.host.end);
}

// A Read that waited behind a Send is judged when its turn comes, and quoted then.
TEST(Stream, AnErrorOfWhatWaitedQuotesWhatWaited) {
  ScriptPeer p;
  const Buffer request = test::read_request(1, {.size = 5, .source_stag = Stag{0xbad00}});
  p.hears({untagged({.msn = 1}), request, tagged({.stag = Stag{1}})});
  p.post_receive(1, {});
  ASSERT_TRUE(p.host.end);
  EXPECT_EQ(p.host.end->error, term::kProtectionInvalidStag);
  const auto t = terminate_in(p.says());
  EXPECT_EQ(test::to_hex(Bytes{t.ddp_header}.first(t.ddp_header_size)),
            test::to_hex(Bytes{request}.first(18)));
  EXPECT_EQ(test::to_hex(Bytes{t.rdmap_header}.first(t.rdmap_header_size)),
            test::to_hex(Bytes{request}.subspan(18)));
}

// --- bytes in

TEST(Stream, DirectPlacesAreAskedForAnew) {
  ScriptPeer p;
  Buffer memory(40'000);
  const Stag stag = p.host.add_region(memory);
  const Buffer frame = test::make_fpdu(
      tagged({.stag = stag, .to = test::address_of(memory).value()}, pattern_bytes(40'000, 1)));
  p.hears_bytes(Bytes{frame}.first(1000));
  ASSERT_TRUE(p.stream.direct());
  PieceList places;
  ASSERT_TRUE(p.stream.direct_places(places, p.now));
  EXPECT_EQ(places.pieces()[0].iov_base, memory.data() + 1000 - 16);
  p.host.regions.erase(stag);
  PieceList gone;
  EXPECT_FALSE(p.stream.direct_places(gone, p.now));
  EXPECT_EQ(p.host.end->error, term::kTaggedInvalidStag);
}

TEST(Stream, AClosingStreamTakesRequestsUntilTheFin) {
  ScriptPeer p;
  Buffer memory = pattern_bytes(16, 1);
  const Stag stag = p.host.add_region(memory);
  Buffer data = pattern_bytes(10, 1);
  post_send(p, data);
  p.says();
  p.stream.close(p.now);
  p.hears(test::read_request(1, {.sink_stag = Stag{5},
                                 .size = 16,
                                 .source_stag = stag,
                                 .source_to = test::address_of(memory)}));
  EXPECT_EQ(names(p.says()), "Delivered, RDMA Read Response");
}

}  // namespace
}  // namespace weft::rdmap
