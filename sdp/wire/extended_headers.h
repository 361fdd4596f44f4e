// What stands between the header of an SDP message and its payload (spec/sdp 2.3). All in network
// byte order; each parse() reads kSize bytes.
#pragma once

#include <optional>

#include "base/bytes.h"

namespace weft::sdp {

// Of RdmaWrCompl and RdmaRdCompl: bytes that were written or read; of ChRcvBuf and ChRcvBufAck: the
// size of a receive.
struct LengthHeader {
  static constexpr uint32_t kSize = 4;
  uint32_t length = 0;

  static LengthHeader parse(const std::byte* p) { return {load_be<uint32_t>(p)}; }
  void encode(std::byte* p) const { store_be(p, length); }
};

// What a half connection may carry (spec/sdp 5).
enum class Mode : uint8_t { buffered = 0, combined = 1, pipelined = 2 };

struct ModeChange {
  static constexpr uint32_t kSize = 4;
  bool send_half = false;  // of the receiver of this message: its sending half, else the other
  Mode mode{};

  // Nothing for a mode that there is not.
  static std::optional<ModeChange> parse(const std::byte* p);
  void encode(std::byte* p) const;
};

// A buffer to be read by the receiver of the message: the payload that came with it included.
struct SrcAvail {
  static constexpr uint32_t kSize = 16;
  uint32_t length = 0;
  uint32_t stag = 0;
  uint64_t to = 0;

  static SrcAvail parse(const std::byte* p) {
    return {load_be<uint32_t>(p), load_be<uint32_t>(p + 4), load_be<uint64_t>(p + 8)};
  }
  void encode(std::byte* p) const {
    store_be(p, length);
    store_be(p + 4, stag);
    store_be(p + 8, to);
  }
};

// A buffer to be written to by the receiver of the message.
struct SinkAvail {
  static constexpr uint32_t kSize = 20;
  uint32_t length = 0;
  uint32_t stag = 0;
  uint64_t to = 0;
  uint32_t non_discards = 0;  // messages with data that its sender has taken

  static SinkAvail parse(const std::byte* p) {
    return {load_be<uint32_t>(p), load_be<uint32_t>(p + 4), load_be<uint64_t>(p + 8),
            load_be<uint32_t>(p + 16)};
  }
  void encode(std::byte* p) const {
    store_be(p, length);
    store_be(p + 4, stag);
    store_be(p + 8, to);
    store_be(p + 16, non_discards);
  }
};

struct SuspendHeader {
  static constexpr uint32_t kSize = 8;
  uint64_t service_id = 0;

  static SuspendHeader parse(const std::byte* p) { return {load_be<uint64_t>(p)}; }
  void encode(std::byte* p) const { store_be(p, service_id); }
};

}  // namespace weft::sdp
