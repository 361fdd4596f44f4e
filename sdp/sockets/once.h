// Something that comes once, for which any threads wait.
#pragma once

#include <semaphore.h>

#include <cerrno>
#include <chrono>
#include <ctime>

#include "sdp/loop/handlers.h"

namespace weft::sdp {

class Once {
 public:
  Once() { (void)::sem_init(&there_, 0, 0); }
  Once(const Once&) = delete;
  Once& operator=(const Once&) = delete;
  ~Once() { (void)::sem_destroy(&there_); }

  // It comes when this ends.
  class Comes {
   public:
    explicit Comes(Once& once) : once_(once) {}
    Comes(const Comes&) = delete;
    Comes& operator=(const Comes&) = delete;
    ~Comes() { (void)::sem_post(&once_.there_); }

   private:
    Once& once_;
  };
  // Until it has come, or `most` is over. A handler that jumped out of this would take it along.
  void wait(std::chrono::milliseconds most) {
    const HoldHandlers hold;
    timespec until{};
    (void)::clock_gettime(CLOCK_REALTIME, &until);
    const long sum = until.tv_nsec + std::chrono::nanoseconds{most}.count();
    until.tv_sec += sum / kSecond;
    until.tv_nsec = sum % kSecond;
    int status = 0;
    do {
      status = ::sem_timedwait(&there_, &until);
    } while (status != 0 && errno == EINTR);
    // For the others.
    if (status == 0) (void)::sem_post(&there_);
  }

 private:
  static constexpr long kSecond = 1'000'000'000;
  sem_t there_;
};

}  // namespace weft::sdp
