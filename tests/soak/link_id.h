// What a completion is of: it is all in the wr_id.
#pragma once

#include <cstdint>

namespace weft::soak {

struct WorkId {
  uint16_t generation;  // of the place: an earlier link's completions mean nothing
  uint16_t place;
  bool receive;
  uint32_t number;

  uint64_t pack() const {
    return uint64_t{generation} << 48 | uint64_t{place} << 32 | uint64_t{receive} << 31 | number;
  }
  static WorkId unpack(uint64_t id) {
    return {static_cast<uint16_t>(id >> 48), static_cast<uint16_t>(id >> 32), (id >> 31 & 1) != 0,
            static_cast<uint32_t>(id) & kNumbers};
  }
  static constexpr uint32_t kNumbers = (1U << 31) - 1;
};

}  // namespace weft::soak
