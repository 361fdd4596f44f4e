// The sockets of this process, by the numbers that the program has of them.
#pragma once

#include <memory>
#include <shared_mutex>
#include <unordered_map>

#include "abi/rsockets/datagrams.h"
#include "abi/rsockets/stream.h"

namespace weft::rsockets {

// Any thread.
class Table {
 public:
  // nullptr for a number that is none of that kind.
  std::shared_ptr<Stream> find(int fd) const { return found(streams_, fd); }
  std::shared_ptr<Datagrams> find_datagrams(int fd) const { return found(datagrams_, fd); }
  // Keeps it, and returns its number.
  int add(std::shared_ptr<Stream> stream) { return keep(streams_, std::move(stream)); }
  int add(std::shared_ptr<Datagrams> socket) { return keep(datagrams_, std::move(socket)); }
  // As find(), and the table has it no more.
  std::shared_ptr<Stream> take(int fd) { return taken(streams_, fd); }
  std::shared_ptr<Datagrams> take_datagrams(int fd) { return taken(datagrams_, fd); }

 private:
  template <class Socket>
  using Numbered = std::unordered_map<int, std::shared_ptr<Socket>>;

  template <class Socket>
  std::shared_ptr<Socket> found(const Numbered<Socket>& sockets, int fd) const {
    const std::shared_lock guard{lock_};
    const auto s = sockets.find(fd);
    return s == sockets.end() ? nullptr : s->second;
  }
  template <class Socket>
  int keep(Numbered<Socket>& sockets, std::shared_ptr<Socket> socket) {
    const std::unique_lock guard{lock_};
    const int fd = socket->fd();
    sockets[fd] = std::move(socket);
    return fd;
  }
  template <class Socket>
  std::shared_ptr<Socket> taken(Numbered<Socket>& sockets, int fd) {
    const std::unique_lock guard{lock_};
    const auto node = sockets.extract(fd);
    return node.empty() ? nullptr : node.mapped();
  }

  mutable std::shared_mutex lock_;
  Numbered<Stream> streams_;
  Numbered<Datagrams> datagrams_;
};

}  // namespace weft::rsockets
