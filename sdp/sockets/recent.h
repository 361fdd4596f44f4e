// Threads that work on connections and wait for them by poll(2) or epoll: the next thing that comes
// is most likely an answer on one of them. So such a thread takes completions for a while before it
// sleeps, as a call that blocks does, and shows what came on the mirrors.
#pragma once

#include <chrono>
#include <functional>

#include "sdp/rdma/completions.h"

namespace weft::sdp {

class Recent {
 public:
  // The calling thread works on a connection of these.
  static void note(Completions& completions);
  static bool any();
  // Any thread of the process does: connections that it has worked on rely on those that sleep
  // saying so.
  static bool any_of_process();
  // What has come for connections of the process, where the calling thread works on one.
  static void take();
  // Looks for a while, where that pays; true if `other_news` is true, which is asked when a mirror
  // shows something, and now and then.
  static bool look(const std::function<bool()>& other_news);
  // While there is one, the calling thread sleeps, and the loop tells of news.
  class Sleep {
   public:
    Sleep();
    Sleep(const Sleep&) = delete;
    Sleep& operator=(const Sleep&) = delete;
    ~Sleep();

   private:
    Completions* const completions_;
    const std::chrono::steady_clock::time_point since_;
  };
  // In a child of fork(2), which has none of them.
  static void forget_in_child();
};

}  // namespace weft::sdp
