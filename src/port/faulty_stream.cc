#include "port/faulty_stream.h"

#include <algorithm>

#include "base/draw.h"
#include "port/calls.h"
#include "port/cut.h"
#include "port/faults.h"

namespace weft::port {
namespace {

using stats::InjectedFault;

// The start-up frame, and a Terminate that may follow it at once: their sender knows that a
// fresh socket has room for them (spec/mpa 2.5).
constexpr unsigned kWhole = 2;
// Sends that are further apart have a pause between them.
constexpr Duration kPause = std::chrono::microseconds{100};
constexpr Duration kNap = std::chrono::microseconds{50};
// Parts are of any size up to this, small ones as often as large ones.
constexpr size_t kMostOfAPart = 64 * 1024;

bool has_bytes(int fd) {
  std::byte one;
  return calls::recv(fd, &one, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

}  // namespace

FaultyStream::FaultyStream(const FaultSpec& spec, uint64_t number)
    : spec_(spec), random_(spec.seed * 0x9e3779b97f4a7c15U + number), whole_(kWhole) {}

std::unique_ptr<FaultyStream> FaultyStream::of_process() {
  const FaultSpec& spec = faults::of_process();
  if (spec.nothing_for_streams()) return nullptr;
  return std::make_unique<FaultyStream>(spec, faults::next_number());
}

// Something is there to be moved, after a pause.
bool FaultyStream::waits(Gate& gate, Time now) {
  if (gate.until.is_never()) {
    gate.until = now + spec_.delay + draw_up_to(random_, spec_.jitter);
    faults::count(InjectedFault::stream_delayed);
  }
  if (now < gate.until) {
    calls::nap(std::min(kNap, gate.until - now));
    return true;
  }
  gate = {.flows = true};
  return false;
}

std::span<const IoVec> FaultyStream::part_of(std::span<const IoVec> pieces) {
  allowed_ = total(pieces);
  if (!draw_chance(random_, spec_.split) || allowed_ < 2) return pieces;
  allowed_ = draw_size(random_, std::min(allowed_ - 1, kMostOfAPart));
  faults::count(InjectedFault::stream_split);
  part_.clear();
  cut(pieces, 0, allowed_, part_);
  return part_;
}

std::optional<std::span<const IoVec>> FaultyStream::before_send(std::span<const IoVec> pieces) {
  if (!spec_.applies_to(FaultDirection::out)) return pieces;
  if (whole_ > 0) {
    --whole_;
    return pieces;
  }
  if (spec_.late()) {
    const Time now = faults::now();
    if (now - last_sent_ > kPause) out_.flows = false;
    if (!out_.flows && waits(out_, now)) return {};
  }
  return part_of(pieces);
}

void FaultyStream::sent(size_t bytes) {
  if (bytes > 0 && spec_.late()) last_sent_ = faults::now();
}

std::optional<std::span<const IoVec>> FaultyStream::before_receive(int fd,
                                                                   std::span<const IoVec> pieces) {
  if (!spec_.applies_to(FaultDirection::in)) return pieces;
  if (spec_.late() && !in_.flows && has_bytes(fd) && waits(in_, faults::now())) return {};
  return part_of(pieces);
}

// Less than might have come: what comes next comes after a pause.
void FaultyStream::received(size_t bytes) {
  if (bytes < allowed_) in_ = {};
}

}  // namespace weft::port
