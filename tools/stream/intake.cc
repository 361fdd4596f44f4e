#include "stream/intake.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weft::stream {
namespace {

constexpr int64_t kStragglers = 300'000'000;  // ns in which packets of a sender that ended come
constexpr size_t kShownOfHeader = 48;         // bytes

std::string in_hex(ConstPacket packet) {
  std::string text;
  for (const std::byte b : packet.first(std::min(packet.size(), kShownOfHeader))) {
    text += fmt::format("{}{:02x}", text.empty() ? "" : " ", std::to_integer<unsigned>(b));
  }
  return text;
}

nlohmann::json as_json(const std::vector<std::pair<std::string, uint64_t>>& numbers) {
  auto json = nlohmann::json::object();
  for (const auto& [name, value] : numbers) json[name] = value;
  return json;
}

}  // namespace

Intake::Intake(const InletOptions& options, uint32_t stream, Lane& lane, bool reliable)
    : shape_(options.shape),
      tell_(options.tell),
      stream_(stream),
      lane_(lane),
      reliable_(reliable) {}

void Intake::begin() {
  lane_.continuity.begin();
  lane_.ledger.count_invalid(lane_.continuity.take_given_up());
  told_foreign_ = false;
}

bool Intake::take(ConstPacket packet, int64_t now_ns) {
  return take(read_header(shape_, packet), packet, now_ns);
}

bool Intake::take(Header header, ConstPacket packet, int64_t now_ns) {
  Ledger& ledger = lane_.ledger;
  // A counter of few bits begins again and again.
  if (header.bits < 64 && ledger.running()) {
    header.number = ledger.complete_number(header.number, header.bits);
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
  if (!ledger.running() && now_ns - lane_.ended_ns < kStragglers && header.number < ledger.next()) {
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
  Ledger& ledger = lane_.ledger;
  const auto next = ledger.running() ? std::optional{ledger.next()} : std::nullopt;
  const auto judgement = lane_.continuity.settle(next, lane_.end);
  ledger.count_invalid(lane_.continuity.take_given_up());
  if (!judgement) return;
  believe(*judgement);
  place_believed(now_ns);
}

void Intake::believe(const Continuity::Judgement& judgement) {
  Ledger& ledger = lane_.ledger;
  if (!ledger.running()) {
    // Of a sender without a control connection.
    ledger.begin(ledger.may_begin(judgement.first), std::nullopt);
    told_foreign_ = false;
  } else if (judgement.anew) {
    const uint64_t from = ledger.next();
    ledger.begin_anew(judgement.first);
    if (tell_) {
      tell_({{"event", "jump"}, {"stream", stream_}, {"from", from}, {"to", judgement.first}});
    }
  }
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
    lane_.first_invalid = {.reason = explain(shape_, packet),
                           .fields = as_json(fields_of(shape_, packet)),
                           .header = in_hex(packet)};
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
  } else {
    event["stream_is"] = {{"clock", shape_.clock}};
  }
  tell_(event);
}

}  // namespace weft::stream
