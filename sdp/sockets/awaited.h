// A connection that a thread of the program's waits for. The thread may never come back: the
// handler of a signal may jump out of its call, or it is cancelled in it. So the loop writes to
// nothing that lies on the thread's stack, and what nobody takes is known.
#pragma once

#include <atomic>
#include <cerrno>
#include <future>
#include <memory>
#include <utility>

#include "sdp/rdma/session.h"

namespace weft::sdp {

class Awaited {
 public:
  using Result = std::pair<std::shared_ptr<Session>, int>;

  // The loop, once.
  void put(std::shared_ptr<Session> session, int error) {
    result_.set_value({std::move(session), error});
  }
  // The thread, once. Nothing with ETIMEDOUT where the loop has given it up.
  Result take() {
    Result result = result_.get_future().get();
    if (taken_.exchange(true)) return {nullptr, ETIMEDOUT};
    return result;
  }
  // True, once, if the thread has not taken it, and it does not any more.
  bool give_up() { return !taken_.exchange(true); }

 private:
  std::promise<Result> result_;
  std::atomic<bool> taken_{false};
};

}  // namespace weft::sdp
