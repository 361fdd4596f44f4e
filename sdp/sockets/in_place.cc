#include "sdp/sockets/in_place.h"

#include <algorithm>
#include <optional>

#include "sdp/loop/handlers.h"

namespace weft::sdp {
namespace {

using std::chrono::microseconds;

// A peer that has read nothing for so long is elsewhere.
constexpr microseconds kPatience{2000};
// Times as long as for an answer: a megabyte is read by then.
constexpr unsigned kForMuch = 8;
constexpr microseconds kLongest{1'000'000};

// Until `done`, or nothing has happened for `most`.
template <class Done>
bool wait(SessionLock& lock, Session& session, LookTime& look_time, microseconds most, Done done) {
  if (look(lock, session, look_time, done, kForMuch)) return true;
  const auto until = std::chrono::steady_clock::now() + most;
  for (;;) {
    session.process();
    if (done()) return true;
    const auto left =
        std::chrono::duration_cast<microseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    session.sleep(lock, left);
  }
}

// The caller's memory is in use.
template <class Done>
void wait_for_ever(SessionLock& lock, Session& session, LookTime& look_time, Done done) {
  while (!wait(lock, session, look_time, kLongest, done)) {
  }
}

void wait_for_read(SessionLock& lock, Session& session, LookTime& look_time) {
  wait_for_ever(lock, session, look_time, [&] { return !session.in().reading(); });
}

}  // namespace

uint32_t send_in_place(SessionLock& lock, Session& session, LookTime& look_time, Bytes from) {
  const auto goes = [&] { return session.out().may_advertise() || !session.out().writable(); };
  if (!look(lock, session, look_time, goes, kForMuch) || !session.out().writable()) return 0;
  const auto bytes = static_cast<uint32_t>(std::min<size_t>(from.size(), INT32_MAX));
  // Nothing of this may be left behind by a jump: the peer reads the memory.
  const HoldHandlers hold;
  const auto memory = session.lend(from.data(), bytes, IBV_ACCESS_REMOTE_READ);
  if (!memory || !session.out().advertise(from.data(), bytes, memory->rkey)) return 0;
  std::optional<uint32_t> outcome;
  const auto done = [&] { return (outcome = session.out().take_outcome()) || session.broken(); };
  uint32_t read = 0;
  while (!wait(lock, session, look_time, kPatience, done)) {
    const uint32_t now_read = session.out().advertised_and_read();
    if (now_read == read) {
      // Its library answers that, wherever its program is.
      session.out().cancel_advertising();
      wait_for_ever(lock, session, look_time, done);
      break;
    }
    read = now_read;
  }
  return std::min(outcome.value_or(session.out().advertised_and_read()), bytes);
}

uint32_t receive_in_place(SessionLock& lock, Session& session, LookTime& look_time,
                          MutableBytes to) {
  const auto most = static_cast<uint32_t>(std::min<size_t>(to.size(), session.in().offered()));
  const HoldHandlers hold;
  const auto memory = session.lend(to.data(), most, IBV_ACCESS_LOCAL_WRITE);
  if (!memory || session.in().read(to.data(), most, memory->lkey) == 0) return 0;
  wait_for_read(lock, session, look_time);
  return std::min(session.in().take_arrived(), most);
}

uint32_t send_written(SessionLock& lock, Session& session, LookTime& look_time, Bytes from) {
  const auto most = static_cast<uint32_t>(std::min<size_t>(from.size(), INT32_MAX));
  const HoldHandlers hold;
  const auto memory = session.lend(from.data(), most, 0);
  const uint32_t bytes = memory ? session.out().write(from.data(), most, memory->lkey) : 0;
  if (bytes > 0) wait_for_ever(lock, session, look_time, [&] { return !session.out().writing(); });
  return bytes;
}

uint32_t receive_written(SessionLock& lock, Session& session, LookTime& look_time,
                         MutableBytes to) {
  const auto most = static_cast<uint32_t>(std::min<size_t>(to.size(), INT32_MAX));
  // The peer writes to the memory until it has said that it does not.
  const HoldHandlers hold;
  const auto memory =
      session.lend(to.data(), most, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  if (!memory || !session.in().offer(to.data(), most, memory->rkey)) return 0;
  std::optional<uint32_t> written;
  const auto done = [&] { return (written = session.in().take_written()) || session.broken(); };
  if (!wait(lock, session, look_time, kPatience, done)) {
    session.in().cancel_offer();
    wait_for_ever(lock, session, look_time, done);
  }
  return std::min(written.value_or(0), most);
}

void receive_staged(SessionLock& lock, Session& session, LookTime& look_time) {
  if (session.in().stage() > 0) wait_for_read(lock, session, look_time);
}

}  // namespace weft::sdp
