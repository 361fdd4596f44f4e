// The listener's state of one client: its requests, and what arrived of its datagrams.
//
// What a client makes this host send is bounded. A datagram draws an answer of at most its own
// size, and only with the token that was given over TCP. More is sent only to an address that has
// received the session's cookie, or a few pings to the address of the TCP connection.
#pragma once

#include <array>
#include <bitset>

#include "doctor/control_connection.h"
#include "doctor/probe_socket.h"

namespace weft::doctor {

class Session {
 public:
  // Probes of one round that can be told apart.
  static constexpr size_t kMostIds = 4096;
  static constexpr uint32_t kMostPings = 256;          // answered
  static constexpr uint64_t kMostBytes = 64ULL << 20;  // sent for all requests together

  Session(uint64_t token, uint64_t cookie) : token_(token), cookie_(cookie) {}

  uint64_t token() const { return token_; }
  // A datagram with this session's token arrived at `socket`.
  void handle(const ProbeSocket::Received& datagram, ProbeSocket& socket);

  // The reply to a request about datagrams: "heard", "hail", "send", "mtu". `stream`: the control
  // connection; `socket`: sends the pings. Throws kit::Failure, or nlohmann's exceptions, if the
  // request is none.
  nlohmann::json reply_to(const nlohmann::json& request, const port::TcpStream& stream,
                          ProbeSocket& socket);

 private:
  nlohmann::json received() const;
  nlohmann::json send(const nlohmann::json& request);
  ProbeSocket::Sent send_one(ProbeSocket& socket, const Probe& probe, size_t size,
                             const ProbeSocket::Remote& to, bool fragments, uint8_t tos);

  const uint64_t token_;
  const uint64_t cookie_;
  uint64_t sent_ = 0;  // bytes
  uint32_t pings_ = 0;
  // Source of the last ping, and the listener's socket that it arrived at.
  ProbeSocket::Remote remote_;
  ProbeSocket* socket_ = nullptr;
  // Of the latest round.
  uint32_t round_ = 0;
  uint32_t count_ = 0;
  uint8_t tos_ = 0;
  std::bitset<kMostIds> ids_;
};

// A number of 64 bits as JSON has it here: 16 hexadecimal digits, for not every reader of JSON
// takes such a number.
std::string in_hex(uint64_t number);

}  // namespace weft::doctor
