#include "fuzz/wdp/strangers.h"

namespace weft::fuzz {

using namespace std::chrono_literals;
using test::Buffer;
using test::WdpNode;
using wdp::Endpoint;
using wdp::Offer;
using wdp::UcConnection;
using wire::CtlService;
using wire::CtlType;
using wire::WdpCtl;

namespace {

const Endpoint kHere{Gid::from_ipv4(0x0a000001), 7471};
Endpoint stranger(size_t i) {
  return {Gid::from_ipv4(0x0a000002 + static_cast<uint32_t>(i % 4)), 40000};
}

}  // namespace

Strangers::Strangers(Start start) : node_(kHere, 7, now_) {
  begin(start);
  FUZZ_CHECK(reached(start));
}

// --- what strangers say

void Strangers::give(size_t who, Bytes datagram) {
  last_.assign(datagram.begin(), datagram.end());
  last_who_ = who % kCount;
  Account& a = accounts_[last_who_];
  a.came += datagram.size();
  // Its token, or a cookie, can only come from what was sent to it.
  const auto common = wire::WdpCommon::parse(datagram);
  if (common.ok() && a.tokens.contains(common->token)) a.proven = true;
  const auto c = WdpCtl::parse(datagram);
  if (c.ok() && a.cookie != HandshakeCookie{} && c->cookie == a.cookie) a.proven = true;
  const auto copy = exact(datagram, datagram.size());
  node_.hear(copy, stranger(who), now_);
  listen();
}

void Strangers::say(size_t who, const WdpCtl& c) {
  std::vector<std::byte> b(c.size());
  c.encode(b.data());
  give(who, b);
}

void Strangers::request(size_t who, const Shape& s) {
  Account& a = accounts_[who % kCount];
  WdpCtl c{.type = CtlType::req,
           .sidx = 9,
           .source_token = SessionToken{s.token},
           .source = make_qpn(40000, 9),
           .destination = (s.bits & 1) != 0 ? make_qpn(7471, 5) : Qpn{},
           .xid = Xid{s.xid},
           .service = s.service,
           .ib_style = (s.bits & 1) != 0,
           .ird = 4,
           .ord = 4,
           .max_payload = s.max_payload,
           .first_psn = Psn{100},
           .features = {.immediate = true, .uc_read = true},
           .private_data = Bytes{text_}.first(s.private_data)};
  if ((s.bits & 2) != 0) c.cookie = a.cookie;
  a.last_req = c;
  a.last_req.private_data = {};
  say(who, c);
}

WdpCtl Strangers::session_message(size_t who, CtlType type) {
  const Account& a = accounts_[who % kCount];
  return {.type = type,
          .didx = 5,
          .sidx = 9,
          .token = a.tokens.empty() ? a.our_token : *a.tokens.rbegin(),
          .source_token = SessionToken{5},
          .source = make_qpn(40000, 9),
          .destination = make_qpn(7471, 5),
          .xid = type <= CtlType::wait && a.xid != Xid{} ? a.xid : a.last_req.xid,
          .service = CtlService::uc,
          .ird = 2,
          .ord = 2,
          .max_payload = 1472};
}

void Strangers::say_session(CtlType type) {
  say(0, session_message(0, type));
}

// --- what is said to them

void Strangers::hear(const Endpoint& to, const Buffer& d) {
  for (size_t i = 0; i < kCount; ++i) {
    if (to != stranger(i)) continue;
    Account& a = accounts_[i];
    const auto common = wire::WdpCommon::parse(d);
    FUZZ_CHECK(common.ok());
    const auto c = WdpCtl::parse(d);
    FUZZ_CHECK(c.ok() || common->wdp_class == wire::WdpClass::uc);
    // We called: that is our own doing, and no answer.
    if (c.ok() && c->type == CtlType::req) {
      a.xid = c->xid;
      a.our_token = c->source_token;
      a.cookie_back = c->cookie;
      a.proven = true;
      return;
    }
    a.went += d.size();
    if (!c.ok()) return;
    if (c->type == CtlType::cookie) a.cookie = c->cookie;
    if (c->type == CtlType::rep) a.tokens.insert(c->source_token);
    FUZZ_CHECK(c->type != CtlType::wait || c->reason <= WdpCtl::kMaxWaitMs);
    return;
  }
  FUZZ_CHECK(false);  // nobody who ever said anything
}

void Strangers::listen() {
  for (const auto& d : node_.said(now_)) hear(d.to, d.bytes);
}

// --- the program

Offer Strangers::offer(size_t private_data) {
  return {
      .own_qpn = make_qpn(7471, 5),
      .first_psn = Psn{200},
      .ird = 4,
      .ord = 4,
      .features = {.immediate = true, .uc_read = true},
      .private_data = Buffer(text_.begin(), text_.begin() + static_cast<ptrdiff_t>(private_data))};
}

void Strangers::accept(size_t i, size_t private_data) {
  if (node_.requests.empty()) return;
  const auto& r = node_.requests[i % node_.requests.size()];
  auto& p = node_.add_peer();
  node_.port.accept(r.key, p.connection, offer(private_data), now_);
  listen();
}

void Strangers::call(size_t who, bool ib_style) {
  if (node_.callee.connection != nullptr && ib_style) return;
  auto& p = node_.add_peer();
  node_.port.connect(p.connection, offer(), {.to = stranger(who)},
                     ib_style ? make_qpn(40000, 9) : Qpn{}, ib_style, now_);
  if (ib_style) {
    node_.callee = {&p.connection, offer()};
    node_.callee_expects = make_qpn(40000, 9);
  }
  listen();
}

void Strangers::later(Duration d) {
  const Time end = now_ + d;
  for (int i = 0; i < 100 && now_ < end; ++i) {
    now_ = std::min(end, std::max(node_.deadline(), now_ + 1us));
    node_.tick(now_);
    listen();
  }
  now_ = end;
  node_.tick(now_);
  listen();
}

WdpNode::Peer* Strangers::peer(size_t i) {
  if (node_.peers.empty()) return nullptr;
  return &*std::next(node_.peers.begin(), static_cast<ptrdiff_t>(i % node_.peers.size()));
}

void Strangers::repeat(bool another, size_t who) {
  const auto again = last_;
  give(another ? who : last_who_, again);
}

void Strangers::reject(size_t i) {
  if (node_.requests.empty()) return;
  const auto& r = node_.requests[i % node_.requests.size()];
  node_.port.reject(r.key, wire::RejReason::application, text_);
  listen();
}

void Strangers::tell(size_t i) {
  if (node_.requests.empty()) return;
  const auto& r = node_.requests[i % node_.requests.size()];
  if (r.service == CtlService::ud_resolution) node_.port.tell(r.key, offer(512), now_);
  listen();
}

void Strangers::ask(size_t who) {
  node_.port.ask(offer(), {.to = stranger(who)}, now_);
  listen();
}

void Strangers::await_call() {
  if (node_.callee.connection != nullptr) return;
  node_.callee = {&node_.add_peer().connection, offer()};
  node_.callee_expects = make_qpn(40000, 9);
}

// One for each stranger, with a token that both are told of.
void Strangers::start_static(size_t who) {
  Account& a = accounts_[who % kCount];
  const SessionToken token{0x5a000000U + static_cast<uint32_t>(who % kCount)};
  if (a.tokens.contains(token)) return;
  a.tokens.insert(token);
  node_.port.start_static(node_.add_peer().connection,
                          {.path = {.to = stranger(who)},
                           .peer_token = SessionToken{9},
                           .own_token = token,
                           .own_qpn = make_qpn(7471, 5),
                           .peer_qpn = make_qpn(40000, 9),
                           .is_static = true},
                          {stranger(who).address, 0}, now_);
}

void Strangers::close(size_t i) {
  if (auto* p = peer(i)) p->connection.close(now_);
  listen();
}

void Strangers::remove(size_t i) {
  auto* p = peer(i);
  if (p == nullptr) return;
  p->connection.abort(0, now_);
  listen();
  node_.port.remove(p->connection, now_);
  if (node_.callee.connection == &p->connection) node_.callee = {};
  node_.peers.remove_if([p](const auto& x) { return &x == p; });
}

// --- states

void Strangers::begin(Start start) {
  switch (start) {
    case Start::idle:
      return;
    case Start::waiting:
      return request(0, {});
    case Start::rep_sent:
      request(0, {});
      return accept(0, 512);
    case Start::established:
      begin(Start::rep_sent);
      return say(0, session_message(0, CtlType::rtu));
    case Start::cookies_only:
      for (uint32_t i = 0; i < 130; ++i) request(1, {.token = 1000 + i, .xid = i});
      return request(0, {});
    case Start::validated:
      begin(Start::cookies_only);
      return request(0, {.bits = 2});
    case Start::calling:
      return call(0, false);
    case Start::crossing:
      return call(0, true);
    case Start::asking:
      return ask(0);
    case Start::told:
      request(0, {.service = CtlService::ud_resolution});
      return tell(0);
    case Start::closing:
      begin(Start::established);
      return close(0);
    case Start::awaiting_a_call:
      return await_call();
    case Start::called:
      await_call();
      return request(0, {.bits = 1});
    case Start::told_to_wait: {
      call(0, false);
      auto c = session_message(0, CtlType::wait);
      c.reason = 5000;
      return say(0, c);
    }
    case Start::asked_for_cookie: {
      call(0, false);
      auto c = session_message(0, CtlType::cookie);
      c.cookie = HandshakeCookie{0x1234};
      return say(0, c);
    }
    case Start::call_taken:
      call(0, false);
      return say_session(CtlType::rep);
    case Start::call_refused:
      call(0, true);
      return say_session(CtlType::rej);
    case Start::request_refused:
      request(0, {});
      return reject(0);
    case Start::answered: {
      ask(0);
      auto c = session_message(0, CtlType::rep);
      c.service = CtlService::ud_resolution;
      return say(0, c);
    }
    case Start::peer_left: {
      begin(Start::established);
      // Of what it has sent nothing has come.
      auto c = session_message(0, CtlType::dreq);
      c.highest_psn = Psn{107};
      return say(0, c);
    }
    case Start::time_wait:
      begin(Start::closing);
      return say_session(CtlType::drep);
    case Start::token_rests:
      begin(Start::established);
      return remove(0);
    case Start::static_session:
      return start_static(0);
  }
}

// Of those that a mistake on the way would miss without a word.
bool Strangers::reached(Start start) {
  auto* const p = peer(0);
  const auto state = p != nullptr ? p->connection.state() : UcConnection::State::setting_up;
  const auto* const h = p != nullptr ? p->connection.handshake() : nullptr;
  switch (start) {
    case Start::awaiting_a_call:
      return p != nullptr && h == nullptr;
    case Start::called:
      return h != nullptr && !h->active() && h->state() == wdp::Handshake::State::rep_sent;
    case Start::told_to_wait:
      return h != nullptr && h->deadline() >= now_ + 5s;
    case Start::asked_for_cookie:
      return accounts_[0].cookie_back == HandshakeCookie{0x1234};
    case Start::call_taken:
      return h != nullptr && h->active() && state == UcConnection::State::open;
    case Start::call_refused:
      return state == UcConnection::State::failed;
    case Start::request_refused:
      return accounts_[0].went > 0 && node_.port.half_open() == 0;
    case Start::answered:
      return node_.resolved && node_.resolved->state == wdp::Handshake::State::established;
    case Start::peer_left:
      return state == UcConnection::State::open && p->connection.deadline() <= now_ + 10ms;
    case Start::time_wait:
      return state == UcConnection::State::ended && !p->connection.gone();
    case Start::token_rests:
      return p == nullptr && !accounts_[0].tokens.empty();
    case Start::static_session:
      return state == UcConnection::State::open && h == nullptr;
    default:
      return true;
  }
}

// --- what must hold

void Strangers::check() {
  for (const Account& a : accounts_) FUZZ_CHECK(a.proven || a.went <= 3 * a.came);
  // spec/wdp 4.3: Over 128 half-open per port: COOKIE only, but for those who have one.
  bool any = false;
  for (const Account& a : accounts_) any = any || a.cookie != HandshakeCookie{};
  FUZZ_CHECK(any || node_.port.half_open() <= wdp::RequestGate::kMostHalfOpen);
  for (const auto& p : node_.peers) {
    const auto* h = p.connection.handshake();
    const auto state = p.connection.state();
    FUZZ_CHECK(state != UcConnection::State::open || h == nullptr ||
               h->state() == wdp::Handshake::State::established);
  }
}

// Whatever happened: everything comes to its end.
void Strangers::finish() {
  for (auto& p : node_.peers) p.connection.abort(0, now_);
  for (int i = 0; i < 6; ++i) later(1s);
  for (auto& p : node_.peers) {
    const bool was_nothing = p.connection.handshake() == nullptr;
    FUZZ_CHECK(was_nothing || p.connection.gone());
    node_.port.remove(p.connection, now_);
  }
}

}  // namespace weft::fuzz
