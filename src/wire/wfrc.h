// WFRC block: the private data with which weft brings up an RC queue pair by (GID, QPN), as
// modify_qp knows them (spec/addressing 5.1). Request and Reply carry the same block.
#pragma once

#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/gid.h"
#include "base/types.h"

namespace weft::wire {

struct Wfrc {
  static constexpr size_t kSize = 64;
  static constexpr uint8_t kVersion = 1;
  enum class Code : uint16_t {
    ok = 0,
    not_ready = 1,
    no_such_qp = 2,
    not_your_peer = 3,
    role_conflict = 4,
    bad_parameters = 5,
    qp_in_error = 6,
  };

  uint8_t version = kVersion;
  bool fallback = false;  // sent by the side that should have waited (spec/addressing 5.5)
  Code code{};
  Qpn source_qpn;
  Qpn destination_qpn;
  uint32_t sq_psn = 0;  // of the sender of this block
  uint32_t rq_psn = 0;
  uint64_t nonce = 0;
  Gid source_gid;
  Gid destination_gid;

  // Nothing when the bytes are no WFRC block. The version is the caller's to check.
  static std::optional<Wfrc> parse(Bytes private_data);
  void encode(std::byte* p) const;
  std::string to_string() const;
};
const char* to_string(Wfrc::Code code);

}  // namespace weft::wire
