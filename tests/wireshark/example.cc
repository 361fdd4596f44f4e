#include "tests/wireshark/example.h"

#include <algorithm>

#include "wire/wdp_bundle.h"
#include "wire/wdp_crc.h"
#include "wire/wdp_ended.h"

namespace weft::test {
namespace {

using namespace wire;

std::string hex(Bytes bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte b : bytes) {
    text += kDigits[std::to_integer<unsigned>(b) >> 4];
    text += kDigits[std::to_integer<unsigned>(b) & 15];
  }
  return text;
}

void put_common(Example& e, WdpClass c, WdpFlags flags, uint8_t didx, uint8_t sidx,
                uint32_t token) {
  e.put("magic", 0xd);
  e.put("version", 1);
  e.put("class", static_cast<uint64_t>(c));
  e.put("flags", flags.bits());
  e.put("flags.crc", uint64_t{flags.crc});
  e.put("flags.imm", uint64_t{flags.immediate});
  e.put("flags.ackreq", uint64_t{flags.ack_requested});
  e.put("flags.retx", uint64_t{flags.retransmission});
  e.put("didx", didx);
  e.put("sidx", sidx);
  e.put(c == WdpClass::ud ? "q_key" : "token", token);
}

// To be called when the bytes are final.
void put_crc(Example& e, bool present) {
  if (present) seal_wdp(e.bytes);
  e.put("crc", load_wdp_crc(e.bytes.data()));
  e.put("crc.status", present ? "Good" : "Absent");
}

void put_payload(Example& e, size_t header) {
  e.put("payload_length", e.bytes.size() - header);
  e.put("payload", Bytes{e.bytes}.subspan(header));
}

void put_opcode(Example& e, Opcode op) {
  e.put("rdmap", 0x40 | static_cast<unsigned>(op));
  e.put("rdmap.version", 1);
  e.put("rdmap.opcode", static_cast<uint64_t>(op));
}

void put_data_header(Example& e, const WdpData& d) {
  const bool rd = d.wdp_class == WdpClass::rd;
  put_common(e, d.wdp_class, d.flags, d.didx, d.sidx, d.token.value());
  e.put(rd ? "csn" : "psn", d.psn.value());
  e.put("msn", d.msn.value());
  e.put("mo", d.mo.value());
  e.put("mlen", d.mlen);
  const bool tagged = is_tagged(d.opcode);
  e.put("ddp", (tagged ? 0x80U : 0) | (d.last ? 0x40U : 0) | (d.write_se ? 0x20U : 0) |
                   (d.flow_open ? 0x10U : 0) | (d.wants_response ? 0x08U : 0) | 1);
  e.put("ddp.tagged", uint64_t{tagged});
  e.put("ddp.last", uint64_t{d.last});
  e.put("ddp.se", uint64_t{d.write_se});
  if (rd) e.put("ddp.flow_open", uint64_t{d.flow_open});
  if (rd) e.put("ddp.wants_response", uint64_t{d.wants_response});
  e.put("ddp.version", 1);
  put_opcode(e, d.opcode);
  e.put("stride", d.stride);
  e.put("stag", d.stag.value());
  const bool names_read = d.opcode == Opcode::read_request || d.opcode == Opcode::read_response ||
                          d.opcode == Opcode::atomic_request || d.opcode == Opcode::atomic_response;
  if (names_read) {
    e.put("rid", d.imm_or_read);
  } else if (d.flags.immediate) {
    e.put("imm", d.imm_or_read);
  }
  e.put("to", d.to.value());
  if (rd && is_send(d.opcode)) e.put("q_key", d.q_key().value());
}

}  // namespace

void Example::put(const std::string& field, Bytes data) {
  if (!data.empty()) fields[field].push_back(hex(data));
}

void put_quoted(Example& e, const WdpData& header) {
  put_data_header(e, header);
}

Example example(const std::string& name, const WdpCtl& c) {
  Example e{.name = name, .bytes = std::vector<std::byte>(c.size())};
  c.encode(e.bytes.data());
  put_common(e, WdpClass::ctl, {.crc = true}, c.didx, c.sidx, c.token.value());
  put_crc(e, true);
  e.put("ctl.type", static_cast<uint64_t>(c.type));
  e.put("ctl.attempt", c.attempt);
  e.put("length", e.bytes.size());
  e.put("ctl.source_token", c.source_token.value());
  e.put("source_qpn", c.source.value());
  e.put("dest_qpn", c.destination.value());
  e.put("ctl.xid", c.xid.value());
  e.put("ctl.service", static_cast<uint64_t>(c.service));
  e.put("ctl.modes", uint64_t{c.ib_style});
  e.put("ctl.modes.ib_style", uint64_t{c.ib_style});
  e.put("ctl.ird", c.ird);
  e.put("ctl.ord", c.ord);
  e.put("ctl.max_payload", c.max_payload);
  const bool tells_key = c.type == CtlType::rep && c.service == CtlService::ud_resolution;
  e.put(tells_key ? "q_key" : "ctl.first_psn", c.first_psn.value());
  e.put("ctl.features", c.features.bits());
  e.put("ctl.features.data_crc", uint64_t{c.features.data_crc});
  e.put("ctl.features.immediate", uint64_t{c.features.immediate});
  e.put("ctl.features.uc_read", uint64_t{c.features.uc_read});
  e.put("ctl.features.atomics", uint64_t{c.features.atomics});
  e.put("ctl.features.ka_stats", uint64_t{c.features.ka_stats});
  e.put("ctl.features.responses", uint64_t{c.features.responses});
  e.put("ctl.features.starts", uint64_t{c.features.starts});
  e.put("ctl.cookie", c.cookie.value());
  e.put("ctl.pdlen", c.private_data.size());
  e.put("ctl.tlvlen", c.tlvs.size());
  switch (c.type) {
    case CtlType::rej:
      e.put("ctl.rej", c.reason);
      break;
    case CtlType::wait:
      e.put("ctl.wait", c.reason);
      break;
    case CtlType::err:
      e.put("ctl.error", c.reason);
      e.put("ctl.error.layer", static_cast<uint64_t>(c.error().layer));
      e.put("ctl.error.etype", c.error().etype);
      e.put("ctl.error.code", c.error().code);
      e.put("ctl.offending", c.offending);
      break;
    default:
      e.put("ctl.reason", c.reason);
  }
  if (c.type == CtlType::dreq || c.type == CtlType::ka || c.type == CtlType::kaa) {
    e.put("ctl.highest_psn", c.highest_psn.value());
  }
  if (c.type == CtlType::kaa) {
    e.put("ctl.received", c.received);
    e.put("ctl.duplicates", c.duplicates);
  }
  e.put("ctl.private_data", c.private_data);
  for (Bytes left = c.tlvs; !left.empty();) {
    const auto tlv = WdpTlv::take(left);
    e.put("tlv.critical", uint64_t{tlv->critical});
    e.put("tlv.type", tlv->type);
    e.put("tlv.length", tlv->value.size());
    if (const auto ended = WdpEnded::find(c.tlvs); ended && tlv->type == WdpEnded::kType) {
      e.put("tlv.ended.token", ended->token.value());
      e.put("tlv.ended.csn", ended->taken.value());
    } else {
      e.put("tlv.value", tlv->value);
    }
  }
  const size_t parts =
      WdpCtl::kSize + WdpCtl::own_size(c.type) + wdp_padded(c.private_data.size()) + c.tlvs.size();
  e.put("ctl.padding", Bytes{e.bytes}.subspan(parts));
  return e;
}

Example example(const std::string& name, const WdpData& d, Bytes payload) {
  Example e{.name = name, .bytes = std::vector<std::byte>(WdpData::kSize + payload.size())};
  d.encode(e.bytes.data());
  std::copy(payload.begin(), payload.end(), e.bytes.begin() + WdpData::kSize);
  put_data_header(e, d);
  put_crc(e, d.flags.crc);
  const std::byte* p = payload.data();
  if (d.opcode == Opcode::read_request) {
    const auto range = WdpReadRange::parse(p);
    e.put("read.length", range.length);
    e.put("read.attempt", range.attempt);
    return e;
  }
  if (d.is_end()) {
    put_payload(e, WdpData::kSize);
    return e;
  }
  e.put("segment", d.segment_index() + 1);
  e.put("segments", d.segment_count());
  if (d.opcode == Opcode::atomic_request) {
    const auto a = AtomicRequest::parse(p);
    e.put("atomic.opcode", static_cast<uint64_t>(a.code));
    e.put("atomic.request_id", a.request_id);
    e.put("atomic.stag", a.stag.value());
    e.put("atomic.to", a.to.value());
    e.put("atomic.add_swap", a.add_swap);
    e.put("atomic.add_swap_mask", a.add_swap_mask);
    e.put("atomic.compare", a.compare);
    e.put("atomic.compare_mask", a.compare_mask);
  } else if (d.opcode == Opcode::atomic_response) {
    e.put("atomic.request_id", load_be<uint32_t>(p));
    e.put("atomic.original", load_be<uint64_t>(p + 4));
  } else if (d.opcode == Opcode::terminate) {
    for (size_t at = 0; at < payload.size(); at += WdpResponse::kSize) {
      const auto r = WdpResponse::parse(p + at);
      e.put("resp.qidx", r.qidx);
      e.put("resp.ridx", r.ridx);
      e.put("resp.code", static_cast<uint64_t>(r.code));
      e.put("resp.delay", r.delay);
      e.put("resp.msn", r.msn.value());
      e.put("resp.aux", r.aux);
    }
  }
  put_payload(e, WdpData::kSize);
  return e;
}

Example example(const std::string& name, const WdpUd& u, Bytes payload) {
  Example e{.name = name, .bytes = std::vector<std::byte>(WdpUd::kSize + payload.size())};
  u.encode(e.bytes.data());
  std::copy(payload.begin(), payload.end(), e.bytes.begin() + WdpUd::kSize);
  put_common(e, WdpClass::ud, {.crc = u.flags.crc, .immediate = u.flags.immediate},
             index_of(u.destination), index_of(u.source), u.q_key.value());
  put_crc(e, u.flags.crc);
  e.put("source_qpn", u.source.value());
  e.put("dest_qpn", u.destination.value());
  e.put("msn", u.msn.value());
  e.put("ddp", 0x41);
  e.put("ddp.tagged", 0);
  e.put("ddp.last", 1);
  e.put("ddp.version", 1);
  put_opcode(e, u.solicited ? Opcode::send_se : Opcode::send);
  e.put("length", u.length);
  if (u.flags.immediate) e.put("imm", u.imm);
  put_payload(e, WdpUd::kSize);
  return e;
}

Example example(const std::string& name, const WdpAck& a) {
  Example e{.name = name, .bytes = std::vector<std::byte>(a.size())};
  a.encode(e.bytes.data());
  put_common(e, WdpClass::rd_ack, {.crc = true}, 0, 0, a.token.value());
  put_crc(e, true);
  e.put("ack.cum", a.cum.value());
  e.put("ack.ts", a.timestamp);
  e.put("ack.trig", a.trigger.value());
  e.put("ack.delay", a.delay);
  e.put("ack.words", a.words);
  e.put("ack.rwnd", a.window);
  e.put("ack.ce", a.ce);
  for (size_t i = 0; i < a.words; ++i) e.put("ack.sack", a.sack[i]);
  for (uint32_t i = 0; i < 32U * a.words; ++i) {
    const Csn csn{a.cum.value() + 1 + i};
    if (a.holds(csn)) e.put("ack.held", csn.value());
  }
  return e;
}

Example example(const std::string& name, Csn csn, const std::vector<Example>& parts) {
  const SessionToken token{0x0badcafe};
  const WdpFlags flags{.crc = true, .ack_requested = true};
  Example e{.name = name, .bytes = std::vector<std::byte>(WdpBundle::kSize)};
  WdpCommon{
      .wdp_class = WdpBundle::kClass, .flags = flags, .token = token, .class_word = csn.value()}
      .encode(e.bytes.data());
  for (const Example& part : parts) {
    const size_t at = e.bytes.size();
    e.bytes.resize(at + WdpBundle::kFrame + part.bytes.size());
    std::byte* const to = WdpBundle::frame(e.bytes.data() + at, part.bytes.size());
    std::copy(part.bytes.begin(), part.bytes.end(), to);
  }
  put_common(e, WdpBundle::kClass, flags, 0, 0, token.value());
  put_crc(e, true);
  e.put("csn", csn.value());
  for (const Example& part : parts) {
    e.put("length", part.bytes.size());
    for (const auto& [field, values] : part.fields) {
      auto& all = e.fields[field];
      all.insert(all.end(), values.begin(), values.end());
    }
  }
  return e;
}

}  // namespace weft::test
