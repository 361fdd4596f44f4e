// Hands a connection to another process of the same server, which has accepted the wake-up
// connection of this one (design/28). That process asks at a Unix socket, whose name is made from
// the address of the wake-up connection.
#pragma once

#include <functional>
#include <optional>

#include "sdp/rdma/fabric.h"

namespace weft::sdp {

class Handover {
 public:
  // `asked` is called on the loop's thread with a socket of somebody of the same user, who waits
  // for answer(). The loop's thread alone, also for the end.
  using Asked = std::function<void(File asker)>;
  Handover(Loop& loop, const Address& wake_up, Asked asked);
  Handover(const Handover&) = delete;
  Handover& operator=(const Handover&) = delete;
  ~Handover();

  // Who has connected, and the program's end of the connection. Without one the other process keeps
  // the wake-up connection.
  static void answer(const File& asker, const Address& peer, const File& connection);

  struct Answer {
    Address peer{};
    File connection;
  };
  // Asks the process that made the wake-up connection `fd`. Nothing if it is no such connection, or
  // if nobody answers within a second. Any thread; the process that answers is of the same user.
  static std::optional<Answer> ask(int fd);

 private:
  void on_asker();

  Loop& loop_;
  Asked asked_;
  File listener_;
};

}  // namespace weft::sdp
