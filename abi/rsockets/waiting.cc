#include "abi/rsockets/waiting.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "port/signals.h"

namespace weft::rsockets {
namespace {

// Until the descriptor is readable, or the sleeper is woken. As accept(2) and connect(2), it goes
// on after a signal whose handler restarts calls: 0, and the caller looks again.
int wait_for(int fd, const Sleeper& sleeper) {
  pollfd both[] = {{fd, POLLIN, 0}, {sleeper.fd(), POLLIN, 0}};
  int error = ::poll(both, 2, -1) < 0 ? errno : 0;
  if (error == EINTR && port::signals_restart_calls()) error = 0;
  sleeper.clear();
  return error;
}

}  // namespace

void Waiting::announce() {
  changed_.notify_all();
  for (const Sleeper* s : sleepers_) s->wake();
}

void Waiting::remove(const Sleeper& sleeper) {
  sleepers_.erase(std::remove(sleepers_.begin(), sleepers_.end(), &sleeper), sleepers_.end());
}

int Waiting::wait(Lock& lock, Link& link) {
  if (watched_) {
    changed_.wait(lock);
    return 0;
  }
  const bool talks = link.is_connected();
  if (talks) {
    if (const int error = link.connection().endpoint().arm(); error != 0) return error;
    if (link.connection().progress()) {
      announce();
      return 0;
    }
  }
  // Both also for a thread that is cancelled in there.
  struct Asleep {
    Asleep(Waiting& w, const Sleeper& s) : waiting(w), sleeper(s) { waiting.add(sleeper); }
    Asleep(const Asleep&) = delete;
    Asleep& operator=(const Asleep&) = delete;
    ~Asleep() { waiting.remove(sleeper); }
    Waiting& waiting;
    const Sleeper& sleeper;
  };
  struct Watch {
    Watch(Waiting& w, Lock& l) : waiting(w), lock(l) {
      waiting.watched_ = true;
      lock.unlock();
    }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    ~Watch() {
      lock.lock();
      waiting.watched_ = false;
      waiting.announce();
    }
    Waiting& waiting;
    Lock& lock;
  };
  if (talks) {
    const Watch watch{*this, lock};
    return link.connection().endpoint().wait();
  }
  // Another thread may take the event that this one waits for.
  const Sleeper sleeper;
  const Asleep asleep{*this, sleeper};
  const Watch watch{*this, lock};
  return wait_for(link.fd(), sleeper);
}

}  // namespace weft::rsockets
