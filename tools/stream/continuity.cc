#include "stream/continuity.h"

#include <algorithm>

namespace weft::stream {

Continuity::Continuity(uint64_t ring) : ring_(ring) {
  for (HeldPacket i = kMostHeld; i > 0; --i) free_.push_back(i - 1);
}

void Continuity::begin() {
  give_up_all();
  origin_.reset();
}

void Continuity::end() {
  begin();
}

bool Continuity::agree(const Waiting& a, const Waiting& b) const {
  const uint64_t apart = a.number > b.number ? a.number - b.number : b.number - a.number;
  return a.origin == b.origin && apart < ring_;
}

uint32_t Continuity::witnesses_of(const Waiting& packet) const {
  return static_cast<uint32_t>(
      std::count_if(waiting_.begin(), waiting_.end(),
                    [&](const Waiting& other) { return agree(packet, other); }));
}

void Continuity::give_up_oldest() {
  free_.push_back(waiting_.front().held);
  waiting_.erase(waiting_.begin());
  ++given_up_;
}

void Continuity::give_up_all() {
  while (!waiting_.empty()) give_up_oldest();
}

Continuity::Judgement Continuity::believe(const Waiting& packet, std::optional<uint64_t> next) {
  taken_.clear();
  uint64_t first = packet.number;
  for (const Waiting& other : waiting_) {
    if (agree(packet, other)) {
      taken_.push_back({other.held, other.number, other.flagged});
      first = std::min(first, other.number);
    } else {
      ++given_up_;
    }
    free_.push_back(other.held);
  }
  waiting_.clear();
  origin_ = packet.origin;
  const bool anew = !next || first < *next || first - *next > kLongestOutage;
  return {.answer = Answer::believed, .held = packet.held, .anew = anew, .first = first};
}

Continuity::Judgement Continuity::judge(const Header& header, std::optional<uint64_t> next) {
  // What comes of another source between them speaks neither for nor against those that wait.
  if (origin_ && header.origin != *origin_) return {.answer = Answer::foreign};
  const uint64_t number = header.number;
  if (next && goes_on(number, *next)) {
    give_up_all();
    if (!origin_) origin_ = header.origin;
    return {.answer = Answer::goes_on};
  }
  if (waiting_.size() == kMostHeld) give_up_oldest();
  const Waiting packet{.held = free_.back(),
                       .number = number,
                       .origin = header.origin,
                       .flagged = header.verdict == Verdict::flagged};
  free_.pop_back();
  waiting_.push_back(packet);
  if (witnesses_of(packet) < kWitnesses) return {.answer = Answer::wait, .held = packet.held};
  return believe(packet, next);
}

std::optional<Continuity::Judgement> Continuity::settle(std::optional<uint64_t> next,
                                                        std::optional<uint64_t> end) {
  if (next) {
    taken_.clear();
    for (const Waiting& w : waiting_) {
      if (end && w.number >= *next && w.number < *end) {
        taken_.push_back({w.held, w.number, w.flagged});
      } else {
        ++given_up_;
      }
      free_.push_back(w.held);
    }
    waiting_.clear();
    if (taken_.empty()) return {};
    return Judgement{.answer = Answer::believed, .held = 0, .anew = false, .first = *next};
  }
  if (waiting_.empty()) return {};
  const auto most = std::max_element(
      waiting_.begin(), waiting_.end(),
      [this](const Waiting& a, const Waiting& b) { return witnesses_of(a) < witnesses_of(b); });
  return believe(Waiting{*most}, std::nullopt);
}

}  // namespace weft::stream
