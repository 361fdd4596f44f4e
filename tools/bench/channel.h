// Words between the processes of a benchmark: whole JSON documents over a pair of local sockets,
// which reaches across network namespaces.
#pragma once

#include <nlohmann/json.hpp>
#include <utility>

#include "port/fd.h"

namespace weft::bench {

class Channel {
 public:
  Channel() = default;
  explicit Channel(port::Fd fd) : fd_(std::move(fd)) {}

  // Both throw kit::Failure when the other end is gone.
  void send(const nlohmann::json& document) const;
  // Sleeps until there is one.
  nlohmann::json receive() const;

  int fd() const { return fd_.get(); }
  void close() { fd_.reset(); }

 private:
  port::Fd fd_;
};

// Both ends are close-on-exec.
std::pair<Channel, Channel> make_channel();

}  // namespace weft::bench
