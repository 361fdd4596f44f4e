#include "rdmap/limits.h"

#include <algorithm>

namespace weft::rdmap {

namespace {

bool takes_large_ones(const StreamConfig& config) {
  return (config.mpa.extension || config.big_fpdu) && !config.mpa.send_markers;
}

// TCP never has less than 536 bytes a segment (RFC 9293 section 3.7.1); a smaller report is not
// believed.
uint32_t segment(const StreamConfig& config) {
  return std::max(config.emss, 536U);
}

}  // namespace

uint32_t max_payload(const StreamConfig& config, size_t header) {
  if (config.by_memory) return kMemoryPayload;
  if (takes_large_ones(config)) return kBigPayload;
  uint32_t room = segment(config) & ~7U;
  room = std::min<uint32_t>(room, wire::kMaxUlpdu);
  if (config.mpa.send_markers) {
    room -= static_cast<uint32_t>(wire::kMarkerSize) *
            ((room + wire::kMarkerSpacing - 1) / wire::kMarkerSpacing);
  }
  const auto overhead = static_cast<uint32_t>(wire::kFpduLengthSize + wire::kFpduCrcSize + header);
  return (room - overhead) & ~3U;
}

uint32_t fpdu_segment(const StreamConfig& config) {
  return takes_large_ones(config) || config.mpa.send_markers ? 0 : segment(config);
}

}  // namespace weft::rdmap
