#include "wire/mpa_start.h"

#include <cstdio>

namespace weft::wire {
namespace {

constexpr char kRequestKey[] = "MPA ID Req Frame";
constexpr char kReplyKey[] = "MPA ID Rep Frame";
constexpr size_t kKeySize = 16;

constexpr uint8_t kMarkers = 0x80;
constexpr uint8_t kCrc = 0x40;
constexpr uint8_t kRejected = 0x20;
constexpr uint8_t kEnhanced = 0x10;
constexpr uint8_t kHostOffered = 0x08;       // of a Reply
constexpr uint8_t kEstablishedLater = 0x08;  // of a Request
constexpr uint8_t kHostRequested = 0x04;
constexpr uint8_t kRdOffered = 0x04;  // of a Reply
constexpr uint8_t kExtensionAccepted = 0x02;
constexpr uint8_t kRdRequested = 0x02;  // of a Request
constexpr uint8_t kExtensionRequested = 0x01;

}  // namespace

Result<MpaStart, MpaStart::Error> MpaStart::parse(Kind kind, const std::byte* p) {
  const char* key = kind == Kind::request ? kRequestKey : kReplyKey;
  if (std::memcmp(p, key, kKeySize) != 0) return fail(Error::bad_key);
  const auto flags = std::to_integer<uint8_t>(p[16]);
  MpaStart f;
  f.kind = kind;
  f.markers = (flags & kMarkers) != 0;
  f.crc = (flags & kCrc) != 0;
  f.rejected = kind == Kind::reply && (flags & kRejected) != 0;
  f.revision = std::to_integer<uint8_t>(p[17]);
  if (f.revision != 1 && f.revision != 2) return fail(Error::bad_revision);
  f.enhanced = f.revision == 2 && (flags & kEnhanced) != 0;
  f.extension_accepted = kind == Kind::reply && (flags & kExtensionAccepted) != 0;
  f.extension_requested = (flags & kExtensionRequested) != 0;
  f.host_offered = f.enhanced && f.extension_accepted && (flags & kHostOffered) != 0;
  f.host_requested = kind == Kind::request && (flags & kHostRequested) != 0;
  f.rd_offered = f.enhanced && f.extension_accepted && (flags & kRdOffered) != 0;
  f.rd_requested = kind == Kind::request && f.extension_requested && (flags & kRdRequested) != 0;
  f.established_later =
      kind == Kind::request && f.extension_requested && (flags & kEstablishedLater) != 0;
  f.private_data_length = load_be<uint16_t>(p + 18);
  if (f.private_data_length > kMaxPrivateData) return fail(Error::private_data_too_long);
  return f;
}

void MpaStart::encode(std::byte* p) const {
  std::memcpy(p, kind == Kind::request ? kRequestKey : kReplyKey, kKeySize);
  p[16] = static_cast<std::byte>(
      (markers ? kMarkers : 0) | (crc ? kCrc : 0) | (rejected ? kRejected : 0) |
      (enhanced ? kEnhanced : 0) | (host_offered ? kHostOffered : 0) |
      (host_requested ? kHostRequested : 0) | (rd_offered ? kRdOffered : 0) |
      (rd_requested ? kRdRequested : 0) | (established_later ? kEstablishedLater : 0) |
      (extension_accepted ? kExtensionAccepted : 0) |
      (extension_requested ? kExtensionRequested : 0));
  p[17] = static_cast<std::byte>(revision);
  store_be(p + 18, private_data_length);
}

std::string MpaStart::to_string() const {
  char text[128];
  std::snprintf(text, sizeof text, "MPA %s rev %u%s%s%s%s%s%s%s%s%s%s%s PD_Length %u",
                kind == Kind::request ? "Request" : "Reply", revision, markers ? " M" : "",
                crc ? " C" : "", rejected ? " R" : "", enhanced ? " S" : "",
                host_offered ? " HO" : "", host_requested ? " HR" : "", rd_offered ? " UO" : "",
                rd_requested ? " UR" : "", established_later ? " EL" : "",
                extension_accepted ? " XA" : "", extension_requested ? " XR" : "",
                private_data_length);
  return text;
}

const char* to_string(MpaStart::Error e) {
  switch (e) {
    case MpaStart::Error::bad_key:
      return "not an MPA start-up frame";
    case MpaStart::Error::bad_revision:
      return "MPA revision is neither 1 nor 2";
    case MpaStart::Error::private_data_too_long:
      return "more than 512 bytes of private data";
  }
  return "?";
}

MpaEnhanced MpaEnhanced::parse(const std::byte* p) {
  const auto first = load_be<uint16_t>(p);
  const auto second = load_be<uint16_t>(p + 2);
  return {.peer_to_peer = (first & 0x8000) != 0,
          .rtr_fpdu = (first & 0x4000) != 0,
          .rtr_write = (second & 0x8000) != 0,
          .rtr_read = (second & 0x4000) != 0,
          .ird = static_cast<uint16_t>(first & 0x3fff),
          .ord = static_cast<uint16_t>(second & 0x3fff)};
}

void MpaEnhanced::encode(std::byte* p) const {
  store_be<uint16_t>(p, static_cast<uint16_t>((peer_to_peer ? 0x8000 : 0) |
                                              (rtr_fpdu ? 0x4000 : 0) | (ird & 0x3fff)));
  store_be<uint16_t>(p + 2, static_cast<uint16_t>((rtr_write ? 0x8000 : 0) |
                                                  (rtr_read ? 0x4000 : 0) | (ord & 0x3fff)));
}

std::string MpaEnhanced::to_string() const {
  char text[96];
  std::snprintf(text, sizeof text, "%s%s%s%sIRD %u ORD %u", peer_to_peer ? "A " : "",
                rtr_fpdu ? "B " : "", rtr_write ? "C " : "", rtr_read ? "D " : "", ird, ord);
  return text;
}

}  // namespace weft::wire
