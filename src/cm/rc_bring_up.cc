#include "cm/rc_bring_up.h"

#include <algorithm>

#include "base/log.h"
#include "cm/bring_up_block.h"
#include "cm/lingering_close.h"
#include "cm/stream_settings.h"
#include "config/options.h"
#include "device/device.h"
#include "verbs/address_handle.h"

namespace weft::cm {
namespace {

using namespace std::chrono_literals;
using engine::Token;
using stats::BringUpRefusal;
using wire::Wfrc;

// spec/addressing 5.4
constexpr Duration kStartTimeout = 10s;

uint64_t random64() {
  SystemRandom random;
  return random.next();
}

void count_answer(Token& token, Wfrc::Code code) {
  static_assert(static_cast<size_t>(Wfrc::Code::qp_in_error) + 1 == stats::kBringUpAnswers);
  const Wfrc::Code known = code <= Wfrc::Code::qp_in_error ? code : Wfrc::Code::ok;
  stats::count(token.runtime().counters().bring_up_answer, known);
}

// What both sides bring to the start-up. The program's ORD is not known before RTS; the peer's IRD
// bounds ours either way.
mpa::Offer offer_for(const verbs::QueuePair& qp) {
  const config::Options& o = config::options();
  return {.crc = o.crc,
          .extension = o.ext != config::Extensions::off,
          .peer_to_peer = true,
          .ird = qp.attributes().max_dest_rd_atomic,
          .ord = device::kMaxReads};
}

}  // namespace

void RcBringUp::start(Token& token, PairBringUpOwner& owner, verbs::QueuePair& pair) {
  auto owned = std::unique_ptr<RcBringUp>{new RcBringUp(owner, pair)};
  RcBringUp& b = *owned;
  token.runtime().add(token, std::move(owned), -1, false, false);
  owner.bring_up_begun(pair, b);
  token.runtime().guard(
      token, [&] { b.begin(token); }, [&] { b.retry(token); });
}

void RcBringUp::begin(Token& token) {
  // A peer's Request may come through a channel.
  if (config::options().rc == config::Rc::udp)
    (void)qp_.adapter().ports().datagrams(token, qp_.number());
  if (!plan_route()) {
    // modify_qp has checked the address vector, so this cannot be; and if it is, it has an end.
    retry(token);
  } else if (qp_.number() == qp_.attributes().dest_qpn &&
             (local_ == remote_ || device::is_localhost(remote_))) {
    connect_to_self(token);
  } else if (is_active_side()) {
    connect(token, false);
  } else {
    token.runtime().set_deadline(token, *this, token.now() + BringUpTimes::kPassivePatience);
  }
}

bool RcBringUp::plan_route() {
  const verbs::AddressVector& av = qp_.attributes().av;
  const auto destination = qp_.context().destination(av);
  const device::GidEntry* source = verbs::source_of(qp_.context(), av);
  if (!destination || source == nullptr) return false;
  local_ = source->gid;
  remote_ = *destination;
  scope_ = source->scope_id != 0 ? source->scope_id : source->ifindex;
  return true;
}

Wfrc RcBringUp::block() const {
  const verbs::QpAttributes& a = qp_.attributes();
  return {.fallback = fallback_,
          .source_qpn = qp_.number(),
          .destination_qpn = a.dest_qpn,
          .sq_psn = a.sq_psn,
          .rq_psn = a.rq_psn,
          .nonce = nonce_,
          .source_gid = local_,
          .destination_gid = remote_};
}

void RcBringUp::connect(Token& token, bool fallback) {
  fallback_ = fallback;
  nonce_ = random64();
  if (may_start_in_channel(token)) {
    connect_by_channel(token);
  } else {
    connect_by_tcp(token);
  }
}

wdp::Endpoint RcBringUp::peer_port() const {
  return {.address = remote_, .port = port_of(qp_.attributes().dest_qpn)};
}

bool RcBringUp::may_start_in_channel(Token& token) {
  return config::options().rc == config::Rc::udp && offer_for(qp_).extension && !by_tcp_ &&
         !owner_.silent_ports().has(peer_port(), token.now());
}

// spec/wdp-rd 7.5: the port in the number is that of the peer's datagrams, too.
void RcBringUp::connect_by_channel(Token& token) {
  const Qpn peer = qp_.attributes().dest_qpn;
  const auto to = verbs::resolve(qp_.context(), qp_.attributes().av);
  if (!to) return retry(token);  // modify_qp has checked it
  drive::DatagramDriver& driver = qp_.adapter().ports().datagrams(token, qp_.number());
  channel_start_ = &ChannelStart::start(token, *this, driver,
                                        {.path = to->to(peer),
                                         .interface = to->interface,
                                         .to = peer,
                                         .own = *own_offer(),
                                         .offer = offer_for(qp_),
                                         .private_data = encode(block()),
                                         .timeout = kStartTimeout});
  driver.settle(token);
}

// Where this end would have datagrams, and how large.
std::optional<wire::RdOffer> RcBringUp::own_offer() const {
  const auto to = verbs::resolve(qp_.context(), qp_.attributes().av);
  return to ? rd_offer(qp_, to->to(qp_.attributes().dest_qpn)) : rd_offer(qp_.number());
}

void RcBringUp::connect_by_tcp(Token& token) {
  active_start_ = &ActiveStart::start(
      token, *this,
      {.from = port::Address::from_gid(local_, 0, scope_),
       .to = port::Address::from_gid(remote_, port_of(qp_.attributes().dest_qpn), scope_),
       .offer = offer_for(qp_),
       .private_data = encode(block()),
       .timeout = kStartTimeout,
       .rd = own_offer(),
       .fallbacks = false});
}

void RcBringUp::request_waits(Token& token) {
  times_.request_waits(token.now(), qp_.attributes());
}

bool RcBringUp::request_is_out() const {
  return (active_start_ != nullptr && active_start_->request_sent()) ||
         (channel_start_ != nullptr && channel_start_->request_sent());
}

void RcBringUp::stop_starting(Token& token) {
  if (active_start_ != nullptr) std::exchange(active_start_, nullptr)->cancel(token);
  if (channel_start_ != nullptr) std::exchange(channel_start_, nullptr)->cancel(token);
}

void RcBringUp::cancel(Token& token) {
  stop_starting(token);
  end(token);
}

void RcBringUp::on_deadline(Token& token) {
  if (token.now() >= times_.give_up_at()) {
    give_up(token);
  } else if (!starts() && plan_route()) {
    connect(token, !is_active_side());
  } else if (!starts()) {
    retry(token);
  }
}

void RcBringUp::retry(Token& token) {
  token.runtime().set_deadline(token, *this, times_.next_try(token.now(), random64()));
}

void RcBringUp::give_up(Token& token) {
  WEFT_LOG(info, "queue pair 0x%06x: no connection to QPN 0x%06x at %s; giving up",
           qp_.number().value(), qp_.attributes().dest_qpn.value(), remote_.to_string().c_str());
  verbs::QueuePair& qp = qp_;
  token.runtime().counters().bring_ups_given_up.add();
  cancel(token);
  qp.fail_connection(token, verbs::Status::retry_exceeded);
}

void RcBringUp::connected(Token& token, Started&& started, bool initiator, uint64_t nonce) {
  verbs::QueuePair& qp = qp_;
  stop_starting(token);
  end(token, nonce);
  qp.transport().stream_adopter()->adopt(token,
                                         {.tcp = std::move(started.tcp),
                                          .segment = std::move(started.segment),
                                          .rd = started.rd,
                                          .bytes = std::move(started.bytes),
                                          .loop = started.loop,
                                          .config = stream_settings(started.parameters, initiator),
                                          .early = started.early});
}

// Both ends are one (spec/addressing 4).
void RcBringUp::connect_to_self(Token& token) {
  Started started;
  started.loop = port::Address::from_gid(local_, port_of(qp_.number()), scope_);
  started.parameters = {.crc = config::options().crc,
                        .extension = true,
                        .ird = device::kMaxReads,
                        .ord = device::kMaxReads};
  connected(token, std::move(started), true, random64());
}

void RcBringUp::start_connected(Token& token, ActiveStart&, Started&& started) {
  active_start_ = nullptr;
  reply_came(token, std::move(started));
}

void RcBringUp::channel_started(Token& token, ChannelStart&, Started&& started) {
  channel_start_ = nullptr;
  reply_came(token, std::move(started));
}

void RcBringUp::reply_came(Token& token, Started&& started) {
  const auto reply = Wfrc::parse(started.private_data);
  if (!reply || reply->code != Wfrc::Code::ok) {
    // Somebody else's server took the connection: the port has changed hands.
    LingeringClose::give_up(token, std::move(started));
    count_answer(token, Wfrc::Code::ok);
    retry(token);
    return;
  }
  connected(token, std::move(started), true, nonce_);
}

void RcBringUp::start_failed(Token& token, ActiveStart&, ActiveStartFailure&& failure) {
  active_start_ = nullptr;
  refused(token, failure);
}

void RcBringUp::channel_start_failed(Token& token, ChannelStart&, ActiveStartFailure&& failure) {
  channel_start_ = nullptr;
  refused(token, failure);
}

// For as long as this one tries: TCP finds out more than a channel that does not open.
void RcBringUp::no_channel(Token& token, ChannelStart&, bool silent) {
  channel_start_ = nullptr;
  if (silent) owner_.silent_ports().add(peer_port(), token.now());
  by_tcp_ = true;
  connect_by_tcp(token);
}

void RcBringUp::refused(Token& token, const ActiveStartFailure& failure) {
  const auto reply = Wfrc::parse(failure.private_data);
  if (failure.kind == ActiveStartFailure::Kind::rejected && reply) {
    count_answer(token, reply->code);
    switch (reply->code) {
      case Wfrc::Code::role_conflict:
        // The peer's own connection won; should it not come, connect again.
        token.runtime().set_deadline(token, *this, token.now() + BringUpTimes::kPassivePatience);
        return;
      case Wfrc::Code::not_your_peer:
      case Wfrc::Code::bad_parameters:
      case Wfrc::Code::qp_in_error:
        if (times_.refused_for_good(token.now())) {
          WEFT_LOG(info, "queue pair 0x%06x: QPN 0x%06x at %s answers: %s", qp_.number().value(),
                   qp_.attributes().dest_qpn.value(), remote_.to_string().c_str(),
                   wire::to_string(reply->code));
          give_up(token);
          return;
        }
        break;
      default:
        times_.not_refused_for_good();
    }
  }
  retry(token);
}

void RcBringUp::request_came(Token& token, StartRequest& start, const Wfrc& request) {
  if (request_is_out()) {
    // Two connections: that of the active side wins, else the larger nonce
    // (spec/addressing 5.5).
    const bool theirs_wins =
        request.fallback != fallback_ ? !request.fallback : request.nonce > nonce_;
    if (!theirs_wins) {
      refuse(token, start, request, Wfrc::Code::role_conflict, BringUpRefusal::role_conflict);
      return;
    }
  }
  stop_starting(token);
  Wfrc reply = block();
  reply.nonce = request.nonce;
  reply.fallback = false;
  auto started = start.accept(token, offer_for(qp_), encode(reply), own_offer());
  if (!started) {
    retry(token);
    return;
  }
  connected(token, std::move(*started), false, request.nonce);
}

}  // namespace weft::cm
