#include "abi/rsockets/waiting.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <initializer_list>

#include "port/signals.h"

namespace weft::rsockets {
namespace {

// Until one of the descriptors is readable. As accept(2) and connect(2), it goes on after a signal
// whose handler restarts calls: 0, and the caller looks again.
int wait_for(std::initializer_list<int> fds, const Deadline& until) {
  pollfd all[2] = {};
  nfds_t count = 0;
  for (const int fd : fds) all[count++] = {fd, POLLIN, 0};
  const int ready = ::poll(all, count, left_of(until));
  if (ready == 0) return ETIMEDOUT;
  return ready > 0 || (errno == EINTR && port::signals_restart_calls()) ? 0 : errno;
}

}  // namespace

void Waiting::announce() {
  changed_.notify_all();
  for (const Sleeper* s : sleepers_) s->wake();
}

void Waiting::remove(const Sleeper& sleeper) {
  sleepers_.erase(std::remove(sleepers_.begin(), sleepers_.end(), &sleeper), sleepers_.end());
}

int Waiting::wait(Lock& lock, Link& link, const Deadline& until) {
  if (watched_) {
    if (until) return changed_.wait_until(lock, *until) == std::cv_status::timeout ? ETIMEDOUT : 0;
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
    Endpoint& endpoint = link.connection().endpoint();
    const int error = until ? wait_for({endpoint.event_fd()}, until) : 0;
    return error != 0 ? error : endpoint.wait();
  }
  // Another thread may take the event that this one waits for.
  const Sleeper sleeper;
  const Asleep asleep{*this, sleeper};
  const Watch watch{*this, lock};
  const int error = wait_for({link.fd(), sleeper.fd()}, until);
  sleeper.clear();
  return error;
}

}  // namespace weft::rsockets
