// Where one end of an RC connection wants its datagrams: in a Reply with the flag UO, behind the
// first byte of the Initiator's that takes such an offer (spec/wdp-rd 7.1), and in front of a
// Request that comes by a channel (7.5). All in network byte order.
//
//    0         2         4         8         12
//   +---------+---------+---------+---------+
//   | Version | Room    | QPN     | Session |
//   +---------+---------+---------+---------+
#pragma once

#include <optional>

#include "base/bytes.h"
#include "base/types.h"

namespace weft::wire {

struct RdOffer {
  static constexpr size_t kSize = 12;
  static constexpr uint16_t kVersion = 1;

  Qpn qpn;               // its UDP port and its queue pair's index
  uint32_t session = 0;  // random, not 0: messages of this connection name it
  // UDP payload that its interface takes, where the start is a channel's; else 0, for TCP knows.
  uint16_t room = 0;

  // Reads kSize bytes. Nothing where the version is another one, or the QPN names no queue pair.
  static std::optional<RdOffer> parse(const std::byte* p);
  void encode(std::byte* p) const;
  friend constexpr bool operator==(const RdOffer&, const RdOffer&) = default;
};

// What the two ends have told each other.
struct RdOffers {
  RdOffer own;
  std::optional<RdOffer> peer;  // nothing: the Responder's, which has still to hear
};

// The first byte that an Initiator sends behind a Reply with such an offer.
enum class RdCarrier : uint8_t { tcp = 0, datagrams = 1 };
// What the Responder answers to RdCarrier::datagrams: it takes what comes; and, before it closes
// the TCP connection, that it has come.
enum class RdWord : uint8_t { ready = 1, over = 2 };

}  // namespace weft::wire
