// The control connection between a client and a listening doctor: JSON documents over TCP, one a
// line. The client sends requests, the listener sends one reply to each:
//
//   {"weft_doctor": 1}                     {"weft_doctor": 1, "token", "you", "me", "program_port",
//                                           "mtu"}
//   {"ask": "heard"}                       {"round", "count", "ids": [up to 64], "tos", "hails"}
//                                          what arrived of the latest round of probes, and how
//                                          many pings arrived in all
//   {"ask": "hail", "port"}                {"sent"}: number of pings sent to that port of the
//   client
//   {"ask": "send", "cookie", "round",     {"sent", "refused": [size...]}: a probe of each size
//    "sizes": [payload...], "times",        `times` times, to where the cookie was sent; `refused`
//    "fragments", "tos"}                    are larger than the interface allows
//   {"ask": "mtu"}                         {"mtu"}: the kernel's path MTU to the client
//   {"ask": "stream", "id"}                {"retransmits", "packet"}: of a segment test's
//   connection
//
// A test of TCP segments is a connection of its own, to the same port:
//
//   {"trial": token, "id", "take": n}      {"ready": true}, and after n bytes in one segment
//                                          {"taken": n}
//   {"trial": token, "id", "give": n}      {"giving": n}, and n bytes in one segment; 0: a full one
//
// The listener closes a connection that carries anything else.
#pragma once

#include <netinet/in.h>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "kit/failure.h"
#include "kit/json_lines.h"
#include "port/tcp_stream.h"

namespace weft::doctor {

inline constexpr uint16_t kDoctorPort = 4349;  // TCP and UDP
inline constexpr unsigned kDoctorVersion = 1;
inline constexpr size_t kLongestLine = 1024;
inline constexpr size_t kMostSizes = 64;  // of one request

// Lines over a non-blocking stream.
class ControlConnection {
 public:
  explicit ControlConnection(port::TcpStream stream) : stream_(std::move(stream)) {}

  // Reads what has arrived. False: the peer has closed, or the connection broke.
  bool fetch();
  // The next document. Throws kit::Failure if a line is too long or no JSON object.
  std::optional<nlohmann::json> next();
  // The bytes behind the last document, handed over to the caller.
  std::string take_rest() { return received_.take_rest(); }

  // Sends, and keeps what the socket does not take. False: the connection broke.
  bool send(const nlohmann::json& document) { return send_text(kit::line_of(document)); }
  bool send_text(const std::string& text);
  bool flush();
  bool unsent() const { return !unsent_.empty(); }

  const port::TcpStream& stream() const { return stream_; }
  port::TcpStream& stream() { return stream_; }
  int fd() const { return stream_.fd(); }

 private:
  port::TcpStream stream_;
  kit::JsonLines received_{kLongestLine};
  std::string unsent_;
};

// What the kernel says of a connection's segments.
struct SegmentState {
  uint32_t mss = 0;          // payload of a full segment
  uint32_t packet = 0;       // the IP packet that it makes
  uint32_t retransmits = 0;  // times in a row that the oldest unacknowledged one was sent again
  uint32_t unacknowledged = 0;
};
SegmentState segment_state(const port::TcpStream& stream);
// A segment that was retransmitted so often, with nothing of it acknowledged, counts as vanished:
// the kernel then has waited for 1.4 s or more.
inline constexpr uint32_t kVanishedAfter = 3;

// The MTU of the interface that has this address; `otherwise` where it is not known.
uint32_t interface_mtu(const Gid& local, uint32_t otherwise);
// The kernel's path MTU to `to`, as an IP packet; 0 if it is not known.
// Sends nothing.
uint32_t mtu_towards(const port::Address& to);

}  // namespace weft::doctor
