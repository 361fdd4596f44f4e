// Connections that the calling thread has worked on last and waits for by poll(2) or epoll: the
// next thing that comes is most likely an answer on one of them. So the thread looks at them before
// it sleeps, as a call that blocks does.
#pragma once

#include <functional>
#include <memory>
#include <vector>

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
  // While there is one, the calling thread sleeps, and the loop tells of news.
  class Sleep {
   public:
    Sleep();
    Sleep(const Sleep&) = delete;
    Sleep& operator=(const Sleep&) = delete;
    ~Sleep();

   private:
    std::vector<std::weak_ptr<Stream>> streams_;
  };
  // In a child of fork(2), which has none of them.
  static void forget_in_child();
};

}  // namespace weft::sdp
