#include "drive/datagram_tally.h"

#include <utility>

namespace weft::drive {
namespace {

using wire::WdpDrop;

// What was lost may have been late only, and then there is less of it: cells wrap.
void publish_one(uint64_t now, uint64_t& before, stats::Cell& to) {
  if (now != before) to.add(now - std::exchange(before, now));
}

}  // namespace

void DropTally::publish(const wdp::DropCounts& now, stats::EngineCounters& to) {
  if (now.total() == before_.total()) return;
  for (size_t i = 0; i < wire::kWdpDropCount; ++i) {
    const auto why = static_cast<WdpDrop>(i);
    if (const uint64_t more = now.of(why) - before_.of(why); more > 0) {
      to.datagram_dropped[i].add(more);
    }
  }
  before_ = now;
}

void RejTally::publish(const wdp::RejCounts& now, stats::EngineCounters& to) {
  if (now.total() == before_.total()) return;  // as nearly always
  for (size_t i = 0; i < wire::kRejReasons; ++i) {
    const auto why = static_cast<wire::RejReason>(i + 1);
    if (const uint64_t more = now.of(why) - before_.of(why); more > 0) to.wdp_rejected[i].add(more);
  }
  before_ = now;
}

void HandshakeTally::publish(const wdp::Handshake& handshake, stats::EngineCounters& to) {
  if (const auto why = handshake.rejected_by_us(); why && !std::exchange(rejected_, true)) {
    stats::count(to.wdp_rejected, static_cast<size_t>(*why) - 1);
  }
  if (handshake.state() == wdp::Handshake::State::failed && !std::exchange(failed_, true) &&
      handshake.active()) {
    count_failed_call(handshake, to);
  }
}

void count_failed_call(const wdp::Handshake& call, stats::EngineCounters& to) {
  using Failure = wdp::Handshake::Failure;
  using stats::CallEnd;
  switch (call.failure()) {
    case Failure::rejected: {
      const uint32_t reason = call.peer().reason;
      const bool known = reason >= 1 && reason <= wire::kRejReasons;
      to.wdp_call_failed[known ? reason - 1 : static_cast<size_t>(CallEnd::other_reason)].add();
      return;
    }
    case Failure::bad_parameters:
      return stats::count(to.wdp_call_failed, CallEnd::bad_answer);
    case Failure::timeout:
      return stats::count(to.wdp_call_failed, CallEnd::timed_out);
    case Failure::none:
    case Failure::withdrawn:
      return;
  }
}

void UcTally::publish(const wdp::UcSession& session, stats::QpCounters& qp,
                      stats::EngineCounters& engine) {
  const wdp::UcCounters& now = session.counters();
  const auto one = [&](uint64_t wdp::UcCounters::*member, stats::Cell& to) {
    publish_one(now.*member, before_.*member, to);
  };
  using C = wdp::UcCounters;
  one(&C::datagrams_sent, qp.fpdus_sent);
  one(&C::datagrams_received, qp.fpdus_received);
  // Of Sends the queue pair counts what its consumer is told of; of Writes it is not told.
  one(&C::write_bytes_placed, qp.bytes_received[static_cast<size_t>(stats::Kind::write)]);
  one(&C::reordered, qp.datagrams_reordered);
  one(&C::late, qp.datagrams_late);
  one(&C::messages_incomplete, qp.messages_incomplete);
  one(&C::messages_without_receive, qp.messages_unreceived);
  one(&C::held, engine.datagrams_held);
  one(&C::messages_too_long, engine.messages_too_long);
  one(&C::reads_answered, engine.uc_reads_answered);
  one(&C::reads_failed, engine.uc_reads_failed);
  one(&C::ranges_repeated, engine.uc_ranges_repeated);
  one(&C::paths_narrowed, engine.uc_paths_narrowed);
  one(&C::errors_sent, engine.uc_errors_sent);
  one(&C::errors_received, engine.uc_errors_received);
  publish_one(session.lost(), lost_, qp.datagrams_lost);
  const uint64_t copies = now.drops.of(WdpDrop::duplicate) - before_.drops.of(WdpDrop::duplicate);
  if (copies > 0) {
    qp.datagrams_duplicate.add(copies);
    before_.drops = now.drops;
  }
  drops_.publish(now.drops, engine);
}

void RdTally::publish(const wdp::RdChannel& channel, stats::EngineCounters& engine) {
  auto before = before_.begin();
  const auto one = [&](uint64_t now, stats::Cell& to) {
    const auto low = static_cast<uint32_t>(now);
    if (low != *before) to.add(low - std::exchange(*before, low));
    ++before;
  };
  const wdp::RdSendCounters& s = channel.sender().counters();
  one(s.sent, engine.rd_datagrams_sent);
  one(s.repeated, engine.rd_datagrams_repeated);
  one(s.lost, engine.rd_datagrams_lost);
  one(s.probes, engine.rd_probes);
  one(s.marked, engine.rd_marks_heard);
  one(channel.out().messages_lost(), engine.rd_messages_lost);
  if (const auto* receiver = channel.receiver()) {
    const wdp::RdReceiveCounters& r = receiver->counters();
    one(r.received, engine.rd_datagrams_received);
    one(r.reordered, engine.rd_datagrams_reordered);
    one(r.marked, engine.rd_datagrams_marked);
    one(r.held, engine.rd_messages_held);
    one(r.given_up, engine.rd_messages_given_up);
  }
}

void RdQueueTally::publish(const wdp::RdResponder& responder, stats::QpCounters& qp,
                           stats::EngineCounters& engine) {
  publish_one(responder.refused(), refused_, qp.messages_unreceived);
  drops_.publish(responder.drops(), engine);
}

void UdTally::publish(const wdp::UdCounters& now, stats::QpCounters& qp,
                      stats::EngineCounters& engine) {
  publish_one(now.messages_sent, sent_, qp.fpdus_sent);
  publish_one(now.messages_received, received_, qp.fpdus_received);
  publish_one(now.messages_plain, plain_, engine.ud_messages_plain);
  publish_one(now.drops.of(WdpDrop::no_receive), unreceived_, qp.messages_unreceived);
  drops_.publish(now.drops, engine);
}

}  // namespace weft::drive
