#include "cm/active_start.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/log.h"
#include "cm/lingering_close.h"
#include "drive/silence.h"

namespace weft::cm {

using engine::Token;
using stats::DialEnd;

namespace {

stats::ReplyRefusal why(const mpa::Initiator::Refused& refused) {
  using Error = mpa::FrameReader::Error;
  using stats::ReplyRefusal;
  if (!refused.frame) {
    return refused.error == wire::term::kMpaInsufficientIrd ? ReplyRefusal::insufficient_ird
                                                            : ReplyRefusal::no_matching_rtr;
  }
  switch (*refused.frame) {
    case Error::bad_key:
      return ReplyRefusal::bad_key;
    case Error::bad_revision:
      return ReplyRefusal::bad_revision;
    case Error::private_data_too_long:
      return ReplyRefusal::private_data_too_long;
    case Error::enhanced_block_missing:
      break;
  }
  return ReplyRefusal::enhanced_block_missing;
}

// What the kernel says of a connection that could not be made.
DialEnd end_for(int error) {
  if (error == ECONNREFUSED) return DialEnd::nobody_listens;
  if (error == ENOMEM) return DialEnd::no_memory;
  return error == ETIMEDOUT ? DialEnd::timed_out : DialEnd::unreachable;
}

}  // namespace

ActiveStart& ActiveStart::start(Token& token, ActiveStartHandler& handler, ActiveStartPlan plan,
                                port::Fd bound) {
  auto owned = std::unique_ptr<ActiveStart>{new ActiveStart(handler, std::move(plan))};
  ActiveStart& start = *owned;
  start.until_ = token.now() + start.plan_.timeout;
  token.runtime().add(token, std::move(owned), -1, false, false);
  start.connect(token, std::move(bound));
  return start;
}

void ActiveStart::cancel(Token& token) {
  if (state_ == State::awaiting_reply && plan_.fallbacks && plan_.offer.peer_to_peer) {
    // The Reply may be on its way, and with it the duty to send the RTR (spec/mpa 2.5.6).
    handler_ = nullptr;
    return;
  }
  token.runtime().remove(token, *this);
  tcp_.close();
}

Result<port::TcpStream, port::SystemError> ActiveStart::socket_to_peer(port::Fd bound) {
  auto tcp = bound.valid()
                 ? port::TcpStream::connect_from(std::move(bound), plan_.to, plan_.type_of_service)
                 : port::TcpStream::connect(plan_.from, plan_.to, plan_.type_of_service);
  if (tcp.ok() || !plan_.any_port) return tcp;
  // An earlier connection between the two ports is in TIME-WAIT, or somebody has the port by now.
  if (tcp.error().code != EADDRNOTAVAIL && tcp.error().code != EADDRINUSE) return tcp;
  plan_.from.set_port(0);
  return port::TcpStream::connect(plan_.from, plan_.to, plan_.type_of_service);
}

void ActiveStart::connect(Token& token, port::Fd bound) {
  initiator_ = mpa::Initiator{plan_.offer};
  token.runtime().counters().dials.add();
  auto tcp = socket_to_peer(std::move(bound));
  if (!tcp.ok()) return fail_at_start(token, tcp.error().code);
  tcp_ = std::move(*tcp);
  state_ = State::connecting;
  watch(token);
  token.runtime().guard(
      token, [&] { token.runtime().rewatch(token, *this, tcp_.fd(), false, true); },
      [&] { fail_at_start(token, ENOMEM); });
}

// Told at the next turn: the caller is not ready to hear it.
void ActiveStart::fail_at_start(Token& token, int error) {
  state_ = State::failed_at_start;
  start_error_ = error;
  token.runtime().set_deadline(token, *this, token.now());
}

// Until the start-up is over, or silence is to be reported.
void ActiveStart::watch(Token& token) {
  const Time look_at = silence_told_ ? Time::never() : token.now() + drive::kSilence;
  token.runtime().set_deadline(token, *this, std::min(until_, look_at));
}

// A peer that takes its time for a Reply has acknowledged the Request; a first segment of TCP is
// answered by a kernel.
void ActiveStart::look_for_answers(Token& token) {
  const unsigned enough = state_ == State::connecting ? 1 : drive::kSilentAfterResends;
  if (handler_ != nullptr && tcp_.unacknowledged().resent >= enough) {
    silence_told_ = true;
    drive::report_silence(token, stats::Silence::connecting, plan_.to);
  }
  watch(token);
}

void ActiveStart::on_deadline(Token& token) {
  const bool failed = state_ == State::failed_at_start;
  if (!failed && token.now() < until_) return look_for_answers(token);
  fail_by_system(token, failed ? start_error_ : ETIMEDOUT);
}

void ActiveStart::fail_by_system(Token& token, int error) {
  using Kind = ActiveStartFailure::Kind;
  fail(token, end_for(error),
       {.kind = error == ECONNREFUSED ? Kind::refused
                : error == ETIMEDOUT  ? Kind::timed_out
                                      : Kind::unreachable,
        .error = error});
}

void ActiveStart::on_ready(Token& token, bool readable, bool writable) {
  if (state_ == State::connecting && writable) {
    connected(token);
  } else if (state_ == State::awaiting_reply && readable) {
    read_reply(token);
  }
}

void ActiveStart::connected(Token& token) {
  if (const int error = tcp_.connect_result(); error != 0) return fail_by_system(token, error);
  // On one host the kernel may pick the target as the source port, and the socket talks to itself
  // (spec/addressing 5.4).
  const port::Address local = tcp_.local();
  const port::Address peer = tcp_.peer();
  if (local.port() == peer.port() && local.gid() == peer.gid()) {
    tcp_.reset();
    fail(token, DialEnd::to_itself,
         {.kind = ActiveStartFailure::Kind::refused, .error = ECONNREFUSED});
    return;
  }
  outlook_ = shared::outlook(tcp_);
  const bool shares = !plan_.rd && outlook_.may_share();
  const auto request = initiator_.request(plan_.private_data, shares, plan_.rd.has_value());
  const IoVec piece{const_cast<std::byte*>(request.data()), request.size()};
  const auto sent = tcp_.send({&piece, 1});
  // A fresh socket takes half a kilobyte at once, or is broken.
  if (sent.bytes != request.size()) {
    no_reply(token, sent.error);
    return;
  }
  state_ = State::awaiting_reply;
  token.runtime().want_write(token, *this, false);
  token.runtime().want_read(token, *this, true);
}

void ActiveStart::read_reply(Token& token) {
  std::array<std::byte, 4096> buffer;
  const IoVec piece{buffer.data(), buffer.size()};
  const auto t = tcp_.receive({&piece, 1});
  if (t.would_block) return;
  if (t.end || t.error != 0) {
    no_reply(token, t.error);
    return;
  }
  Bytes bytes{buffer.data(), t.bytes};
  if (auto outcome = initiator_.received(bytes)) judge(token, std::move(*outcome), bytes);
}

Started ActiveStart::hand_over(Token& token, const mpa::Parameters& agreed) {
  token.runtime().rewatch(token, *this, -1, false, false);
  return {.tcp = std::move(tcp_),
          .parameters = agreed,
          .private_data = {},
          .early = {},
          .segment = {},
          .rd = {},
          .owes_rtr = agreed.rtr != mpa::Rtr::none && !agreed.extension};
}

// The Responder waits to hear of its offer before all else (spec/same-host 2.2).
std::optional<shared::Segment> ActiveStart::answer_offer(Token& token,
                                                         const mpa::Initiator::Outcome& outcome) {
  stats::EngineCounters& counters = token.runtime().counters();
  if (outcome.host && outcome.accepted && handler_ != nullptr) {
    return shared::take(*outcome.host, tcp_, counters);
  }
  if (outcome.host_offered) {
    shared::decline(tcp_);
  } else if (outcome.accepted && !plan_.rd) {
    shared::count_unoffered(outlook_, outcome.accepted->parameters.extension, counters);
  }
  return {};
}

// The same for datagrams as the carrier (spec/wdp-rd 7.1).
std::optional<wire::RdOffers> ActiveStart::answer_rd(const mpa::Initiator::Outcome& outcome) {
  if (!outcome.rd_offered) return {};
  const bool comes = outcome.rd && outcome.accepted && handler_ != nullptr;
  std::array<std::byte, 1 + wire::RdOffer::kSize> answer;
  answer[0] = static_cast<std::byte>(comes ? wire::RdCarrier::datagrams : wire::RdCarrier::tcp);
  plan_.rd->encode(&answer[1]);
  const IoVec piece{answer.data(), comes ? answer.size() : 1};
  // A socket that has sent no more than its Request takes it, or is broken and says so later.
  (void)tcp_.send({&piece, 1});
  if (!comes) return {};
  return wire::RdOffers{.own = *plan_.rd, .peer = *outcome.rd};
}

void ActiveStart::judge(Token& token, mpa::Initiator::Outcome&& outcome, Bytes rest) {
  auto segment = answer_offer(token, outcome);
  const auto rd = answer_rd(outcome);
  if (outcome.accepted) {
    token.runtime().counters().dials_connected.add();
    Started started = hand_over(token, outcome.accepted->parameters);
    started.segment = std::move(segment);
    started.rd = rd;
    started.private_data = std::move(outcome.accepted->private_data);
    started.early = {rest.begin(), rest.end()};
    token.runtime().remove(token, *this);
    if (handler_ != nullptr) {
      handler_->start_connected(token, *this, std::move(started));
    } else {
      LingeringClose::give_up(token, std::move(started));
    }
    return;
  }
  if (outcome.rejected) {
    fail(token, DialEnd::rejected,
         {.kind = ActiveStartFailure::Kind::rejected,
          .error = ECONNREFUSED,
          .private_data = std::move(outcome.rejected->private_data)});
    return;
  }
  if (outcome.retry_revision_1 && fall_back(token, false)) return;
  if (outcome.refused) {
    stats::count(token.runtime().counters().reply_refused, why(*outcome.refused));
    // RFC 6581 section 9.1: say why before closing.
    const mpa::Parameters& p = outcome.refused->parameters;
    LingeringClose::give_up(token, hand_over(token, p), outcome.refused->error);
  }
  fail(token, DialEnd::bad_reply, {.kind = ActiveStartFailure::Kind::protocol, .error = EPROTO});
}

// The peer closed, or reset, before a whole Reply was there.
void ActiveStart::no_reply(Token& token, int error) {
  if (!initiator_.reply_started() && fall_back(token, true)) return;
  fail(token, DialEnd::no_reply,
       {.kind = ActiveStartFailure::Kind::protocol, .error = error != 0 ? error : ECONNRESET});
}

bool ActiveStart::fall_back(Token& token, bool no_reply_came) {
  if (handler_ == nullptr || !plan_.fallbacks || plan_.offer.revision == 1) return false;
  if (no_reply_came && plan_.offer.extension) {
    plan_.offer.extension = false;
  } else {
    plan_.offer.revision = 1;
    plan_.offer.extension = false;
    plan_.offer.peer_to_peer = false;
  }
  stats::EngineCounters& counters = token.runtime().counters();
  (plan_.offer.revision == 1 ? counters.dials_with_revision_1 : counters.dials_without_extension)
      .add();
  WEFT_LOG(info, "%s does not take the MPA Request; trying again %s", plan_.to.to_string().c_str(),
           plan_.offer.revision == 1 ? "with MPA revision 1" : "without weft's extension");
  token.runtime().rewatch(token, *this, -1, false, false);
  tcp_.close();
  // The peer may still have the connection that was closed: a SYN between the same ports would be
  // taken for one of it.
  if (plan_.any_port) plan_.from.set_port(0);
  connect(token, {});
  return true;
}

void ActiveStart::on_no_memory(Token& token) {
  fail(token, DialEnd::no_memory, {.kind = ActiveStartFailure::Kind::unreachable, .error = ENOMEM});
}

void ActiveStart::fail(Token& token, DialEnd why, ActiveStartFailure&& failure) {
  stats::count(token.runtime().counters().dial_failed, why);
  token.runtime().remove(token, *this);
  tcp_.close();
  if (handler_ != nullptr) handler_->start_failed(token, *this, std::move(failure));
}

}  // namespace weft::cm
