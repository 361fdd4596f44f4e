// What two MPA peers agreed on at start-up, and what each side brings to it (spec/mpa 2).
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"

namespace weft::mpa {

enum class Rtr : uint8_t {
  none,
  fpdu,
  write,
  read
};  // ready-to-receive frame, kinds B, C, D of RFC 6581

// The outcome for one side.
struct Parameters {
  uint8_t revision = 2;
  bool crc = true;                 // both directions
  bool send_markers = false;       // the peer asked for them
  bool extension = false;          // X (spec/mpa 2.7)
  bool peer_to_peer = false;       // A agreed
  Rtr rtr = Rtr::none;             // the frame that opens the stream when peer_to_peer
  bool established_later = false;  // the Initiator's program is not ready yet; its first FPDU says
                                   // when it is (spec/mpa 2.9)
  uint16_t ird = 0;                // inbound reads and atomics that we serve at once
  uint16_t ord = 0;                // outbound reads and atomics that we may have outstanding
  // The same of the peer, where it has said so to the Initiator. `ird` may be more.
  std::optional<uint16_t> peer_ord;
};

// What one side wants, before it knows the other.
struct Offer {
  uint8_t revision = 2;
  bool crc = true;
  bool extension = true;
  bool peer_to_peer = false;
  bool established_later = false;  // of an Initiator (spec/mpa 2.9)
  uint16_t ird = 16;
  uint16_t ord = 16;
};

inline constexpr uint16_t kMostIrdOrd =
    128;  // what Linux siw can do; more makes it give up (spec/mpa 2.3.3)

}  // namespace weft::mpa
