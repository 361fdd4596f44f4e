#include "drive/stream_driver.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <utility>

#include "base/earliest.h"
#include "drive/batch_pool.h"
#include "drive/loop_bytes.h"
#include "drive/rd_bytes.h"
#include "drive/silence.h"

namespace weft::drive {
namespace {

// Bytes that one connection may bring in before the others have their turn.
constexpr size_t kBudget = 1024 * 1024;
// And FPDUs, for the smallest have 20 bytes and cost as much time as a kilobyte: a quarter of a
// millisecond. While they are that small on average, so little is read at a time.
constexpr uint64_t kFpduBudget = 4096;
constexpr size_t kTiny = 64;
constexpr size_t kTinyRead = 64 * 1024;
// And take out, in one visit.
constexpr size_t kSendBudget = 2 * 1024 * 1024;
// Behind the rest of a large FPDU: enough to see the next header, little enough not to be worth
// avoiding a copy.
constexpr size_t kTail = 4096;
// Until a broken stream tries again to tell its owner.
constexpr Duration kNextTry = std::chrono::milliseconds{10};
// Before the next look whether all is out that a program has left to say.
constexpr Duration kLastWords = std::chrono::milliseconds{2};

// TCP says ETIMEDOUT then, or why its last tries could not leave this host.
bool gave_up(int error) {
  return error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH;
}

}  // namespace

StreamDriver::StreamDriver(StreamOwner& owner, std::unique_ptr<port::ByteStream> bytes,
                           work::Consumer& consumer, const rdmap::StreamConfig& config,
                           uint32_t seed, Time now)
    : owner_(&owner),
      bytes_(std::move(bytes)),
      stream_(consumer, config, seed, now),
      memory_(bytes_->shared(), *this, stream_) {}

StreamDriver::~StreamDriver() = default;

void StreamDriver::start(Token& token, Bytes early) {
  token.runtime().guard(
      token,
      [&] {
        batches_ = &BatchPool::of(token);
        memory_.begin(token);
        if (!early.empty()) stream_.received(early, token.now());
        stream_.tick(token.now());
        settle_now(token, false);
      },
      [&] { on_no_memory(token); });
}

void StreamDriver::goes_by(RdBytes& bytes) {
  rd_ = &bytes;
  bytes.begin(*this);
}

void StreamDriver::goes_round(LoopBytes& bytes) {
  loop_ = &bytes;
  stream_.goes_by_memory();
}

void StreamDriver::disown() {
  owner_ = nullptr;
  stream_.detach();
}

void StreamDriver::detach() {
  disown();
  // The work requests' memory goes back to the program.
  if (batch_) (void)batch_->detach();
  if (port::SharedBytes* const shared = memory_.bytes()) (void)shared->detach();
}

void StreamDriver::window_closed() {
  if (batch_) (void)batch_->detach();
  memory_.take_back_inside();
}

void StreamDriver::posted(Token& token) {
  if (gone_ || broken_) return;
  const bool burst = burst_.posted(token.runtime().counters().polls.value());
  if (stream_.may_gather(burst) && token.runtime().gather(token, *this)) return;
  settle(token);
}

void StreamDriver::on_ready(Token& token, bool readable, bool writable) {
  if (gone_ || broken_) return;
  if (memory_.bytes() != nullptr && readable) memory_.hear(token);
  if (writable && blocked_) {
    blocked_ = false;
    token.runtime().want_write(token, *this, false);
  }
  if (readable || memory_.bytes() != nullptr) receive(token);
  settle(token);
}

// A stream that reads nothing, for want of receives, would not notice, and epoll would not stop
// saying so.
void StreamDriver::on_broken(Token& token) {
  if (gone_ || broken_ || stream_.wants_bytes()) return;
  stream_.connection_lost();
  settle(token);
}

bool StreamDriver::try_receive(Token& token) {
  if (gone_ || broken_) return false;
  if (memory_.bytes() != nullptr) {
    if (!memory_.has_work(blocked_)) return false;
    receive(token);
    settle(token);
    return true;
  }
  if (!stream_.wants_bytes() || !through_socket()) return false;
  const bool before = stream_.ended();
  const size_t moved = receive(token);
  if (moved == 0 && stream_.ended() == before) return false;
  settle(token);
  return true;
}

void StreamDriver::on_deadline(Token& token) {
  if (broken_) {
    on_no_memory(token);
    return;
  }
  if (token.now() >= look_at_) look_for_acknowledgements(token);
  stream_.tick(token.now());
  settle(token);
}

// A path that drops large packets, or a host that is gone, would not show for a quarter of an hour.
void StreamDriver::look_for_acknowledgements(Token& token) {
  look_at_ = Time::never();
  const port::ByteStream::Unacknowledged u = bytes_->unacknowledged();
  if (owner_ == nullptr || gone_ || stream_.ended() || !u.any) return;
  if (u.resent < kSilentAfterResends) {
    look_at_ = token.now() + kSilence;
    return;
  }
  silence_told_ = true;
  report_silence(token, stats::Silence::stream, bytes_->peer());
}

void StreamDriver::on_idle(Token& token) {
  if (gone_ || broken_) return;
  settle(token, true);
  if (gone_ || batch_) return;
  stream_.trim();
  if (rd_ != nullptr) rd_->trim();
  if (loop_ != nullptr) loop_->trim();
}

void StreamDriver::on_memory_retired(Token& token) {
  if (batch_) (void)batch_->detach();
  memory_.take_back(token);
}

// A stream that was left in the middle of something cannot go on. It stops at once; should there
// be no memory even to tell its owner, that is tried again.
void StreamDriver::on_no_memory(Token& token) {
  if (gone_) return;
  if (!std::exchange(broken_, true)) {
    token.runtime().rewatch(token, *this, -1, false, false);
    memory_.end(token);
    bytes_->reset();
  }
  token.runtime().set_deadline(token, *this, token.now() + kNextTry);
  leave_rd(token, true);
  break_off(token);
}

void StreamDriver::break_off(Token& token) {
  gone_ = true;                 // for what the owner may ask for meanwhile
  if (batch_) batch_->clear();  // there is no connection for it
  try {
    if (!stream_.ended()) stream_.connection_lost();
    if (owner_ != nullptr) owner_->visited(token);
  } catch (const std::bad_alloc&) {
    gone_ = false;
    throw;
  }
  StreamOwner* owner = std::exchange(owner_, nullptr);
  token.runtime().remove(token, *this);
  if (owner != nullptr) owner->driver_gone(token);
}

void StreamDriver::settle(Token& token, bool all) {
  token.runtime().guard(
      token, [&] { settle_now(token, all); }, [&] { on_no_memory(token); });
}

void StreamDriver::settle_now(Token& token, bool all) {
  if (gone_ || broken_) return;
  // Its requests are flushed and their memory goes back to the program, while the batch still waits
  // for the socket.
  if (batch_ && stream_.ended()) (void)batch_->detach();
  if (memory_.bytes() != nullptr && memory_.bytes()->copies_wanted()) memory_.take_back(token);
  (void)memory_.tell_loss();
  send(token, all);
  if (loop_ != nullptr) take_round(token, all);
  if (gone_) return;
  if (memory_.tell_loss()) token.runtime().again(token, *this);
  // What has ended before, or in there, flushes its requests in this visit.
  if (stream_.ended()) memory_.take_back(token);
  grant_wish(token);
  if (gone_) return;
  if (memory_.bytes() != nullptr) {
    memory_.listen(token, blocked_);
  } else {
    token.runtime().want_read(token, *this, stream_.wants_bytes());
  }
  // What a program that is done with it has left to say, such as which messages have arrived, does
  // not end with the process; nor does what the peer is referred to.
  if (owner_ == nullptr) (void)memory_.waits_for_pull(token);
  if ((owner_ == nullptr && batch_) || memory_.refers_now()) {
    token.runtime().closes_at(token, token.now() + kLastWords);
  }
  token.runtime().set_deadline(
      token, *this, earliest(stream_.deadline(), look_at_, memory_.close_by(), round_at(token)));
  if (const Time at = stream_.settles_at(); !at.is_never()) token.runtime().closes_at(token, at);
  if (owner_ != nullptr) owner_->visited(token);
  if (rd_ != nullptr && rd_->by_tcp()) leave_rd(token, false);
  if (rd_ == nullptr) return;
  if (stream_.wants_bytes() && rd_->readable()) token.runtime().again(token, *this);
  rd_->visited(token);
}

// --- a stream that is its own peer's

// What it sends is there to be received, and makes room.
void StreamDriver::take_round(Token& token, bool all) {
  for (size_t moved = 0; moved < kBudget && !gone_ && stream_.wants_bytes() && loop_->readable();) {
    const size_t n = receive(token);
    if (n == 0) return;  // the end
    moved += n;
    blocked_ = false;
    send(token, all);
  }
}

// What is left of the visit is the next one's, of which nothing else tells.
Time StreamDriver::round_at(Token& token) const {
  const bool left = loop_ != nullptr && stream_.wants_bytes() && loop_->readable();
  return left ? token.now() : Time::never();
}

// --- bytes in

// Returns the bytes that came.
size_t StreamDriver::receive(Token& token) {
  size_t moved = 0;
  bool drained = false;
  const uint64_t most = stream_.fpdus_received() + kFpduBudget;
  while (moved < kBudget && stream_.fpdus_received() < most && !drained && stream_.wants_bytes()) {
    const bool going = stream_.direct() && !std::exchange(unreachable_, false)
                           ? receive_direct(token, moved, drained)
                           : receive_bounced(token, moved, drained);
    if (!going) {
      count_received(token, moved);
      return moved;
    }
  }
  count_received(token, moved);
  if (!drained && stream_.wants_bytes() && memory_.bytes() == nullptr)
    token.runtime().again(token, *this);
  return moved;
}

// Much that comes in large pieces may gather in the socket while the helper rests. A ring in memory
// is full sooner, and then its writer waits.
void StreamDriver::count_received(Token& token, size_t moved) const {
  token.runtime().received(token, large_ && memory_.bytes() == nullptr ? moved : 0);
}

bool StreamDriver::receive_bounced(Token& token, size_t& moved, bool& drained) {
  MutableBytes bounce = token.runtime().bounce(token);
  if (large_) {
    bounce = bounce.first(kTail);
  } else if (tiny_) {
    bounce = bounce.first(kTinyRead);
  }
  const IoVec all{bounce.data(), bounce.size()};
  const auto t = bytes_->receive({&all, 1});
  if (!take(token, t)) return false;
  moved += t.bytes;
  token.runtime().counters().bytes_received_copied.add(t.bytes);
  // From memory a reference comes by a call of its own.
  drained = t.bytes < bounce.size() && memory_.bytes() == nullptr;
  const uint64_t before = stream_.fpdus_received();
  stream_.received(bounce.first(t.bytes), token.now());
  const uint64_t fpdus = stream_.fpdus_received() - before;
  tiny_ = fpdus * kTiny > t.bytes;
  // Large ones that came whole were copied, and need not have been.
  const bool came_whole =
      !stream_.parameters().crc && fpdus > 0 && fpdus * stream_.direct_from() < t.bytes;
  large_ = stream_.direct() || came_whole;
  return true;
}

// The rest of a large FPDU, straight to where it is wanted, and the beginning of the next one in
// the same call.
bool StreamDriver::receive_direct(Token& token, size_t& moved, bool& drained) {
  PieceList places;
  if (!stream_.direct_places(places, token.now())) return true;
  const MutableBytes tail = token.runtime().bounce(token).first(kTail);
  std::array<IoVec, PieceList::kMost + 1> pieces;
  const auto end = std::copy(places.pieces().begin(), places.pieces().end(), pieces.begin());
  *end = {tail.data(), tail.size()};
  const bool in_place = stream_.in_place();
  const auto t = bytes_->receive({pieces.data(), places.pieces().size() + 1});
  if (t.error == EFAULT && in_place) {
    // Its bytes are in the socket yet. Copied from the bounce buffer they find the memory after
    // all, once a handler of the program's has made it accessible; or it is gone.
    unreachable_ = true;
    return true;
  }
  if (!take(token, t)) return false;
  moved += t.bytes;
  drained = t.bytes < places.bytes() + tail.size() && memory_.bytes() == nullptr;
  const size_t direct = std::min(t.bytes, places.bytes());
  token.runtime().counters().bytes_received_in_place.add(in_place ? direct : 0);
  token.runtime().counters().bytes_received_copied.add(t.bytes - (in_place ? direct : 0));
  stream_.direct_received(direct, token.now());
  if (t.bytes > direct) stream_.received(tail.first(t.bytes - direct), token.now());
  large_ = true;
  return true;
}

// False when nothing came: the stream knows why.
bool StreamDriver::take(Token& token, const port::ByteStream::Transfer& t) {
  if (memory_.bytes() == nullptr) {
    token.runtime().counters().receive_calls.add();
    if (t.would_block) token.runtime().counters().receives_empty.add();
  }
  if (t.would_block) return false;
  if (t.end) {
    token.runtime().want_read(token, *this, false);
    stream_.peer_closed(token.now());
    return false;
  }
  if (t.error == port::SharedBytes::kSourceLost && memory_.bytes() != nullptr) {
    stream_.peer_source_lost();
    return false;
  }
  if (t.error != 0) {
    stream_.connection_lost(gave_up(t.error));
    return false;
  }
  return true;
}

// --- bytes out

port::ByteStream::Transfer StreamDriver::send_batch(Token& token) {
  if (port::SharedBytes* const shared = memory_.bytes()) {
    return shared->send(batch_->pieces(), batch_->own());
  }
  token.runtime().counters().send_calls.add();
  return bytes_->send(batch_->pieces());
}

void StreamDriver::send(Token& token, bool all) {
  size_t sent = 0;
  if (memory_.undecided() || (rd_ != nullptr && !rd_->decided())) return;
  if (blocked_ && memory_.bytes() != nullptr) blocked_ = !memory_.bytes()->has_room();
  while (!blocked_ && !gone_) {
    if (sent >= kSendBudget) {
      // The others have their turn; epoll says at once that there is room.
      blocked_ = true;
      token.runtime().more_to_send(token, *this);
      return;
    }
    if (!batch_) {
      const auto output = stream_.output();
      if (output == rdmap::Stream::Output::none) return;
      if (output == rdmap::Stream::Output::deferrable && !all) {
        token.runtime().defer(token, *this);
        return;
      }
      batch_ = batches_->take();
      stream_.fill(*batch_, token.now());
      const size_t copied = batch_->staged();
      token.runtime().counters().bytes_sent_copied.add(copied);
      token.runtime().counters().bytes_sent_in_place.add(batch_->bytes() - copied);
    }
    if (batch_->empty()) {
      // Nothing was to be said, or what detach() could not reach is next.
      if (batch_->lost() != nullptr) {
        if (port::SharedBytes* const shared = memory_.bytes()) shared->end_for_loss();
        stream_.source_lost(batch_->lost());
      }
      batches_->give(std::move(batch_));
      return;
    }
    const auto t = send_batch(token);
    if (t.bytes > 0) batch_->consumed(t.bytes);
    sent += t.bytes;
    if (look_at_.is_never() && !silence_told_ && t.bytes > 0) look_at_ = token.now() + kSilence;
    // Copied here the bytes are there after all, once a handler of the program's has made them
    // accessible; or the batch ends before them. Where all of it has been copied, it is the memory
    // that both ends share that the kernel does not give.
    if (t.error == EFAULT && batch_->detach()) continue;
    if (t.error != 0) {
      batch_->clear();
      // What the peer said before the reset, a Terminate perhaps, is still there to be read.
      receive(token);
      if (!stream_.ended()) stream_.connection_lost(gave_up(t.error));
    } else if (!batch_->empty()) {
      // A batch that the kernel took in part will not go further before there is room.
      blocked_ = true;
      token.runtime().counters().sends_cut.add();
      if (through_socket()) token.runtime().want_write(token, *this, true);
      if (stream_.ended()) (void)batch_->detach();
      return;
    } else if (batch_->lost() == nullptr) {
      stream_.llp_took_all(token.now());
    } else {
      continue;
    }
    batches_->give(std::move(batch_));
  }
}

void StreamDriver::leave_rd(Token& token, bool abort) {
  if (rd_ == nullptr) return;
  RdBytes& rd = *std::exchange(rd_, nullptr);
  try {
    rd.leave(token, abort);
  } catch (const std::bad_alloc&) {
    rd_ = &rd;  // its word is not said
    throw;
  }
}

void StreamDriver::grant_wish(Token& token) {
  using Wish = rdmap::Stream::Wish;
  // What is with the driver goes out first; only a reset does not wait for it.
  Wish wish = stream_.wish();
  const bool waits = batch_ || blocked_ || (rd_ != nullptr && !rd_->decided());
  if (waits && wish != Wish::reset && !(wish == Wish::close && stream_.hopeless())) return;
  if (wish == Wish::shutdown_write) {
    bytes_->shut_write();
    stream_.write_side_shut(token.now());
    wish = stream_.wish();
  }
  if (wish != Wish::close && wish != Wish::reset) return;
  if (wish == Wish::close && memory_.waits_for_pull(token)) return;
  // As long as the stream is there to try it again.
  leave_rd(token, wish == Wish::reset);
  gone_ = true;
  StreamOwner* owner = std::exchange(owner_, nullptr);
  if (batch_) batches_->give(std::move(batch_));
  token.runtime().remove(token, *this);
  memory_.end(token);
  if (wish == Wish::reset) {
    bytes_->reset();
  } else {
    bytes_->close();
  }
  if (owner != nullptr) {
    owner->visited(token);
    owner->driver_gone(token);
  }
}

}  // namespace weft::drive
