#include "shared/stream.h"

#include <array>
#include <cerrno>

namespace weft::shared {
namespace {

// Wake-ups that are taken in one call.
constexpr size_t kWakeUps = 64;

}  // namespace

Stream::Stream(port::TcpStream tcp, Segment segment, Role role, bool refers, Bytes& early,
               stats::EngineCounters& counters)
    : tcp_(std::move(tcp)), segment_(std::move(segment)), refers_(refers), counters_(counters) {
  if (role == Role::initiator) {
    begin();
  } else if (!early.empty()) {
    decide(static_cast<wire::HostWay>(early.front()));
    early = early.subspan(1);
  }
  // Wake-ups, which are needed no more: this side looks at the memory first of all.
  if (way_ == Way::memory) early = {};
}

// The memory is the way from now on.
void Stream::begin() {
  const PeerMemory peer = segment_->peer();
  rings_ = std::make_unique<Rings>(Rings{.out = RingWriter{segment_->outgoing(), refers_},
                                         .in = RingReader{segment_->incoming(), peer}});
  segment_->close_descriptor();
  way_ = Way::memory;
  counters_.streams_same_host.add();
  if (!refers_) return;
  if (peer.can_pull()) {
    rings_->in.allow_references();
  } else {
    counters_.streams_same_host_copying.add();
  }
}

// The Responder's side: the Initiator's first byte says which way it goes (spec/same-host 2.2).
void Stream::decide(wire::HostWay said) {
  if (said == wire::HostWay::tcp) {
    segment_.reset();
    way_ = Way::tcp;
    stats::count(counters_.same_host_refused, stats::SameHostRefusal::by_peer);
  } else if (said == wire::HostWay::memory && segment_->joined()) {
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

void Stream::publish() const {
  const bool sleeps = rings_->out.publish();
  if (sleeps || end_ == End::finished) wake_peer();
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
  if (way_ == Way::tcp) return tcp_.send(pieces);
  if (end_ == End::failed) return {.error = error_};
  if (way_ == Way::undecided) return {.would_block = true};
  // All of the address space is the caller's own: nothing is referred to.
  const Transfer t =
      rings_->out.write(pieces, Bytes{static_cast<const std::byte*>(nullptr), SIZE_MAX});
  publish();
  return t;
}

port::ByteStream::Transfer Stream::send(std::span<const IoVec> pieces, Bytes own) {
  if (way_ != Way::memory || end_ == End::failed) return std::as_const(*this).send(pieces);
  const Transfer t = rings_->out.write(pieces, own);
  publish();
  return t;
}

port::ByteStream::Transfer Stream::receive(std::span<const IoVec> pieces) const {
  if (way_ == Way::tcp) return tcp_.receive(pieces);
  Transfer t{.would_block = true};
  if (rings_ != nullptr) {
    t = rings_->in.read(pieces);
    if (rings_->in.publish()) wake_peer();
  }
  // What the peer had said before its end is there: the connection tells of that later.
  if (t.would_block && end_ == End::finished) return {.end = true};
  if (t.would_block && end_ == End::failed) return {.error = error_};
  return t;
}

bool Stream::has_input() const {
  return end_ != End::none || (rings_ != nullptr && rings_->in.has_input());
}

void Stream::hear() {
  if (way_ == Way::undecided) {
    std::byte said{};
    const IoVec one{&said, 1};
    const Transfer t = tcp_.receive({&one, 1});
    ended_by(t);
    if (t.bytes > 0) decide(static_cast<wire::HostWay>(said));
  }
  if (way_ != Way::memory) return;
  std::array<std::byte, kWakeUps> wake_ups;
  const IoVec all{wake_ups.data(), wake_ups.size()};
  Transfer t;
  do {
    t = tcp_.receive({&all, 1});
  } while (t.bytes == wake_ups.size());
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
  publish();
  return lost;
}

void Stream::end_for_loss() {
  if (rings_ == nullptr) return;
  rings_->out.end_for_loss();
  publish();
}

port::ByteStream::Unacknowledged Stream::unacknowledged() const {
  return way_ == Way::memory ? Unacknowledged{} : tcp_.unacknowledged();
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
