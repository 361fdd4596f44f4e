// MPA start-up frames: RFC 5044 section 7.1 and, for the enhanced block, RFC 6581 sections 6 and 9
// (spec/mpa 2.1, 2.2); EL: spec/mpa 2.9; HR and HO: spec/same-host 2.1; UR and UO: spec/wdp-rd 7.1.
//
//    0                16       17       18              20
//   +----------------+--------+--------+---------------+---------------
//   | Key            |MCRSHHXX| Rev    | PD_Length     | Private data ..
//   +----------------+--------+--------+---------------+---------------
#pragma once

#include <array>
#include <string>

#include "base/bytes.h"
#include "base/result.h"

namespace weft::wire {

struct MpaStart {
  static constexpr size_t kSize = 20;
  static constexpr size_t kMaxPrivateData = 512;
  enum class Kind : uint8_t { request, reply };

  Kind kind{};
  bool markers = false;              // M: sender requires markers in what it receives
  bool crc = false;                  // C
  bool rejected = false;             // R, Reply only
  bool enhanced = false;             // S: enhanced block present
  bool extension_accepted = false;   // XA, Reply only
  bool extension_requested = false;  // XR, Request only
  bool host_offered = false;         // HO, Reply with S and XA only: offer of memory present
  bool host_requested = false;       // HR, Request only
  bool rd_offered = false;           // UO, Reply with S and XA only: an RdOffer is present
  bool rd_requested = false;         // UR, Request with XR only
  bool established_later = false;    // EL, Request with XR only
  uint8_t revision = 2;
  uint16_t private_data_length = 0;  // PD_Length, the enhanced block included

  enum class Error : uint8_t { bad_key, bad_revision, private_data_too_long };
  // Reads kSize bytes. Checks the key against `kind`, the revision (1 or 2) and PD_Length (at most
  // 512); that PD_Length has room for the block that `enhanced` announces is the caller's to check.
  static Result<MpaStart, Error> parse(Kind kind, const std::byte* p);
  void encode(std::byte* p) const;
  std::string to_string() const;
};
const char* to_string(MpaStart::Error e);

struct MpaEnhanced {
  static constexpr size_t kSize = 4;
  static constexpr uint16_t kNotNegotiated = 0x3fff;  // IRD or ORD left to the ULP

  bool peer_to_peer = false;  // A
  bool rtr_fpdu = false;      // B: an FPDU without a DDP segment
  bool rtr_write = false;     // C: zero-length RDMA Write
  bool rtr_read = false;      // D: zero-length RDMA Read
  uint16_t ird = 0;           // 14 bits
  uint16_t ord = 0;           // 14 bits

  static MpaEnhanced parse(const std::byte* p);
  void encode(std::byte* p) const;
  std::string to_string() const;
};

}  // namespace weft::wire
