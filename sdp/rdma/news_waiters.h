// Who waits for news of one connection: somebody outside, such as a program that polls its
// descriptor, and threads that sleep in a call of it. While there is anybody, and news can come,
// the connection counts once among those for which the queues tell by an event
// (Completions::want).
//
// With the connection's lock, but Sleeper::sleep().
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "sdp/rdma/completions.h"

namespace weft::sdp {

class NewsWaiters {
 public:
  explicit NewsWaiters(Completions& completions) : completions_(completions) {}
  NewsWaiters(const NewsWaiters&) = delete;
  NewsWaiters& operator=(const NewsWaiters&) = delete;
  ~NewsWaiters() { end(); }

  // Whether somebody outside waits.
  void want(bool does) {
    wanted_ = does;
    update();
  }
  // No news come any more: nobody counts from now on.
  void end() {
    ended_ = true;
    update();
  }

  // A thread that is about to sleep. It hears of news that come from when this is made.
  class Sleeper {
   public:
    explicit Sleeper(NewsWaiters& waiters);
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;
    ~Sleeper();
    // Until there are news, or `most` is over. Without the lock.
    void sleep(std::chrono::microseconds most) const;

   private:
    NewsWaiters& waiters_;
    const uint32_t seen_;
  };
  // There are news: nobody sleeps any longer.
  void wake();

 private:
  void update();

  Completions& completions_;
  std::atomic<uint32_t> news_{0};  // how often there were some; threads sleep on it
  int sleepers_ = 0;
  bool wanted_ = false;
  bool ended_ = false;
  bool counted_ = false;
};

}  // namespace weft::sdp
