#include "wdp/request_gate.h"

#include <cstring>

#include "wire/wdp_data.h"

namespace weft::wdp {

using wire::CtlType;
using wire::RejReason;
using wire::WdpCtl;

namespace {

WdpCtl answer_to(const WdpCtl& req, CtlType type) {
  return {.type = type,
          .didx = req.sidx,
          .sidx = req.didx,
          .token = req.source_token,
          .source = req.destination,
          .destination = req.source,
          .xid = req.xid,
          .service = req.service};
}

wire::CookieSubject subject_of(const WdpCtl& req, const Endpoint& from) {
  return {from.address, from.port, req.source_token, req.xid};
}

// What nobody behind the gate could accept.
std::optional<RejReason> fault_of(const WdpCtl& req) {
  // spec/wdp 3.3: unknown critical TLV -> REJ 7. None is known.
  if (wire::has_critical_tlv(req.tlvs)) return RejReason::critical_tlv;
  // A queue pair that is called makes a session, and rdma_cm's question is none.
  const bool asks = req.service == wire::CtlService::ud_resolution;
  if (asks && !req.ib_style) return {};
  const bool channel = req.service == wire::CtlService::rd_channel && req.ib_style;
  if (req.service != wire::CtlService::uc && !channel) return RejReason::service_mismatch;
  if (wire::wdp_stride(req.max_payload) == 0) return RejReason::bad_parameters;
  return {};
}

}  // namespace

RequestGate::RequestGate(Random& random, Time now)
    : random_(random),
      secret_(fresh_secret()),
      last_secret_(fresh_secret()),
      secret_since_(now),
      versions_{.since = now},
      disowned_{.since = now} {}

bool RequestGate::Budget::allows(uint32_t most, Time now) {
  if (now - since >= 1s) {
    since = now;
    said = 0;
  }
  if (said == most) return false;
  ++said;
  return true;
}

wire::CookieSecret RequestGate::fresh_secret() {
  wire::CookieSecret s;
  const uint64_t words[2] = {random_.next(), random_.next()};
  static_assert(sizeof words == sizeof s);
  std::memcpy(s.data(), words, sizeof words);
  return s;
}

// Part IV: "SipHash(secret rotated 30 s ...), two secrets valid".
void RequestGate::rotate(Time now) {
  if (now - secret_since_ < kSecretLives) return;
  // Nobody asked for so long that both are old.
  const bool both = now - secret_since_ >= 2 * kSecretLives;
  last_secret_ = both ? fresh_secret() : secret_;
  secret_ = fresh_secret();
  secret_since_ = now;
}

WdpCtl RequestGate::rejection(const WdpCtl& req, RejReason reason) {
  WdpCtl c = answer_to(req, CtlType::rej);
  c.reason = static_cast<uint32_t>(reason);
  return c;
}

bool RequestGate::validated(const WdpCtl& req, const Endpoint& from, Time now) {
  rotate(now);
  const wire::CookieSubject subject = subject_of(req, from);
  return req.cookie != HandshakeCookie{} &&
         (req.cookie == wire::make_cookie(secret_, subject) ||
          req.cookie == wire::make_cookie(last_secret_, subject));
}

RequestGate::Admission RequestGate::judge(const WdpCtl& req, const Endpoint& from, size_t half_open,
                                          Time now) {
  if (const auto wrong = fault_of(req)) return {.answer = rejection(req, *wrong)};
  const bool sure = validated(req, from, now);
  if (sure || half_open < kMostHalfOpen) return {.admitted = true, .validated = sure};
  Admission a{.answer = answer_to(req, CtlType::cookie)};
  a.answer.cookie = wire::make_cookie(secret_, subject_of(req, from));
  return a;
}

std::optional<WdpCtl> RequestGate::other_version(Bytes datagram, Time now) {
  const auto xid = wire::other_version_request(datagram);
  if (!xid) return {};
  if (!versions_.allows(kVersionAnswersPerSecond, now)) return {};
  return WdpCtl{
      .type = CtlType::rej, .xid = *xid, .reason = static_cast<uint32_t>(RejReason::version)};
}

std::optional<WdpCtl> RequestGate::disowned(const wire::WdpCommon& common, Bytes datagram,
                                            Time now) {
  if (common.wdp_class != wire::WdpClass::ctl) return {};
  const auto c = WdpCtl::parse(common, datagram);
  if (!c.ok() || c->service != wire::CtlService::rd_channel) return {};
  if (c->type != CtlType::ka && c->type != CtlType::dreq) return {};
  if (!disowned_.allows(kDisownedPerSecond, now)) return {};
  WdpCtl drep = answer_to(*c, CtlType::drep);
  drep.source_token = c->token;
  return drep;
}

}  // namespace weft::wdp
