// Where a process asks for the connection whose knock it has accepted, when another process of its
// server made the knock (design/28). The door is a Unix socket whose name is made from the knock's.
#pragma once

#include <functional>
#include <optional>

#include "sdp/rdma/fabric.h"

namespace weft::sdp {

class Door {
 public:
  // `asked` is called on the loop's thread with a socket of somebody of the same user, who waits
  // for answer(). The loop's thread alone, also for the end.
  using Asked = std::function<void(File asker)>;
  Door(Loop& loop, const Address& knock, Asked asked);
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;
  ~Door();

  // Who has connected, and the program's end of the connection. Without one the knock itself is.
  static void answer(const File& asker, const Address& peer, const File& connection);

  struct Answer {
    Address peer{};
    File connection;
  };
  // Of whoever made the knock that was accepted as `fd`. Nothing if it is no knock, or if nobody
  // answers within a second. Any thread; the process at the door is of the same user.
  static std::optional<Answer> ask(int fd);

 private:
  void on_asker();

  Loop& loop_;
  Asked asked_;
  File listener_;
};

}  // namespace weft::sdp
