// The packets of one lane of a capture or recording that belong to its stream: without those whose
// numbers come from nowhere, and those of other senders.
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <utility>

#include "stream/continuity.h"

namespace weft::stream {

// Numbers of a receiver's ring, as `weft stream recv` has it where nobody asked for another one.
inline constexpr uint64_t kUsualRing = uint64_t{16} * 256;

// The lowest number of packet `next` and those behind it that may have been overtaken by it.
// `number_at(i)`: that of packet i of `count`.
template <class NumberAt>
uint64_t lowest_number(size_t next, size_t count, NumberAt number_at) {
  const uint64_t first = number_at(next);
  uint64_t lowest = first;
  for (size_t i = next + 1; i < std::min<size_t>(count, next + Continuity::kWitnesses); ++i) {
    const uint64_t number = number_at(i);
    if (number + kUsualRing > first) lowest = std::min(lowest, number);
  }
  return lowest;
}

// `Kept` is what stands for a packet while it waits and afterwards: its bytes, or where they are.
template <class Kept>
class LaneOfPackets {
 public:
  struct Numbered {
    uint64_t number = 0;  // a counter of few bits goes on when it comes round
    Kept packet;
  };

  void add(Header header, Kept packet) {
    if (header.bits < 64 && next_) {
      header.number = closest_number(*next_, header.number, header.bits);
    }
    const Continuity::Judgement judgement = continuity_.judge(header, next_);
    switch (judgement.answer) {
      case Continuity::Answer::foreign:
        ++unusable_;
        break;
      case Continuity::Answer::goes_on:
        take(header.number, std::move(packet));
        break;
      case Continuity::Answer::wait:
        held_[judgement.held] = std::move(packet);
        break;
      case Continuity::Answer::believed:
        held_[judgement.held] = std::move(packet);
        believe(judgement);
        break;
    }
    unusable_ += continuity_.take_given_up();
  }
  void finish() {
    // Nobody forges packets of a file: what most agree about at its end is as good.
    const auto last = next_ ? std::optional{*next_ + Continuity::kLongestOutage} : next_;
    if (const auto judgement = continuity_.settle(next_, last)) believe(*judgement);
    unusable_ += continuity_.take_given_up();
  }
  // Those that were found and not yet fetched, in the order in which they are to be sent.
  std::deque<Numbered>& packets() { return packets_; }
  uint64_t unusable() const { return unusable_; }

 private:
  void believe(const Continuity::Judgement& judgement) {
    if (judgement.anew) next_.reset();
    for (const Continuity::Taken& t : continuity_.taken()) {
      take(t.number, std::move(held_[t.held]));
    }
  }
  void take(uint64_t number, Kept packet) {
    packets_.push_back({number, std::move(packet)});
    next_ = std::max(next_.value_or(0), number + 1);
  }

  Continuity continuity_{kUsualRing};
  std::array<Kept, Continuity::kMostHeld> held_{};
  std::optional<uint64_t> next_;
  std::deque<Numbered> packets_;
  uint64_t unusable_ = 0;
};

}  // namespace weft::stream
