#include "shared/stream.h"

#include <algorithm>
#include <array>
#include <cerrno>

namespace weft::shared {
namespace {

// Wake-ups that are taken in one visit: a peer that sends more does not keep the engine from
// others.
constexpr size_t kWakeUps = 4096;
// Bytes after which the peer is shown what is there: it reads while this side copies the next ones.
constexpr size_t kShownAtOnce = 16 * 1024;

// Pieces in parts of kShownAtOnce at most. One of `whole_from` bytes or more is not cut.
class Parts {
 public:
  Parts(std::span<const IoVec> pieces, size_t whole_from)
      : pieces_(pieces), whole_from_(whole_from) {}
  bool empty() const { return pieces_.empty(); }
  // Valid until the next call.
  std::span<const IoVec> next() {
    size_t n = 0;
    size_t length = 0;
    while (n < pieces_.size() && length + pieces_[n].iov_len <= kShownAtOnce && cut_at_ == 0) {
      length += pieces_[n++].iov_len;
    }
    if (n == 0 && !pieces_.empty()) return next_cut();
    const auto part = pieces_.first(n);
    pieces_ = pieces_.subspan(n);
    return part;
  }

 private:
  std::span<const IoVec> next_cut() {
    const IoVec& first = pieces_.front();
    cut_ = first;
    if (first.iov_len < whole_from_) {
      cut_.iov_base = static_cast<std::byte*>(first.iov_base) + cut_at_;
      cut_.iov_len = std::min(first.iov_len - cut_at_, kShownAtOnce);
    }
    cut_at_ += cut_.iov_len;
    if (cut_at_ == first.iov_len) {
      cut_at_ = 0;
      pieces_ = pieces_.subspan(1);
    }
    return {&cut_, 1};
  }

  std::span<const IoVec> pieces_;
  const size_t whole_from_;
  size_t cut_at_ = 0;  // bytes of the first piece that are in parts already
  IoVec cut_{};
};

}  // namespace

Stream::Stream(port::TcpStream tcp, Segment segment, Role role, size_t refer_from, Bytes& early,
               stats::EngineCounters& counters)
    : tcp_(std::move(tcp)),
      segment_(std::move(segment)),
      refer_from_(refer_from),
      counters_(counters) {
  if (role == Role::initiator) {
    begin();
  } else if (!early.empty()) {
    decide(static_cast<wire::HostCarrier>(early.front()));
    early = early.subspan(1);
  }
  // Wake-ups, which are needed no more: this side looks at the memory first of all.
  if (carrier_ == Carrier::memory) early = {};
}

// The memory is the carrier from now on.
void Stream::begin() {
  const auto peer = segment_->peer();
  rings_ = std::make_unique<Rings>(Rings{.out = RingWriter{segment_->outgoing(), refer_from_},
                                         .in = RingReader{segment_->incoming()}});
  segment_->close_descriptor();
  carrier_ = Carrier::memory;
  counters_.streams_same_host.add();
  if (refer_from_ == kNeverPull) return;
  if (peer && peer->can_pull()) {
    rings_->in.allow_references(*peer);
  } else {
    counters_.streams_same_host_copying.add();
  }
}

// The Responder's side: the Initiator's first byte says which carrier it is (spec/same-host 2.2).
void Stream::decide(wire::HostCarrier said) {
  if (said == wire::HostCarrier::tcp) {
    segment_.reset();
    carrier_ = Carrier::tcp;
    stats::count(counters_.same_host_refused, stats::SameHostRefusal::by_peer);
  } else if (said == wire::HostCarrier::memory && segment_->joined()) {
    begin();
  } else {
    // An Initiator says nothing else, nor this without having joined.
    ended_by({.error = EPROTO});
  }
}

void Stream::ended_by(const Transfer& t) {
  if (t.end) end_ = End::finished;
  if (t.error == 0) return;
  end_ = End::failed;
  error_ = t.error;
}

bool Stream::publish() const {
  const bool sleeps = rings_->out.publish();
  if (sleeps || end_ == End::finished) wake_peer();
  return sleeps;
}

void Stream::wake_peer() const {
  const std::byte any{};
  const IoVec one{const_cast<std::byte*>(&any), 1};
  // Where the connection takes none it is over, which it will tell, or there are so many on their
  // way that the peer wakes up anyway.
  (void)tcp_.send({&one, 1});
  counters_.wake_ups_sent.add();
}

port::ByteStream::Transfer Stream::send(std::span<const IoVec> pieces) const {
  if (carrier_ == Carrier::tcp) return tcp_.send(pieces);
  if (end_ == End::failed) return {.error = error_};
  if (carrier_ == Carrier::undecided) return {.would_block = true};
  // All of the address space is the caller's own: nothing is referred to.
  const Transfer t =
      rings_->out.write(pieces, Bytes{static_cast<const std::byte*>(nullptr), SIZE_MAX});
  (void)publish();
  return t;
}

port::ByteStream::Transfer Stream::send(std::span<const IoVec> pieces, Bytes own) {
  if (carrier_ != Carrier::memory || end_ == End::failed) return std::as_const(*this).send(pieces);
  Parts parts{pieces, refer_from_};
  size_t sent = 0;
  bool woken = false;
  while (true) {
    const auto part = parts.next();
    const Transfer t = rings_->out.write(part, own);
    sent += t.bytes;
    if (t.bytes < total(part) || parts.empty()) {
      (void)publish();
      return sent > 0 ? Transfer{.bytes = sent} : t;
    }
    // Once is enough for a reader that sleeps again after each part.
    if (woken) {
      rings_->out.publish_part();
    } else {
      woken = publish();
    }
  }
}

port::ByteStream::Transfer Stream::receive(std::span<const IoVec> pieces) const {
  if (carrier_ == Carrier::tcp) return tcp_.receive(pieces);
  Transfer t{.would_block = true};
  if (rings_ != nullptr) {
    t = rings_->in.read(pieces);
    if (rings_->in.publish()) wake_peer();
  }
  // What the peer had said before its end is there: the connection tells of that later. A reference
  // that it took back while it was pulled is read by the next call.
  if (t.would_block && end_ == End::finished && !(rings_ != nullptr && rings_->in.has_input())) {
    return {.end = true};
  }
  if (t.would_block && end_ == End::failed) return {.error = error_};
  return t;
}

port::PeerWord Stream::input_word() const {
  if (end_ != End::none || rings_ == nullptr) return {};
  return rings_->in.input_word();
}

bool Stream::has_input() const {
  return end_ != End::none || (rings_ != nullptr && rings_->in.has_input());
}

void Stream::hear() {
  if (carrier_ == Carrier::undecided) {
    std::byte said{};
    const IoVec one{&said, 1};
    const Transfer t = tcp_.receive({&one, 1});
    ended_by(t);
    if (t.bytes > 0) decide(static_cast<wire::HostCarrier>(said));
  }
  if (carrier_ != Carrier::memory) return;
  std::array<std::byte, kWakeUps> wake_ups;
  const IoVec all{wake_ups.data(), wake_ups.size()};
  const Transfer t = tcp_.receive({&all, 1});
  ended_by(t);
  // A FIN is half of an end, or all of it where the peer is gone: then its kernel answers this with
  // a reset.
  if (t.end) wake_peer();
}

bool Stream::await_input() {
  return rings_ == nullptr || (rings_->in.sleep() && end_ == End::none);
}

bool Stream::await_room() {
  return rings_ == nullptr || rings_->out.await_room();
}

void Stream::ignore() {
  if (rings_ != nullptr) rings_->in.stay_awake();
}

const void* Stream::detach() {
  if (rings_ == nullptr) return nullptr;
  const void* const lost = rings_->out.detach();
  (void)publish();
  return lost;
}

void Stream::end_for_loss() {
  if (rings_ == nullptr) return;
  rings_->out.end_for_loss();
  (void)publish();
}

port::ByteStream::Unacknowledged Stream::unacknowledged() const {
  return carrier_ == Carrier::memory ? Unacknowledged{} : tcp_.unacknowledged();
}

void Stream::reset() {
  tcp_.reset();
  close();
}

// What is left in the ring the peer can still read, but not what it is referred to: that memory may
// become something else from now on.
void Stream::close() {
  if (rings_ != nullptr && segment_->mapped()) rings_->out.revoke();
  tcp_.close();
  rings_.reset();
  segment_.reset();
  end_ = End::failed;
  error_ = ENOTCONN;
}

}  // namespace weft::shared
