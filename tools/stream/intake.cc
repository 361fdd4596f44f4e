#include "stream/intake.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weft::stream {
namespace {

constexpr int64_t kStragglers = 300'000'000;  // ns in which packets of a sender that ended come

}  // namespace

Intake::Intake(const InletOptions& options, uint32_t stream, Lane& lane, bool reliable)
    : told_(options.shape),
      shape_(learned(options.shape, {})),
      tell_(options.tell),
      stream_(stream),
      lane_(lane),
      reliable_(reliable) {}

void Intake::begin(const Shape& shape) {
  // What waits came of somebody else.
  lane_.ledger.count_invalid(std::exchange(unread_, {}).size());
  lane_.undecided = false;
  shape_ = shape;
  lane_.continuity.begin();
  lane_.ledger.count_invalid(lane_.continuity.take_given_up());
  told_foreign_ = false;
}

bool Intake::comes_behind_its_end(int64_t now_ns) const {
  return !lane_.ledger.running() && now_ns - lane_.ended_ns < kStragglers;
}

// Packets of a stream that does not run yet, of a sender that nobody announced.
bool Intake::has_to_learn(ConstPacket packet, int64_t now_ns) const {
  return told_.is_open() && lane_.session == 0 && !lane_.ledger.running() &&
         !comes_behind_its_end(now_ns) && packet.size() == told_.packet_bytes();
}

// Where these begin no stream, the next ones show it again.
void Intake::learn(int64_t now_ns) {
  lane_.undecided = false;
  const auto unread = std::exchange(unread_, {});
  if (unread.empty()) return;
  shape_ = learned(told_, std::vector<ConstPacket>(unread.begin(), unread.end()));
  for (const auto& packet : unread) (void)take(read_header(shape_, packet), packet, now_ns);
}

bool Intake::take(ConstPacket packet, int64_t now_ns) {
  if (!has_to_learn(packet, now_ns)) return take(read_header(shape_, packet), packet, now_ns);
  unread_.emplace_back(packet.begin(), packet.end());
  lane_.undecided = true;
  lane_.last_arrival_ns = now_ns;
  if (unread_.size() == kPacketsToLearn) learn(now_ns);
  return true;
}

bool Intake::take(Header header, ConstPacket packet, int64_t now_ns) {
  Ledger& ledger = lane_.ledger;
  // A counter of few bits begins again and again.
  if (header.bits < 64) {
    header.number = ledger.complete_number(header.number, header.bits, Continuity::kLongestOutage);
  }
  if (header.verdict == Verdict::foreign) {
    refuse_foreign(header);
    return true;
  }
  if (header.verdict == Verdict::control) {
    ledger.count_control();
    return true;
  }
  if (!header.has_number()) {
    refuse(packet);
    return true;
  }
  if (comes_behind_its_end(now_ns) && header.number < ledger.next()) {
    ledger.count_late();
    return true;
  }
  const bool flagged = header.verdict == Verdict::flagged;
  if (reliable_) return place(header.number, flagged, packet, now_ns);
  const auto next = ledger.running() ? std::optional{ledger.next()} : std::nullopt;
  const Continuity::Judgement judgement = lane_.continuity.judge(header, next);
  ledger.count_invalid(lane_.continuity.take_given_up());
  switch (judgement.answer) {
    case Continuity::Answer::foreign:
      refuse_foreign(header);
      return true;
    case Continuity::Answer::goes_on:
      return place(header.number, flagged, packet, now_ns);
    case Continuity::Answer::wait:
      hold(judgement.held, packet);
      lane_.last_arrival_ns = now_ns;
      return true;
    case Continuity::Answer::believed:
      break;
  }
  hold(judgement.held, packet);
  believe(judgement);
  place_believed(now_ns);
  return true;
}

void Intake::settle(int64_t now_ns) {
  learn(now_ns);
  Ledger& ledger = lane_.ledger;
  const auto next = ledger.running() ? std::optional{ledger.next()} : std::nullopt;
  const auto judgement = lane_.continuity.settle(next, lane_.end);
  ledger.count_invalid(lane_.continuity.take_given_up());
  if (!judgement) return;
  believe(*judgement);
  place_believed(now_ns);
}

void Intake::believe(const Continuity::Judgement& judgement) {
  if (!lane_.believe(stream_, judgement, tell_)) return;
  told_foreign_ = false;
  tell_what_was_learned();
}

// Where it is not what one would read without it.
void Intake::tell_what_was_learned() const {
  if (!tell_ || shape_ == learned(told_, {})) return;
  tell_({{"event", "learned"},
         {"stream", stream_},
         {"number", text_of(shape_.format, shape_.number)}});
}

void Intake::place_believed(int64_t now_ns) {
  for (const Continuity::Taken& t : lane_.continuity.taken()) {
    (void)place(t.number, t.flagged, held_[t.held], now_ns);
  }
}

bool Intake::place(uint64_t number, bool flagged, ConstPacket packet, int64_t now_ns) {
  if (reliable_ && !lane_.ledger.has_room(number)) return false;
  if (lane_.ledger.arrive(number, flagged) == Arrival::taken) {
    copy_packet(shape_, packet, lane_.store.place(number));
  }
  lane_.last_arrival_ns = now_ns;
  return true;
}

void Intake::hold(HeldPacket name, ConstPacket packet) {
  if (held_.size() <= name) held_.resize(name + 1);
  held_[name].assign(packet.begin(), packet.end());
}

void Intake::refuse(ConstPacket packet) {
  lane_.ledger.count_invalid();
  if (!lane_.first_invalid) {
    lane_.first_invalid = invalid_packet(shape_, packet);
  }
}

void Intake::refuse_foreign(const Header& header) {
  lane_.ledger.count_foreign();
  if (std::exchange(told_foreign_, true) || !tell_) return;
  nlohmann::json event = {{"event", "foreign"}, {"stream", stream_}, {"number", header.number}};
  event["from"] = as_json(facts_of(shape_.format, header.origin));
  if (header.stream) event["from"]["stream"] = *header.stream;
  if (const auto& own = lane_.continuity.origin()) {
    event["stream_is"] = as_json(facts_of(shape_.format, *own));
  } else if (shape_.clock != 0) {
    // Nothing of it has come: this was asked for.
    event["stream_is"] = {{"clock", shape_.clock}};
  }
  tell_(event);
}

}  // namespace weft::stream
