// CTL messages in words.

#include <cstdio>

#include "wire/wdp_ctl.h"

namespace weft::wire {

const char* to_string(CtlType type) {
  switch (type) {
    case CtlType::req:
      return "REQ";
    case CtlType::rep:
      return "REP";
    case CtlType::rtu:
      return "RTU";
    case CtlType::rej:
      return "REJ";
    case CtlType::cookie:
      return "COOKIE";
    case CtlType::wait:
      return "WAIT";
    case CtlType::dreq:
      return "DREQ";
    case CtlType::drep:
      return "DREP";
    case CtlType::ka:
      return "KA";
    case CtlType::kaa:
      return "KAA";
    case CtlType::probe:
      return "PROBE";
    case CtlType::probea:
      return "PROBEA";
    case CtlType::err:
      return "ERR";
  }
  return "unknown type";
}

const char* to_string(CtlService service) {
  switch (service) {
    case CtlService::uc:
      return "UC";
    case CtlService::rc_flow:
      return "RC flow";
    case CtlService::rd_channel:
      return "RD channel";
    case CtlService::ud_resolution:
      return "UD resolution";
  }
  return "unknown service";
}

const char* to_string(RejReason reason) {
  switch (reason) {
    case RejReason::no_listener:
      return "no listener";
    case RejReason::application:
      return "refused by the application";
    case RejReason::version:
      return "another version";
    case RejReason::service_mismatch:
      return "another service";
    case RejReason::no_resources:
      return "no resources";
    case RejReason::bad_parameters:
      return "bad parameters";
    case RejReason::critical_tlv:
      return "unknown critical TLV";
    case RejReason::not_ready:
      return "not ready";
    case RejReason::role_conflict:
      return "role conflict";
    case RejReason::qpn_unknown:
      return "no such queue pair";
  }
  return "unknown reason";
}

const char* counter_name(RejReason reason) {
  static constexpr const char* kNames[] = {
      "no_listener",    "application",  "version",   "service_mismatch", "no_resources",
      "bad_parameters", "critical_tlv", "not_ready", "role_conflict",    "qpn_unknown"};
  static_assert(std::size(kNames) == kRejReasons);
  const size_t i = static_cast<size_t>(reason) - 1;
  return i < kRejReasons ? kNames[i] : "?";
}

namespace {

// What the handshake's messages say besides who talks to whom.
std::string handshake_text(const WdpCtl& c) {
  char text[256];
  std::snprintf(
      text, sizeof text, " %s%s IRD %u ORD %u max %u first PSN %u features 0x%02x cookie 0x%016llx",
      to_string(c.service), c.ib_style ? " IB-style" : "", c.ird, c.ord, c.max_payload,
      c.first_psn.value(), c.features.bits(), static_cast<unsigned long long>(c.cookie.value()));
  return text;
}

std::string own_text(const WdpCtl& c) {
  char text[96] = "";
  switch (c.type) {
    case CtlType::req:
    case CtlType::rep:
    case CtlType::cookie:
      return handshake_text(c);
    case CtlType::rej:
      std::snprintf(text, sizeof text, ": %s (%u)", to_string(static_cast<RejReason>(c.reason)),
                    c.reason);
      break;
    case CtlType::wait:
      std::snprintf(text, sizeof text, " %u ms", c.reason);
      break;
    case CtlType::dreq:
      std::snprintf(text, sizeof text, " reason %u, highest PSN %u", c.reason,
                    c.highest_psn.value());
      break;
    case CtlType::ka:
      std::snprintf(text, sizeof text, " highest PSN %u", c.highest_psn.value());
      break;
    case CtlType::kaa:
      std::snprintf(text, sizeof text, " highest PSN %u, %u received, %u duplicates",
                    c.highest_psn.value(), c.received, c.duplicates);
      break;
    case CtlType::probea:
      std::snprintf(text, sizeof text, " of %u bytes", c.max_payload);
      break;
    case CtlType::err:
      return ": " + c.error().to_string();
    default:
      break;
  }
  return text;
}

}  // namespace

std::string WdpCtl::to_string() const {
  char head[192];
  std::snprintf(head, sizeof head,
                "%s attempt %u: from %u to %u token 0x%08x own 0x%08x QPN 0x%06x to 0x%06x "
                "XID 0x%08x",
                wire::to_string(type), attempt, sidx, didx, token.value(), source_token.value(),
                source.value(), destination.value(), xid.value());
  std::string text = head + own_text(*this);
  char tail[96];
  std::snprintf(tail, sizeof tail, ", %zu bytes private data, %zu bytes TLVs, %zu bytes in all",
                private_data.size(), tlvs.size(), size());
  return text + tail;
}

}  // namespace weft::wire
