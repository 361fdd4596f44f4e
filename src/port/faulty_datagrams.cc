#include "port/faulty_datagrams.h"

#include <algorithm>
#include <utility>

#include "base/guarded.h"
#include "port/cut.h"
#include "port/faults.h"

namespace weft::port {
namespace {

using stats::InjectedFault;

// Held back in one direction at most, as in the queue of a router; what comes then is lost.
constexpr size_t kMostHeld = 64 * 1024 * 1024;
// Until the kernel is asked again that had no room: nobody waits for the socket to be writable on
// account of what is held back here.
constexpr Duration kTryAgain = std::chrono::milliseconds{1};
// Trains of which nothing was left, in one call.
constexpr int kMostLostTrains = 64;

// Each kind has two counters, that of `out` first.
void count(InjectedFault what_out, bool is_out) {
  faults::count(is_out ? what_out : static_cast<InjectedFault>(static_cast<uint8_t>(what_out) + 1));
}

}  // namespace

struct FaultyDatagrams::Run {
  size_t begin = 0;  // bytes of the train
  size_t end = 0;
};

FaultyDatagrams::FaultyDatagrams(const FaultSpec& spec, uint64_t number, FaultLog* log)
    : out_(spec, 2 * number, spec.applies_to(FaultDirection::out)),
      in_(spec, 2 * number + 1, spec.applies_to(FaultDirection::in)),
      log_(log) {}

std::unique_ptr<FaultyDatagrams> FaultyDatagrams::of_process() {
  const FaultSpec& spec = faults::of_process();
  if (spec.nothing_for_datagrams()) return nullptr;
  return std::make_unique<FaultyDatagrams>(spec, faults::next_number(), FaultLog::of_process());
}

template <class Held>
DatagramFate FaultyDatagrams::decide(FaultQueue<Held>& queue, size_t bytes) {
  constexpr bool kOut = std::is_same_v<Held, HeldOut>;
  const DatagramFate fate = queue.plan.next(bytes);
  count(InjectedFault::datagrams_out, kOut);
  if (fate.copies == 0) count(InjectedFault::lost_out, kOut);
  if (fate.copies == 2) count(InjectedFault::duplicated_out, kOut);
  for (size_t i = 0; i < fate.copies; ++i) {
    if (fate.copy[i].may_be_overtaken) count(InjectedFault::reordered_out, kOut);
    if (fate.copy[i].flips > 0) count(InjectedFault::corrupted_out, kOut);
  }
  return fate;
}

// Those that may not be overtaken go no earlier than the one before them.
template <class Held>
Time FaultyDatagrams::when(FaultQueue<Held>& queue, const DatagramFate::Copy& copy, Time now) {
  const Time due = now + copy.delay;
  if (copy.may_be_overtaken) return due;
  return queue.last = std::max(due, queue.last);
}

template <class Held>
bool FaultyDatagrams::hold(FaultQueue<Held>& queue, Time due, Held&& datagram) {
  if (queue.bytes + datagram.bytes.size() > kMostHeld) {
    count(InjectedFault::overflowed_out, std::is_same_v<Held, HeldOut>);
    return false;
  }
  queue.bytes += datagram.bytes.size();
  queue.held.emplace(due, std::forward<Held>(datagram));
  return true;
}

Time FaultyDatagrams::due() const {
  const Time out =
      out_.held.empty() ? Time::never() : std::max(out_.held.begin()->first, try_again_);
  const Time in = in_.held.empty() ? Time::never() : in_.held.begin()->first;
  return std::min(out, in);
}

// --- out

void FaultyDatagrams::tell_lost(const UdpSocket::Train& train, size_t offset, size_t size) {
  if (log_ == nullptr) return;
  std::array<std::byte, FaultLog::kFront> front;
  size_t n = 0;
  cut_.clear();
  cut(train.pieces, offset, std::min(size, front.size()), cut_);
  for (const IoVec& v : cut_) {
    if (!copy_guarded(front.data() + n, v.iov_base, v.iov_len)) break;
    n += v.iov_len;
  }
  log_->lost("out", *train.to, size, {front.data(), n});
}

void FaultyDatagrams::hold_out(const UdpSocket::Train& train, size_t offset, size_t size, Time due,
                               const DatagramFate::Copy& copy) {
  HeldOut held{.to = *train.to, .train = train};
  held.bytes.resize(size);
  cut_.clear();
  cut(train.pieces, offset, size, cut_);
  std::byte* to = held.bytes.data();
  for (const IoVec& v : cut_) {
    if (!copy_guarded(to, v.iov_base, v.iov_len)) return;  // lost
    to += v.iov_len;
  }
  copy.damage(held.bytes);
  held.train.segment = 0;
  held.train.pieces = {};
  hold(out_, due, std::move(held));
}

bool FaultyDatagrams::flush(UdpSocket& socket, Time now) {
  while (!out_.held.empty() && out_.held.begin()->first <= now) {
    HeldOut& held = out_.held.begin()->second;
    const IoVec piece{held.bytes.data(), held.bytes.size()};
    held.train.to = &held.to;
    held.train.pieces = {&piece, 1};
    const UdpSocket::Sent sent = socket.send_now(held.train, one_by_one_);
    if (sent.would_block) {
      try_again_ = now + kTryAgain;
      return false;
    }
    if (sent.error != 0 || sent.too_big) faults::count(InjectedFault::unsent);
    out_.bytes -= held.bytes.size();
    out_.held.erase(out_.held.begin());
  }
  return true;
}

// Sends those that nothing happens to. False: the call ends with `result`. What the kernel has no
// room for is kept here, for its fate is decided: a decision is never made twice.
bool FaultyDatagrams::send_run(UdpSocket& socket, const UdpSocket::Train& train,
                               Segmentation& segmentation, Run& run, Time now,
                               UdpSocket::Sent& result) {
  const size_t size = run.end - run.begin;
  const Run sending = std::exchange(run, {run.end, run.end});
  UdpSocket::Train part = train;
  cut_.clear();
  cut(train.pieces, sending.begin, size, cut_);
  part.pieces = cut_;
  const UdpSocket::Sent sent = socket.send_now(part, segmentation);
  result.bytes = sending.begin + sent.bytes;
  if (!sent.would_block) {
    result.too_big = sent.too_big;
    result.error = sent.error;
    return !sent.too_big && sent.error == 0;
  }
  const size_t step = train.segment > 0 ? train.segment : size;
  for (size_t at = result.bytes; at < sending.end; at += step) {
    hold_out(train, at, std::min(step, sending.end - at), now, {});
  }
  try_again_ = now + kTryAgain;
  result.bytes = sending.end;
  result.would_block = true;
  return false;
}

UdpSocket::Sent FaultyDatagrams::send(UdpSocket& socket, const UdpSocket::Train& train,
                                      Segmentation& segmentation) {
  const Time now = faults::now();
  if (!flush(socket, now)) return {.would_block = true};
  if (!out_.active) return socket.send_now(train, segmentation);
  const size_t all = total(train.pieces);
  const size_t step = train.segment > 0 ? train.segment : all;
  UdpSocket::Sent result;
  Run run;
  size_t at = 0;
  do {
    const size_t size = std::min(step, all - at);
    const DatagramFate fate = decide(out_, size);
    if (fate.copies == 0) tell_lost(train, at, size);
    const Time due = fate.copies > 0 ? when(out_, fate.copy[0], now) : now;
    const bool plain = fate.copies == 1 && fate.copy[0].flips == 0 && due <= now;
    if (plain) {
      run.end = at + size;
    } else {
      // Behind those that it is not to overtake. Should they end the call, its fate is gone with
      // it.
      if (run.end > run.begin && !send_run(socket, train, segmentation, run, now, result)) {
        if (!result.would_block) break;
      }
      for (size_t i = 0; i < fate.copies; ++i) {
        hold_out(train, at, size, i == 0 ? due : when(out_, fate.copy[1], now), fate.copy[i]);
      }
      run = {at + size, at + size};
      result.bytes = at + size;
      if (!flush(socket, now)) {
        result.would_block = true;
        break;
      }
    }
    at += size;
    const bool end = at >= all;
    if (end && plain) (void)send_run(socket, train, segmentation, run, now, result);
  } while (at < all);
  if (result.bytes == all) result.would_block = false;
  return result;
}

// --- in

bool FaultyDatagrams::take_held(MutableBytes buffer, Time now, UdpSocket::Received& r) {
  const auto is_due = [&] { return !in_.held.empty() && in_.held.begin()->first <= now; };
  if (!is_due()) return false;
  r = in_.held.begin()->second.from;
  r.bytes = 0;
  r.segment = in_.held.begin()->second.bytes.size();
  // Those of one train, once more as a train.
  for (bool more = true; more && is_due();) {
    const HeldIn& held = in_.held.begin()->second;
    const size_t size = held.bytes.size();
    const bool fits = r.from.gid() == held.from.from.gid() &&
                      r.from.port() == held.from.from.port() && r.to == held.from.to &&
                      r.tos == held.from.tos && r.interface == held.from.interface &&
                      size <= r.segment && size <= buffer.size() - r.bytes;
    if (r.bytes > 0 && !fits) break;
    const size_t kept = std::min(size, buffer.size() - r.bytes);
    r.truncated = kept < size;
    if (kept > 0) std::memcpy(buffer.data() + r.bytes, held.bytes.data(), kept);
    r.bytes += kept;
    in_.bytes -= size;
    more = size == r.segment && size > 0;
    in_.held.erase(in_.held.begin());
  }
  r.segment = std::min(r.segment, r.bytes);
  return true;
}

// Leaves in the buffer what arrives now. False: nothing does.
bool FaultyDatagrams::filter(MutableBytes buffer, Time now, UdpSocket::Received& r) {
  const size_t step = r.segment > 0 ? r.segment : r.bytes;
  size_t kept = 0;
  bool any = false;
  size_t at = 0;
  do {
    const size_t size = std::min(step, r.bytes - at);
    const MutableBytes datagram = buffer.subspan(at, size);
    const DatagramFate fate = decide(in_, size);
    if (fate.copies == 0 && log_ != nullptr) log_->lost("in", r.from, size, datagram);
    const Time due = fate.copies > 0 ? when(in_, fate.copy[0], now) : now;
    const auto keep_back = [&](size_t i, Time until) {
      HeldIn held{.from = r, .bytes = {datagram.begin(), datagram.end()}};
      fate.copy[i].damage(held.bytes);
      hold(in_, until, std::move(held));
    };
    if (fate.copies > 0 && due > now) keep_back(0, due);
    if (fate.copies > 1) keep_back(1, when(in_, fate.copy[1], now));
    if (fate.copies > 0 && due <= now) {
      fate.copy[0].damage(datagram);
      if (size > 0) std::memmove(buffer.data() + kept, datagram.data(), size);
      kept += size;
      any = true;
    }
    at += size;
  } while (at < r.bytes);
  r.bytes = kept;
  r.segment = std::min(step, kept);
  return any;
}

UdpSocket::Received FaultyDatagrams::receive(UdpSocket& socket, MutableBytes buffer) {
  const Time now = faults::now();
  (void)flush(socket, now);
  UdpSocket::Received r;
  if (take_held(buffer, now, r)) return r;
  for (int i = 0; i < kMostLostTrains; ++i) {
    r = socket.receive_now(buffer);
    // What the buffer had no room for is no datagram any more.
    if (r.would_block || r.error != 0 || r.truncated || !in_.active) return r;
    if (filter(buffer, now, r)) return r;
    if (take_held(buffer, now, r)) return r;
  }
  return {.would_block = true};
}

}  // namespace weft::port
