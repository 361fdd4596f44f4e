#include "wdp/uc_session.h"

#include <algorithm>

#include "base/log.h"
#include "wire/wdp_crc.h"

namespace weft::wdp {

using wire::Opcode;
using wire::WdpCommon;
using wire::WdpData;
using wire::WdpDrop;
using work::StreamEnd;

UcSession::UcSession(UcConsumer& consumer, const UcParameters& parameters, Random& random,
                     SendWindows& windows, Time now)
    : consumer_(consumer),
      parameters_(parameters),
      rtt_(parameters.rtt),
      writer_(parameters_),
      control_(parameters_, writer_, rtt_, counters_, random, now),
      requester_(consumer, parameters_, writer_, rtt_, counters_,
                 static_cast<uint32_t>(random.next())),
      responder_(consumer, parameters_, writer_, control_, counters_),
      send_path_(consumer, parameters_, writer_, requester_, counters_),
      receive_path_(consumer, parameters_, requester_, responder_, control_, counters_),
      window_(windows.to(parameters.path.to, parameters.is_static ? 0 : parameters.window,
                         parameters.close_by)) {}

// --- datagrams in

void UcSession::received(const WdpCommon& common, Bytes datagram, Time now) {
  if (!active()) return;
  const auto d = WdpData::parse(common, datagram, datagram.size());
  if (!d.ok()) {
    counters_.drops.count(d.error());
    return;
  }
  if (d->wdp_class != wire::WdpClass::uc) {
    counters_.drops.count(WdpDrop::wrong_class);
    return;
  }
  // spec/wdp 2.3: the CRC covers the whole datagram. It is looked at before anything is placed, for
  // the datagram lies here in one piece (part IV).
  if (parameters_.crc && !d->flags.crc) {
    counters_.drops.count(WdpDrop::crc_missing);
    return;
  }
  if (d->flags.crc && !wire::wdp_crc_matches(datagram)) {
    counters_.drops.count(WdpDrop::bad_crc);
    return;
  }
  ++counters_.datagrams_received;
  control_.heard(now);
  receive_path_.received(*d, datagram.subspan(WdpData::kSize), now);
  settle(now);
}

bool UcSession::direct(const WdpCommon& common, Bytes front, size_t size, PieceList& places) {
  if (!active()) return false;
  const auto d = WdpData::parse(common, front, size);
  if (!d.ok() || d->wdp_class != wire::WdpClass::uc || parameters_.crc || d->flags.crc ||
      !receive_path_.direct(*d, places)) {
    places.clear();
    return false;
  }
  direct_ = *d;
  return true;
}

void UcSession::direct_received(Time now) {
  ++counters_.datagrams_received;
  control_.heard(now);
  receive_path_.direct_received(direct_, now);
  settle(now);
}

void UcSession::direct_unreachable(Time now) {
  ++counters_.datagrams_received;
  control_.heard(now);
  receive_path_.direct_unreachable(direct_);
  settle(now);
}

void UcSession::received(const wire::WdpCtl& ctl, Time now) {
  handle(control_.received(ctl, receive_path_.psns(), now));
  if (window_->is_open_question(question_) && !control_.keepalives().asking()) {
    window_->answered(control_.keepalives().answer_took());
    // What went out behind the question may be more than the window by itself. Nothing else would
    // ask about it.
    if (!window_->open()) ask_if_due(now);
  }
  settle(now);
}

// ERR names the header that was wrong. Of a Read that fails the request, nothing else does.
void UcSession::refused() {
  const Bytes header = control_.refused_header();
  const auto opcode = static_cast<Opcode>(std::to_integer<uint8_t>(header[29]) & 0x0f);
  if (opcode == Opcode::read_request) {
    requester_.refused(ReadId{load_be<uint32_t>(header.data() + 36)});
  } else if (!consumer_gone_) {
    consumer_.remote_error(control_.last_error().error());
  }
}

void UcSession::handle(SessionControl::Event event) {
  switch (event) {
    case SessionControl::Event::none:
    case SessionControl::Event::peer_leaves:
      return;
    case SessionControl::Event::peer_closed:
      if (!consumer_gone_) receive_path_.finish();
      return end(StreamEnd::Kind::peer_closed);
    case SessionControl::Event::closed:
      return end(StreamEnd::Kind::closed);
    case SessionControl::Event::lost:
      if (!consumer_gone_) receive_path_.finish();
      return end(StreamEnd::Kind::lost);
    case SessionControl::Event::refused:
      return refused();
  }
}

// --- trains out

bool UcSession::ready(Time now) {
  if (control_.ready(now)) return true;
  if (!speaks()) return false;
  // First of all, for it hands Reads on.
  const bool more = send_path_.ready();
  if (send_path_.failed()) {
    // The request at the head was at fault itself, and nothing is to be sent that would settle it.
    settle(now);
    if (control_.ready(now)) return true;
    if (!active()) return false;
  }
  if (more && may_send(now)) return true;
  // It may have asked.
  return control_.ready(now) || requester_.ready() || responder_.ready();
}

void UcSession::fill(Train& train, Time now) {
  control_.fill(train, now);
  look_at_probe();
  if (!train.empty() || !speaks()) return;
  const uint64_t before = writer_.written();
  // Requests for Reads first: they are small, and what they bring takes longest.
  send_path_.ready();
  requester_.fill(train, now);
  answers_first_ = !answers_first_;
  if (answers_first_) responder_.fill(train);
  fill_requests(train, now);
  if (!answers_first_) responder_.fill(train);
  counters_.datagrams_sent += writer_.written() - before;
  settle(now);
  // What came of it may be all that there is to say: DREQ, or ERR to a Read whose region is gone.
  if (train.empty()) control_.fill(train, now);
}

void UcSession::fill_requests(Train& train, Time now) {
  if (!window_->open()) return;
  const size_t bytes = train.bytes();
  const size_t datagrams = train.datagrams();
  send_path_.fill(train);
  window_->sent(train.bytes() - bytes, train.datagrams() - datagrams);
  ask_if_due(now);
}

// False: it is called as soon as it may.
bool UcSession::may_send(Time now) {
  if (window_->open()) return true;
  window_->wait(*this);
  // Whoever asked may be gone.
  ask_if_due(now);
  return false;
}

void UcSession::window_opened() {
  if (!consumer_gone_) consumer_.window_opened();
}

void UcSession::ask_if_due(Time now) {
  // Whoever has asked before may be gone, and nobody else have looked at the time.
  window_->tick(now);
  if (!window_->wants_to_ask(*this, now)) return;
  const uint32_t question = window_->asked(*this, now);
  control_.ask(now, std::exchange(question_, question) == question);
}

void UcSession::llp_took_all(Time now) {
  if (!active()) return;
  send_path_.llp_took_all();
  responder_.llp_took_all();
  settle(now);
}

void UcSession::path_carries(size_t max_payload) {
  if (max_payload >= parameters_.max_payload) return;
  control_.probe().limit(max_payload);
  narrow(max_payload);
}

void UcSession::look_at_probe() {
  if (control_.probe().size() >= parameters_.max_payload) return;
  narrow(control_.probe().size());
  ++counters_.paths_narrowed;
  WEFT_LOG(info, "queue pair 0x%06x: the path to %s carries no more than %zu bytes in a datagram",
           parameters_.own_qpn.value(), parameters_.path.to.address.to_string().c_str(),
           parameters_.max_payload);
}

// What is under way was cut too large: the message is lost, Reads are asked for anew.
void UcSession::narrow(size_t max_payload) {
  parameters_.max_payload = max_payload;
  send_path_.give_up_message();
  requester_.path_narrowed();
}

void UcSession::own_memory_lost(Time now) {
  if (!active()) return;
  if (!send_path_.own_memory_lost()) responder_.own_memory_lost();
  settle(now);
}

// --- what came of it

void UcSession::settle(Time now) {
  if (!active()) return;
  if (requester_.take_news()) send_path_.complete();
  if (peer_leaves()) return see_peer_off(now);
  if (!send_path_.stopped() && (send_path_.failed() || requester_.own_memory_gone())) {
    stop_requests();
    if (closing_) {
      control_.disconnect(0, now);
      return end(StreamEnd::Kind::local_error, wire::term::kLocalCatastrophic);
    }
    consumer_.send_failed();
  }
  if (closing_ && now >= close_by_ && counters_.datagrams_sent != sent_by_then_) {
    // It is slow, and not stuck.
    sent_by_then_ = counters_.datagrams_sent;
    close_by_ = now + kLinger;
  }
  if (closing_ && ((send_path_.drained() && send_path_.idle()) || now >= close_by_)) {
    close_by_ = Time::never();
    control_.disconnect(0, now);
    if (gone()) end(StreamEnd::Kind::closed);
  }
}

// With all that it sent, as far as that still comes.
void UcSession::see_peer_off(Time now) {
  if (receive_path_.misses(control_.peer_last())) return;
  control_.peer_is_gone(now);
  handle(SessionControl::Event::peer_closed);
}

void UcSession::end(StreamEnd::Kind kind, wire::TermError error) {
  if (consumer_gone_) return;
  detach();
  consumer_.stream_ended({.kind = kind, .error = error});
}

// --- the adapter

void UcSession::met(std::optional<Duration> round_trip) {
  if (rtt_.known() || !round_trip) return;
  rtt_ = Rtt{*round_trip};
  if (is_close_by(*round_trip)) window_->seen_close_by();
}

void UcSession::open() {
  if (open_) return;
  open_ = true;
  if (active()) consumer_.stream_ready();
}

void UcSession::close(Time now) {
  if (!active() || closing_) return;
  closing_ = true;
  close_by_ = now + kLinger;
  sent_by_then_ = counters_.datagrams_sent;
  send_path_.close();
  settle(now);
}

void UcSession::stop_requests() {
  send_path_.stop();
  requester_.stop();
}

void UcSession::abort(uint32_t reason, Time now) {
  detach();
  control_.disconnect(reason, now);
}

void UcSession::trim() {
  receive_path_.trim();
  responder_.trim();
}

// --- time

Time UcSession::deadline() const {
  if (!active()) return control_.deadline();
  if (peer_leaves()) return std::min(control_.deadline(), receive_path_.deadline());
  return std::min({control_.deadline(), receive_path_.deadline(), requester_.deadline(), close_by_,
                   concerned() ? window_->deadline(*this) : Time::never()});
}

void UcSession::tick(Time now) {
  handle(control_.tick(now));
  if (!active()) return;
  receive_path_.tick(now);
  if (peer_leaves()) return settle(now);
  requester_.tick(now);
  if (concerned()) ask_if_due(now);
  settle(now);
}

}  // namespace weft::wdp
