#include "wdp/rd_send_path.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "wdp/path_probe.h"
#include "wire/wdp_bundle.h"
#include "wire/wdp_crc.h"
#include "wire/wdp_data.h"

namespace weft::wdp {

using wire::WdpAck;
using wire::WdpBundle;
using wire::WdpFlags;

namespace {

bool is_bundle(const SentDatagram& d) {
  return std::to_integer<uint8_t>(d.bytes[1]) >> 4 == static_cast<uint8_t>(WdpBundle::kClass);
}

// Bytes before it where it becomes part of a bundle.
size_t front_of(const SentDatagram& d) {
  return is_bundle(d) ? 0 : WdpBundle::kSize + WdpBundle::kFrame;
}

}  // namespace

// --- several messages in a datagram (spec/wdp-rd 6.7)

size_t RdSendPath::size_with(size_t size, ClientId client, uint64_t request) {
  const SentDatagram* const last = log_.last_waiting();
  if (last == nullptr || !last->takes(client, request)) return 0;
  return front_of(*last) + last->size + WdpBundle::kFrame + size;
}

std::byte* RdSendPath::append_shared(size_t size, size_t most, ClientId client, uint64_t request) {
  const size_t together = size_with(size, client, request);
  if (together == 0 || together > most) {
    SentDatagram& d = log_.append(size, client, request);
    d.shared = true;
    return d.bytes.get();
  }
  SentDatagram& last = *log_.last_waiting();
  const size_t front = front_of(last);
  const size_t before = last.size;
  log_.grow_last(together, front, most);
  std::byte* const bytes = last.bytes.get();
  if (front > 0) {
    const uint32_t csn = log_.end().value() - 1;
    wire::WdpCommon{.wdp_class = WdpBundle::kClass, .class_word = csn}.encode(bytes);
    WdpBundle::frame(bytes + WdpBundle::kSize, before);
  }
  return WdpBundle::frame(bytes + front + before, size);
}

void RdSendPath::take_back_shared(size_t size) {
  const SentDatagram& last = *log_.last_waiting();
  if (last.size == size) {
    log_.take_back();
  } else {
    log_.cut_last(last.size - size - WdpBundle::kFrame);
  }
}

bool RdSendPath::takes_tail(size_t most) {
  if (probe_due_ || log_.has_lost() || log_.sent_count() + 1 != log_.stored()) return false;
  const SentDatagram& d = *log_.next_waiting().datagram;
  const size_t all = front_of(d) + d.size + WdpBundle::kFrame + WdpAck::kMaxSize;
  return all <= most && all < Train::kCopyBelow;
}

// A message that would go alone makes a bundle of two with it: one datagram costs the kernel less
// than a train of two.
size_t RdSendPath::copy_with(const WdpAck& tail, const SentDatagram& d, Csn csn, WdpFlags flags,
                             Train& train) const {
  const size_t front = front_of(d);
  const size_t size = front + d.size + WdpBundle::kFrame + tail.size();
  std::byte* const to = train.stage(size);
  if (front > 0) {
    flags.immediate = false;  // the part says so
    wire::WdpCommon{
        .wdp_class = WdpBundle::kClass, .flags = flags, .token = peer_, .class_word = csn.value()}
        .encode(to);
    WdpBundle::frame(to + WdpBundle::kSize, d.size);
  }
  std::memcpy(to + front, d.bytes.get(), d.size);
  tail.encode(WdpBundle::frame(to + front + d.size, tail.size()));
  if (crc_) wire::seal_wdp({to, size});
  return size;
}

// --- at rest

void RdSendPath::wake(const Resting& before) {
  log_ = SentLog{before.next};
  peer_clock_ = before.peer_clock;
  marked_ = before.marked;
  peer_told_ = before.peer_told;
  ecn_ = before.ecn;
  peer_window_ = before.peer_window;
  whole_ = before.whole;
  rtt_ = before.rtt;
}

// --- trains

void RdSendPath::open(SessionToken peer, bool crc, Time now) {
  open_ = true;
  peer_ = peer;
  crc_ = crc;
  probe_since_ = now;
}

bool RdSendPath::receiver_allows(const SentDatagram& d) const {
  if (log_.sent_count() >= kCsnWindow || peer_window_ == 0) return false;
  return log_.outstanding() == 0 || log_.outstanding() + d.weight() <= peer_window_;
}

bool RdSendPath::may_send(Time now) {
  paced_ = false;
  if (!log_.has_lost() && !log_.has_waiting()) return false;
  limited_ = !network_allows();
  if (limited_) return false;
  if (!log_.has_lost() && !receiver_allows(*log_.next_waiting().datagram)) return false;
  // RFC 9002 7.8: who is delayed by its own pace would use the window.
  limited_ = paced_ = now < pace_;
  return !paced_;
}

bool RdSendPath::ready(Time now) {
  return open_ && (probe_due_ || may_send(now));
}

// spec/wdp-rd 5.5. Parts arrive where a whole does not; nobody cuts up what fits.
bool RdSendPath::is_to_be_cut(const SentDatagram& d, const Path& path) const {
  if (d.size <= PathProbe::least(path.to.address.is_ipv4())) return false;
  return d.size > whole_ || d.times >= kWholeCopies;
}

bool RdSendPath::put(Train& train, const Path& path, const SentLog::Next& what, bool ask, Time now,
                     const WdpAck* tail) {
  SentDatagram& d = *what.datagram;
  if (!train.takes(d.size, path)) return false;
  const bool again = d.state != SentDatagram::State::waiting;
  if (is_to_be_cut(d, path)) train.allow_fragments();
  std::byte* const bytes = d.bytes.get();
  auto flags = WdpFlags::from_bits(std::to_integer<uint8_t>(bytes[1]));
  flags.crc = crc_;
  flags.ack_requested = ask;
  flags.retransmission = again;
  bytes[1] = (bytes[1] & std::byte{0xf0}) | std::byte{flags.bits()};
  store_be(bytes + 4, peer_.value());
  size_t leaves = d.size;
  if (tail != nullptr) {
    leaves = copy_with(*tail, d, what.csn, flags, train);
  } else {
    if (crc_) wire::seal_wdp({bytes, d.size});
    if (d.size < Train::kCopyBelow) {
      std::memcpy(train.stage(d.size), bytes, d.size);
    } else {
      log_.lend(d);
      train.refer(bytes, d.size);
    }
  }
  train.begin(leaves, path);
  again ? ++counters_.repeated : ++counters_.sent;
  const size_t weight = d.weight();
  log_.transmitted(what.csn, now);
  probe_since_ = now;
  pace({.bytes = leaves, .weight = weight}, now);
  return true;
}

void RdSendPath::pace(const Congestion::Departure& datagram, Time now) {
  const Duration trip = rtt_.known() ? rtt_.smoothed() : Duration{0};
  const Duration pause = congestion_->pause(datagram, trip);
  // Questions (5.3) go whatever the pace; they must not add up to centuries.
  pace_ = std::min(std::max(pace_, now - kCatchUp) + pause, now + Congestion::kMostPause);
}

// RFC 9002 6.2.4: new data if there is any, else what is under way; whatever the congestion window
// says.
void RdSendPath::probe(Train& train, const Path& path, Time now) {
  const auto fresh = log_.next_waiting();
  const bool may = fresh.datagram != nullptr && receiver_allows(*fresh.datagram);
  const auto what = may && log_.in_flight() == 0 ? fresh : log_.oldest();
  if (what.datagram == nullptr) {
    asks_ = true;
  } else if (!put(train, path, what, true, now)) {
    return;
  }
  probe_due_ = false;
}

void RdSendPath::fill(Train& train, const Path& path, Time now, const WdpAck* tail) {
  if (!open_) return;
  log_.train_gone();  // the last one: this one is empty yet
  if (probe_due_) {
    probe(train, path, now);
    // A train on its own where it could not be longer.
    if (!may_send(now)) return;
  }
  while (may_send(now)) {
    const auto what = log_.has_lost() ? log_.next_lost() : log_.next_waiting();
    // The last one that the windows let through: the answer is what the sender waits for.
    const bool last = log_.in_flight() + 2 * what.datagram->weight() > congestion_->window() ||
                      log_.outstanding() + 2 * what.datagram->weight() > peer_window_;
    if (!put(train, path, what, last, now, std::exchange(tail, nullptr))) return;
  }
}

// The count of the peer's only grows; an older one comes late. One that is greater than what was
// sent is wrong (RFC 9000 13.4.2.1).
void RdSendPath::heed_marks(uint32_t marked, Time newest_sent, Time now) {
  const auto more = static_cast<int32_t>(marked - marked_);
  const uint64_t unmarked = counters_.sent + counters_.repeated - counters_.marked;
  if (more <= 0 || static_cast<uint32_t>(more) > unmarked) return;
  marked_ = marked;
  counters_.marked += static_cast<uint32_t>(more);
  congestion_->congested(newest_sent, now);
}

// spec/wdp-rd 5.4: what may be under way has a place, besides what waits.
void RdSendPath::size_store() {
  if (idle()) return extra_.release();
  const size_t under_way = std::min({peer_window_, congestion_->window(), kLongestWindow});
  if (under_way > kChannelHold) extra_.grow_to(under_way - kChannelHold);
}

bool RdSendPath::find_lost(Time now) {
  const uint64_t before = counters_.lost;
  log_.find_lost(rtt_, now, [&](const SentDatagram& d) {
    ++counters_.lost;
    congestion_->congested(d.sent, now);
  });
  return counters_.lost != before;
}

Time RdSendPath::probe_time() {
  if (!waits_for_peer()) return Time::never();
  // A pace below a datagram in each round trip: nobody is asked anything meanwhile.
  if (paced_ && log_.in_flight() == 0) return Time::never();
  const Duration pause = rtt_.probe_pause();
  const Duration most = std::max(pause, kMostProbePause);
  return probe_since_ + std::min(pause * (int64_t{1} << std::min(probes_, 20U)), most);
}

Time RdSendPath::deadline() {
  if (!open_) return Time::never();
  // Only while it is the pace that holds something back: another reason has no time.
  return std::min({log_.loss_time(), probe_due_ ? Time::never() : probe_time(),
                   paced_ ? pace_ : Time::never()});
}

bool RdSendPath::tick(Time now) {
  if (!open_) return true;
  if (log_.is_hopeless(kMostCopies, now - kMostPatience)) return false;
  if (paced_ && now >= pace_) {
    paced_ = false;
    if (log_.in_flight() == 0) probe_since_ = now;  // it is silent from now on
  }
  if (now >= log_.loss_time()) {
    (void)find_lost(now);
  } else if (!probe_due_ && now >= probe_time()) {
    if (unanswered_ >= kMostProbes) return false;
    ecn_.unanswered(++unanswered_);
    ++probes_;
    ++counters_.probes;
    probe_due_ = true;
    probe_since_ = now;
  }
  return true;
}

}  // namespace weft::wdp
