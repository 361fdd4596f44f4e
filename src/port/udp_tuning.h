// What a UDP socket is set to, as its traffic is, instead of asking it of the kernel with each
// datagram.
#pragma once

#include <cstdint>
#include <utility>

#include "base/gid.h"

namespace weft::port {

// Whether the kernel is to put what comes from one peer together to trains (UDP_GRO). Where each
// datagram comes alone, with nothing before the next, as in a ping-pong, there is nothing to put
// together, and to be told so costs a line of memory that the sender's processor has just written:
// 0.2 us a datagram (docs/performance-notes.md, "The round trip of UD"). Value type.
class GroSwitch {
 public:
  bool wanted() const { return wanted_; }
  // A datagram or a train has come; nothing is there. True when wanted() has changed.
  bool came(bool train) {
    alone_ = train || ++row_ >= kRow ? 0 : alone_ + 1;
    return alone_ == 0 && !std::exchange(wanted_, true);
  }
  bool empty() {
    row_ = 0;
    return alone_ >= kAlone && std::exchange(wanted_, false);
  }
  // It has changed, and something is there after all.
  void not_empty() {
    alone_ = 0;
    wanted_ = true;
  }

 private:
  static constexpr unsigned kRow = 4;  // datagrams without a pause
  static constexpr unsigned kAlone = 256;
  bool wanted_ = true;
  unsigned row_ = 0;    // since nothing was there
  unsigned alone_ = 0;  // since a train or a row
};

// The hop limit that a socket gives its datagrams over IPv4 by itself (IP_TTL). Programs name one
// with each destination, most of them always the same: it becomes the socket's, for to say it with
// each datagram (beside the source address) costs the kernel an allocation. Value type.
class UsualTtl {
 public:
  static constexpr uint8_t kKernels = 0;  // its own choice
  enum class Say : uint8_t { nothing, with_datagram, to_socket };
  // What has to be done for a datagram with this hop limit; with to_socket it is the usual one now.
  Say said(uint8_t hops) {
    if (hops == usual_) {
      row_ = 0;
      return Say::nothing;
    }
    if (std::exchange(last_, hops) != hops) row_ = 0;
    // There is no word for the kernel's choice in a datagram.
    if (hops != kKernels && ++row_ < kRow) return Say::with_datagram;
    usual_ = hops;
    row_ = 0;
    return Say::to_socket;
  }

 private:
  static constexpr unsigned kRow = 16;
  uint8_t usual_ = kKernels;
  uint8_t last_ = kKernels;
  unsigned row_ = 0;  // datagrams with last_
};

// Towards an address of its own host the kernel sends from that address, if nobody says otherwise;
// but from an interface's first where it is a later one of the same subnet (`ip route show table
// local`, `src`), and from 127.0.0.1 towards 127.0.0.2. Where the kernel was asked and says so, the
// address is not named. Value type; it knows of one address at a time.
class OwnSource {
 public:
  // For each datagram from an address to itself. True: ask the kernel, and say what it answered.
  bool to_ask(const Gid& own) {
    if (std::exchange(own_, own) != own) {
      taken_ = false;
      sent_ = 0;
    }
    return sent_++ % kAgain == kRow;
  }
  void answered(bool taken) { taken_ = taken; }
  bool taken() const { return taken_; }

 private:
  static constexpr uint32_t kRow = 16;      // datagrams before it is worth asking
  static constexpr uint32_t kAgain = 4096;  // addresses come and go
  Gid own_;
  bool taken_ = false;
  uint32_t sent_ = 0;
};

}  // namespace weft::port
