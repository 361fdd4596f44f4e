// Connections that outlive their program: a child that goes to the background goes on with them
// when the process that made them has ended, and so does a program that follows by exec. A queue
// pair cannot follow a process. So for programs of which the rules say so (keep) a process of its
// own, the keeper, has the queue pairs, and moves bytes between them and mirrors whose other ends
// the program has. It ends with the last of these when nobody can ask it for more.
#pragma once

#include "sdp/sockets/library.h"

namespace weft::sdp {

class Keeper {
 public:
  // Connects `fd` as Library::connect() does. Nothing: there is no keeper, and there can be none.
  static std::optional<Library::Tried> connect(int fd, const Address& to, bool remember);
  // Children ask the same one. Another thread of the parent may have held its lock.
  static void go_on_in_child();
};

}  // namespace weft::sdp
