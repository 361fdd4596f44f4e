#include "wire/wfrc.h"

#include <cstdio>

namespace weft::wire {
namespace {
constexpr char kMagic[] = "WFRC";
constexpr uint32_t kQpnMask = 0xffffff;
}  // namespace

std::optional<Wfrc> Wfrc::parse(Bytes private_data) {
  if (private_data.size() < kSize || std::memcmp(private_data.data(), kMagic, 4) != 0) return {};
  const std::byte* p = private_data.data();
  Wfrc w;
  w.version = std::to_integer<uint8_t>(p[4]);
  w.fallback = (std::to_integer<uint8_t>(p[5]) & 1) != 0;
  w.code = static_cast<Code>(load_be<uint16_t>(p + 6));
  w.source_qpn = Qpn{load_be<uint32_t>(p + 8) & kQpnMask};
  w.destination_qpn = Qpn{load_be<uint32_t>(p + 12) & kQpnMask};
  w.sq_psn = load_be<uint32_t>(p + 16);
  w.rq_psn = load_be<uint32_t>(p + 20);
  w.nonce = load_be<uint64_t>(p + 24);
  std::memcpy(w.source_gid.raw.data(), p + 32, 16);
  std::memcpy(w.destination_gid.raw.data(), p + 48, 16);
  return w;
}

void Wfrc::encode(std::byte* p) const {
  std::memcpy(p, kMagic, 4);
  p[4] = static_cast<std::byte>(version);
  p[5] = static_cast<std::byte>(fallback ? 1 : 0);
  store_be(p + 6, static_cast<uint16_t>(code));
  store_be(p + 8, source_qpn.value());
  store_be(p + 12, destination_qpn.value());
  store_be(p + 16, sq_psn);
  store_be(p + 20, rq_psn);
  store_be(p + 24, nonce);
  std::memcpy(p + 32, source_gid.raw.data(), 16);
  std::memcpy(p + 48, destination_gid.raw.data(), 16);
}

const char* to_string(Wfrc::Code code) {
  switch (code) {
    case Wfrc::Code::ok:
      return "ok";
    case Wfrc::Code::not_ready:
      return "not ready";
    case Wfrc::Code::no_such_qp:
      return "no such queue pair";
    case Wfrc::Code::not_your_peer:
      return "connected to another peer";
    case Wfrc::Code::role_conflict:
      return "another connection won";
    case Wfrc::Code::bad_parameters:
      return "bad parameters";
    case Wfrc::Code::qp_in_error:
      return "queue pair in error";
  }
  return "unknown code";
}

std::string Wfrc::to_string() const {
  char text[256];
  std::snprintf(text, sizeof text, "WFRC %s: QPN 0x%06x at %s to QPN 0x%06x at %s%s",
                wire::to_string(code), source_qpn.value(), source_gid.to_string().c_str(),
                destination_qpn.value(), destination_gid.to_string().c_str(),
                fallback ? ", fallback" : "");
  return text;
}

}  // namespace weft::wire
