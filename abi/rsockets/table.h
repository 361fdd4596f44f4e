// The sockets of this process, by the numbers that the program has of them.
#pragma once

#include <memory>
#include <shared_mutex>
#include <unordered_map>

#include "abi/rsockets/stream.h"

namespace weft::rsockets {

// Any thread.
class Table {
 public:
  // nullptr for a number that is no rsocket's.
  std::shared_ptr<Stream> find(int fd) const {
    const std::shared_lock guard{lock_};
    const auto s = streams_.find(fd);
    return s == streams_.end() ? nullptr : s->second;
  }
  // Keeps it, and returns its number.
  int add(std::shared_ptr<Stream> stream) {
    const std::unique_lock guard{lock_};
    const int fd = stream->fd();
    streams_[fd] = std::move(stream);
    return fd;
  }
  std::shared_ptr<Stream> take(int fd) {
    const std::unique_lock guard{lock_};
    const auto s = streams_.find(fd);
    if (s == streams_.end()) return nullptr;
    auto stream = std::move(s->second);
    streams_.erase(s);
    return stream;
  }

 private:
  mutable std::shared_mutex lock_;
  std::unordered_map<int, std::shared_ptr<Stream>> streams_;
};

}  // namespace weft::rsockets
