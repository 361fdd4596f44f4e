// What was found out about the path to a peer (path_probe.h). path_checks.h judges it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace weft::doctor {

enum class Direction : uint8_t { to_peer, from_peer };

// TCP segments in one direction.
struct SegmentFacts {
  enum class Outcome : uint8_t {
    untested,
    passed,    // a segment of full size was acknowledged
    vanished,  // it was not, however often the kernel retransmitted it, while small ones were
    unclear,   // neither was seen in the time for it
  };
  Outcome outcome = Outcome::untested;
  uint32_t full = 0;     // IP packet with a full segment, bytes
  uint32_t largest = 0;  // the largest IP packet that passed; where it `vanished`
  uint32_t after = 0;    // packet of a full segment after the test: less if a router said so
};

// UDP datagrams in one direction.
struct DatagramFacts {
  bool passes = false;   // small ones
  uint32_t most = 0;     // IP packet that the sender's interface allows, bytes
  uint32_t largest = 0;  // the largest IP packet that passed with DF set
  uint32_t sent = 0;     // of those that looked for losses
  uint32_t lost = 0;
  std::optional<bool> fragments;  // whether a datagram passes that IP has to cut up
  std::optional<uint8_t> tos;     // how kMarks arrived
};

// DSCP AF11 and ECN capable: neither is what a packet has by itself.
inline constexpr uint8_t kMarks = 0x2a;

struct PathFacts {
  std::string peer;    // address
  uint16_t port = 0;   // of the listening doctor
  std::string failed;  // why the tests ended early, or empty

  // Addresses with ports. Without translation each pair is equal.
  std::string own, own_seen;  // of this end of the TCP connection: as known here, seen there
  std::string own_udp, own_udp_seen;  // of this end's UDP socket, likewise
  std::string peer_own, dialed;       // of the peer: as known there, used here

  uint16_t program_port = 0;  // as programs on weft have them: of ip_local_port_range
  int program_tcp = 0;        // errno of a connection to it
  bool program_udp = false;   // whether a ping to it was answered

  std::string interface;  // of this host, that leads to the peer
  // The sending kernel's path MTU after the tests, by Direction; bytes, 0: unknown.
  std::array<uint32_t, 2> known_mtu{};
  std::array<SegmentFacts, 2> segments;    // by Direction
  std::array<DatagramFacts, 2> datagrams;  // by Direction
};

}  // namespace weft::doctor
