#include "rdmap/ending.h"

#include <algorithm>
#include <array>

#include "rdmap/limits.h"

namespace weft::rdmap {
namespace {

using State = Ending::State;
using Event = Ending::Event;
constexpr size_t kStates = static_cast<size_t>(State::ended) + 1;
constexpr size_t kEvents = static_cast<size_t>(Event::moved) + 1;

// clang-format off
constexpr std::array<std::array<State, kStates>, kEvents> next_states() {
  using enum Ending::State;
  constexpr State drain = draining;
  constexpr State due = terminate_due;
  constexpr State out = terminate_out;
  return {{
      //               open     drain    drained  leaving  finished  left   due    out    parting  ended
      /* close      */ {drain,   drain,   drained, leaving, finished, left,  due,   out,   parting, ended},
      /* leave      */ {leaving, leaving, leaving, leaving, left,     left,  due,   out,   parting, ended},
      // Nothing can follow our FIN.
      /* failed     */ {due,     due,     due,     due,     ended,    ended, due,   out,   parting, ended},
      /* terminated */ {out,     out,     out,     out,     out,      out,   due,   out,   parting, ended},
      /* peer_fin   */ {parting, parting, parting, leaving, parting,  ended, due,   out,   parting, ended},
      /* written    */ {open,    drain,   drained, leaving, finished, left,  out,   out,   parting, ended},
      /* shut       */ {open,    finished, finished, left,  finished, left,  due,   out,   parting, ended},
      /* waited     */ {open,    drained, ended,   ended,   ended,    ended, due,   out,   parting, ended},
      /* moved      */ {open,    drain,   drain,   leaving, finished, left,  due,   out,   parting, ended},
  }};
}
// clang-format on
constexpr auto kNext = next_states();

constexpr State next(State state, Event event) {
  return kNext[static_cast<size_t>(event)][static_cast<size_t>(state)];
}

// Is the wait counted anew, as this event came? `changed`: the state did.
constexpr bool waits_anew(State state, Event event, bool changed) {
  switch (event) {
    case Event::moved:
      return state == State::draining;
    case Event::shut:
      return state == State::finished || state == State::left;
    case Event::leave:
      return state == State::leaving || state == State::left;
    case Event::terminate_written:
      return false;
    default:
      return changed;
  }
}

}  // namespace

void Ending::on(Event event, Time now) {
  const State before = std::exchange(state_, next(state_, event));
  const bool changed = state_ != before;
  if (event == Event::shut) shut_ = true;
  if (event == Event::peer_fin) peer_fin_ = true;
  if (event == Event::waited) {
    wait_until_ = Time::never();
    given_up_ = before != State::draining && before != State::finished && before != State::left;
  }
  if (changed && closing() && before == State::open && now >= fin_at_) fin_at_ = Time::never();
  // Both sides said all there was to say.
  if (state_ == State::left && peer_fin_) state_ = State::ended;
  if (state_ != State::ended && waits_anew(state_, event, changed)) {
    wait_until_ = now + (state_ == State::drained ? kDrainStuck : kLinger);
  }
}

Ending::Wish Ending::wish(bool all_said) const {
  switch (state_) {
    case State::open:
    case State::finished:
    case State::left:
      return Wish::none;
    case State::draining:
      return all_said && fin_at().is_never() ? Wish::shutdown_write : Wish::none;
    case State::drained:
    case State::leaving:
      return fin_at().is_never() ? Wish::shutdown_write : Wish::none;
    case State::terminate_due:
      return given_up_ ? Wish::reset : Wish::none;
    case State::terminate_out:
      if (!shut_) return given_up_ ? Wish::reset : Wish::shutdown_write;
      // Closing over unread bytes would turn into a reset and take the Terminate with it
      // (spec/errors 4).
      return peer_fin_ || given_up_ ? Wish::close : Wish::none;
    case State::parting:
    case State::ended:
      return given_up_ && !shut_ ? Wish::reset : Wish::close;
  }
  return Wish::none;
}

Time Ending::deadline() const {
  // Only what tick() acts on: a deadline that stays in the past would keep its keeper busy for
  // ever.
  if (state_ == State::ended || given_up_) return Time::never();
  return std::min(wait_until_, fin_at());
}

std::optional<work::StreamEnd::Kind> Ending::tick(Time now) {
  if (now >= fin_at_) fin_at_ = Time::never();
  if (now < wait_until_) return {};
  const State before = state_;
  on(Event::waited, now);
  if (before == state_ || state_ != State::ended) return {};
  return given_up_ ? work::StreamEnd::Kind::lost : work::StreamEnd::Kind::closed;
}

}  // namespace weft::rdmap
