#include "wire/terminate.h"

#include <algorithm>
#include <cstdio>

#include "wire/ddp_header.h"
#include "wire/rdmap_messages.h"

namespace weft::wire {
namespace {

constexpr uint8_t kHasLength = 0x80;  // M
constexpr uint8_t kHasDdp = 0x40;     // D
constexpr uint8_t kHasRdmap = 0x20;   // R

uint8_t reverse_control(uint8_t siw) {
  return static_cast<uint8_t>(((siw & 0x01) != 0 ? kHasLength : 0) |
                              ((siw & 0x02) != 0 ? kHasDdp : 0) |
                              ((siw & 0x04) != 0 ? kHasRdmap : 0));
}

}  // namespace

size_t Terminate::encode(std::byte* p) const {
  p[0] = static_cast<std::byte>(static_cast<uint8_t>(error.layer) << 4 | (error.etype & 0x0f));
  p[1] = static_cast<std::byte>(error.code);
  p[2] = static_cast<std::byte>((has_segment_length ? kHasLength : 0) |
                                (ddp_header_size != 0 ? kHasDdp : 0) |
                                (rdmap_header_size != 0 ? kHasRdmap : 0));
  p[3] = std::byte{0};
  size_t n = 4;
  if (has_segment_length || ddp_header_size != 0) {
    store_be(p + n, segment_length);
    n += 2;
  }
  std::memcpy(p + n, ddp_header.data(), ddp_header_size);
  n += ddp_header_size;
  std::memcpy(p + n, rdmap_header.data(), rdmap_header_size);
  return n + rdmap_header_size;
}

Terminate::Layout Terminate::guess_layout(uint8_t first, uint8_t code, uint8_t control,
                                          bool started) {
  const bool rfc_bits = (control & 0xe0) != 0;
  const bool siw_bits = (control & 0x07) != 0;
  if (rfc_bits != siw_bits) return rfc_bits ? Layout::rfc : Layout::siw;
  switch (first) {
    case 0x21:
      return Layout::siw;
    case 0x20:
      return code >= 0x05 && code <= 0x07 && started ? Layout::siw : Layout::rfc;
    case 0x02:
      return code <= 0x04 || !started ? Layout::siw : Layout::rfc;
    default:
      return Layout::rfc;
  }
}

Terminate Terminate::parse(Bytes payload, bool extension, bool started) {
  Terminate t;
  if (payload.size() < 4) {
    t.error = {Layer::rdmap, 2, 0xff};
    return t;
  }
  auto first = std::to_integer<uint8_t>(payload[0]);
  const auto code = std::to_integer<uint8_t>(payload[1]);
  auto control = std::to_integer<uint8_t>(payload[2]);
  if (!extension && guess_layout(first, code, control, started) == Layout::siw) {
    first = static_cast<uint8_t>(first << 4 | first >> 4);
    control = reverse_control(control);
    t.layout = Layout::siw;
  }
  // Layers 3 to 15 do not exist; such a Terminate still ends the stream, as an RDMAP error.
  const auto layer = static_cast<uint8_t>(first >> 4);
  t.error = {layer <= 2 ? static_cast<Layer>(layer) : Layer::rdmap,
             static_cast<uint8_t>(first & 0x0f), code};
  payload = payload.subspan(4);
  if ((control & (kHasLength | kHasDdp)) != 0 && payload.size() >= 2) {
    t.has_segment_length = (control & kHasLength) != 0;
    t.segment_length = load_be<uint16_t>(payload.data());
    payload = payload.subspan(2);
  }
  if ((control & kHasDdp) != 0 && !payload.empty()) {
    const bool tagged = (std::to_integer<uint8_t>(payload[0]) & 0x80) != 0;
    const size_t size = tagged ? 14 : 18;
    if (payload.size() >= size) {
      t.ddp_header_size = static_cast<uint8_t>(size);
      std::copy_n(payload.begin(), size, t.ddp_header.begin());
      payload = payload.subspan(size);
    }
  }
  if ((control & kHasRdmap) != 0) {
    // The DDP header tells which of the two it is; without one its size has to.
    const bool atomic = t.ddp_header_size != 0
                            ? Control::parse(t.ddp_header.data()).opcode == Opcode::atomic_request
                            : payload.size() >= AtomicRequest::kSize;
    const size_t size = atomic ? AtomicRequest::kSize : ReadRequest::kSize;
    if (payload.size() >= size) {
      t.rdmap_header_size = static_cast<uint8_t>(size);
      std::copy_n(payload.begin(), size, t.rdmap_header.begin());
    }
  }
  return t;
}

std::string TermError::to_string() const {
  static constexpr const char* kLayers[] = {"RDMAP", "DDP", "LLP"};
  char text[48];
  std::snprintf(text, sizeof text, "%s error type %u code 0x%02x",
                kLayers[static_cast<size_t>(layer)], etype, code);
  return text;
}

std::string Terminate::to_string() const {
  return "Terminate: " + error.to_string() + (ddp_header_size != 0 ? ", with DDP header" : "") +
         (rdmap_header_size != 0 ? ", with RDMAP header" : "");
}

}  // namespace weft::wire
