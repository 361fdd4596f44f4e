#include <array>

#include "tests/support/hex.h"
#include "tests/wireshark/example.h"
#include "wire/wdp_ended.h"

namespace weft::test {
namespace {

using namespace wire;

// Different in all fields, so that one shown in the place of another is noticed.
WdpCtl ctl(CtlType type, CtlService service = CtlService::uc) {
  WdpCtl c;
  c.type = type;
  c.attempt = 3;
  c.didx = type == CtlType::req ? 0 : 0x21;
  c.sidx = 0x43;
  c.token = SessionToken{type == CtlType::req ? 0 : 0xa1b2c3d4};
  c.source_token = SessionToken{0x11223344};
  c.source = Qpn{0xc35043};
  c.destination = Qpn{type == CtlType::req ? 0 : 0x9c4021U};
  c.xid = Xid{0x5eed0001};
  c.service = service;
  c.ird = 4;
  c.ord = 16;
  c.max_payload = 1472;
  c.first_psn = Psn{0xfffffff0};
  c.features = {
      .data_crc = true, .uc_read = true, .ka_stats = true, .responses = true, .starts = true};
  return c;
}

Buffer tlvs() {
  const Buffer five = pattern(5, 4);
  const WdpTlv critical{.type = 0x1234, .critical = true, .value = five};
  const WdpTlv empty{.type = 7};
  const WdpTlv words{.type = 8, .value = Bytes{five}.first(4)};
  Buffer all(critical.size() + empty.size() + words.size());
  size_t at = critical.encode(all.data());
  at += empty.encode(all.data() + at);
  words.encode(all.data() + at);
  return all;
}

WdpData data(WdpClass c, Opcode op, uint32_t mlen, uint16_t stride, uint32_t mo = 0) {
  WdpData d;
  d.wdp_class = c;
  d.didx = 5;
  d.sidx = 9;
  d.token = SessionToken{0xa1b2c3d4};
  d.psn = Psn{0x1000 + mo};
  d.msn = Msn{0x2a};
  d.mo = MessageOffset{mo};
  d.mlen = mlen;
  d.opcode = op;
  d.stride = stride;
  d.last = op == Opcode::read_request || mo + stride >= mlen;
  if (is_tagged(op) || invalidates(op) || op == Opcode::read_request) d.stag = Stag{0x55667701};
  d.to = TaggedOffset{0x7f00'0000'1000U + mo};
  return d;
}
Example segment(const std::string& name, const WdpData& d) {
  const Buffer payload = pattern(d.payload_size(), d.mo.value() + 1);
  return example(name, d, payload);
}

void add_ctl(std::vector<Example>& all) {
  const Buffer words = pattern(30, 3);
  const Buffer more = tlvs();
  WdpCtl c = ctl(CtlType::req);
  c.private_data = words;
  c.tlvs = more;
  all.push_back(example("REQ with private data and TLVs", c));
  c = ctl(CtlType::req, CtlService::rd_channel);
  c.destination = Qpn{0x9c4021};
  c.ib_style = true;
  c.cookie = HandshakeCookie{0x0102030405060708};
  c.features = {.immediate = true, .atomics = true};
  all.push_back(example("REQ, IB-style, with a cookie", c));
  const auto ended = WdpEnded{.token = SessionToken{0x0badcafe}, .taken = Psn{0x7654321}}.encode();
  c.tlvs = ended;
  all.push_back(example("REQ that names an ended channel", c));
  c = ctl(CtlType::rep);
  c.private_data = Bytes{words}.first(4);
  all.push_back(example("REP", c));
  all.push_back(example("REP of UD resolution", ctl(CtlType::rep, CtlService::ud_resolution)));
  all.push_back(example("RTU", ctl(CtlType::rtu)));
  for (uint32_t reason = 1; reason <= 11; ++reason) {
    c = ctl(CtlType::rej, CtlService::rc_flow);
    c.reason = reason;
    c.private_data = Bytes{words}.first(reason);
    all.push_back(example("REJ " + std::to_string(reason), c));
  }
  c = ctl(CtlType::cookie);
  c.cookie = HandshakeCookie{0xfedcba9876543210};
  all.push_back(example("COOKIE", c));
  c = ctl(CtlType::wait);
  c.reason = 30'000;
  all.push_back(example("WAIT", c));
  c = ctl(CtlType::dreq);
  c.reason = 77;
  c.highest_psn = Psn{0x1234567};
  all.push_back(example("DREQ", c));
  all.push_back(example("DREP", ctl(CtlType::drep)));
  c = ctl(CtlType::ka);
  c.highest_psn = Psn{0x89abcdef};
  all.push_back(example("KA", c));
  c = ctl(CtlType::kaa);
  c.highest_psn = Psn{1};
  c.received = 2'000'000;
  c.duplicates = 3;
  all.push_back(example("KAA", c));
  c = ctl(CtlType::probe);
  c.length = 1472;
  all.push_back(example("PROBE", c));
  all.push_back(example("PROBEA", ctl(CtlType::probea)));
  c = ctl(CtlType::err);
  const WdpData wrong = data(WdpClass::uc, Opcode::write, 1000, 1424);
  Buffer header(WdpCtl::kOffendingSize);
  wrong.encode(header.data());
  c.offending = header;
  c.reason = 0x00010102;  // DDP, tagged buffer, STag not on this stream
  Example err = example("ERR", c);
  put_quoted(err, wrong);
  all.push_back(err);
}

void add_data(std::vector<Example>& all, WdpClass c) {
  const std::string name = c == WdpClass::uc ? "UC " : "RD ";
  WdpData d = data(c, Opcode::write, 3000, 1424);
  all.push_back(segment(name + "Write, first", d));
  d = data(c, Opcode::write, 3000, 1424, 2848);
  d.flags.crc = true;
  all.push_back(segment(name + "Write, last, CRC", d));
  d = data(c, Opcode::write, 19, 16, 16);
  d.flags = {.crc = true, .immediate = true};
  d.write_se = true;
  d.imm_or_read = 0xcafef00d;
  all.push_back(segment(name + "Write with immediate, solicited", d));
  all.push_back(segment(name + "Write of nothing", data(c, Opcode::write, 0, 1424)));
  for (const Opcode op : {Opcode::send, Opcode::send_inv, Opcode::send_se, Opcode::send_se_inv}) {
    all.push_back(segment(name + to_string(op), data(c, op, 100, 8912)));
  }
  d = data(c, Opcode::send, 5000, 1424, 1424);
  d.flags.immediate = true;
  d.imm_or_read = 0x01020304;
  all.push_back(segment(name + "Send with immediate, in the middle", d));
  d = data(c, Opcode::read_request, 100'000, 0);
  d.mo = MessageOffset{7777};
  d.imm_or_read = 4711;
  std::array<std::byte, WdpReadRange::kSize> range;
  WdpReadRange{.length = 5000, .attempt = 2}.encode(range.data());
  all.push_back(example(name + "Read Request", d, range));
  d = data(c, Opcode::read_response, 100'000, 65'456, 65'456);
  d.imm_or_read = 4711;
  d.flags.crc = true;
  all.push_back(segment(name + "Read Response, large", d));
}

void add_rd(std::vector<Example>& all) {
  WdpData d = data(WdpClass::rd, Opcode::send, 64, 1424);
  d.flags = {.ack_requested = true, .retransmission = true};
  d.flow_open = true;
  d.to = TaggedOffset{0x8001'0002'0000'0000};
  all.push_back(segment("RD Send again, flow open", d));
  for (const auto code : {AtomicRequest::Code::fetch_add, AtomicRequest::Code::compare_swap}) {
    d = data(WdpClass::rd, Opcode::atomic_request, AtomicRequest::kSize, 1424);
    d.imm_or_read = 0x77;
    std::array<std::byte, AtomicRequest::kSize> request;
    AtomicRequest{.code = code,
                  .request_id = 0x78,
                  .stag = Stag{0x99aabb01},
                  .to = TaggedOffset{0x2000},
                  .add_swap = 0x1111'2222'3333'4444,
                  .add_swap_mask = 0x5555,
                  .compare = 0x6666,
                  .compare_mask = UINT64_MAX}
        .encode(request.data());
    all.push_back(example("RD Atomic Request", d, request));
  }
  d = data(WdpClass::rd, Opcode::atomic_response, AtomicResponse::kSize, 1424);
  d.imm_or_read = 0x77;
  all.push_back(segment("RD Atomic Response", d));
  d = data(WdpClass::rd, Opcode::terminate, 0, 1424);
  d.mo = MessageOffset{2848};
  d.wants_response = true;
  all.push_back(example("RD END", d, {}));
  d.mo = {};
  d.wants_response = false;
  d.didx = d.sidx = 0;
  Buffer records;
  for (uint8_t code = 0; code < 10; ++code) {
    std::array<std::byte, WdpResponse::kSize> one;
    WdpResponse{.qidx = static_cast<uint8_t>(code + 1),
                .ridx = static_cast<uint8_t>(code + 101),
                .code = static_cast<WdpResponse::Code>(code),
                .delay = code,
                .msn = Msn{1000U + code},
                .aux = 0x10000U * code}
        .encode(one.data());
    records.insert(records.end(), one.begin(), one.end());
  }
  d.mlen = static_cast<uint32_t>(records.size());
  all.push_back(example("RD RESP", d, records));
  WdpAck a{.token = SessionToken{0x0badcafe},
           .cum = Csn{0xfffffffe},
           .timestamp = 0x1234,
           .trigger = Csn{0x1009},
           .delay = 3,
           .window = 4096,
           .ce = 17};
  all.push_back(example("RDACK, nothing held", a));
  for (const uint32_t csn : {0xffffffffU, 1U, 30U, 31U, 63U, 64U}) a.hold(Csn{csn});
  all.push_back(example("RDACK, some held, CSN wraps", a));
  const Example held = all.back();
  const Example response = all.at(all.size() - 3);
  d = data(WdpClass::rd, Opcode::send, 64, 1424);
  d.wants_response = true;
  all.push_back(example("bundle", Csn{0x1234}, {segment("", d), response, held}));
  all.push_back(example("bundle of one", Csn{0x1235}, {response}));
}

void add_ud(std::vector<Example>& all) {
  const Buffer payload = pattern(300, 5);
  WdpUd u{.q_key = QKey{0x11111111},
          .source = Qpn{0x9c4002},
          .destination = Qpn{0xc35007},
          .msn = Msn{9},
          .length = 300};
  all.push_back(example("UD Send", u, payload));
  u.flags = {.crc = true, .immediate = true};
  u.imm = 0xcafef00d;
  u.solicited = true;
  all.push_back(example("UD Send with immediate, solicited, CRC", u, payload));
  u.destination = kMulticastQpn;
  u.length = 0;
  all.push_back(example("UD multicast of nothing", u, {}));
}

}  // namespace

std::vector<Example> all_examples() {
  std::vector<Example> all;
  add_ctl(all);
  add_data(all, WdpClass::uc);
  add_data(all, WdpClass::rd);
  add_rd(all);
  add_ud(all);
  return all;
}

}  // namespace weft::test
