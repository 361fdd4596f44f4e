// One peer that a listening doctor is examined by: its questions, and what came of its datagrams.
//
// What it makes this host send is bounded. A datagram draws an answer of at most its own size, and
// only with the token that was given over TCP. More is sent only to the address at which the
// session's cookie was heard, or a few small ones to the address of the TCP connection.
#pragma once

#include <array>
#include <bitset>

#include "doctor/control.h"
#include "doctor/udp_end.h"

namespace weft::doctor {

class Session {
 public:
  // Datagrams that probes of one round can tell apart.
  static constexpr size_t kMostIds = 4096;
  static constexpr uint32_t kMostHails = 256;          // answered
  static constexpr uint64_t kMostBytes = 64ULL << 20;  // sent for all questions together

  Session(uint64_t token, uint64_t cookie) : token_(token), cookie_(cookie) {}

  uint64_t token() const { return token_; }
  // A datagram with this session's token came in at `door`.
  void came(const UdpEnd::Came& datagram, UdpEnd& door);

  // Answers what is about datagrams: "heard", "hail", "send", "mtu". `stream`: by which it was
  // asked; `door`: what it is sent from where no hail has come. Throws kit::Failure, or nlohmann's
  // exceptions, where the question is none.
  nlohmann::json answer(const nlohmann::json& question, const port::TcpStream& stream,
                        UdpEnd& door);

 private:
  nlohmann::json heard() const;
  nlohmann::json send(const nlohmann::json& question);
  UdpEnd::Sent send_one(UdpEnd& door, const Probe& probe, size_t size, const UdpEnd::To& to,
                        bool fragments, uint8_t tos);

  const uint64_t token_;
  const uint64_t cookie_;
  uint64_t sent_ = 0;  // bytes
  uint32_t hails_ = 0;
  // Where the last hail came from, and at which of the listener's ports.
  UdpEnd::To from_;
  UdpEnd* door_ = nullptr;
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
