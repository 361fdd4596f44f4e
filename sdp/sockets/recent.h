// Connections that the calling thread has worked on last and waits for by poll(2) or epoll: the
// next thing that comes is most likely an answer on one of them. So the thread looks at them before
// it sleeps, as a call that blocks does.
#pragma once

#include <functional>

namespace weft::sdp {

class Stream;

class Recent {
 public:
  // The calling thread works on it.
  static void note(Stream& stream);
  static bool any();
  // Looks for a while, where that pays; true if the mirror of one shows news now, or `other_news`
  // is true.
  static bool look(const std::function<bool()>& other_news);
  // The calling thread goes to sleep: the loop is to tell of news from now on.
  static void about_to_sleep();
  // In a child of fork(2), which has none of them.
  static void forget_in_child();
};

}  // namespace weft::sdp
