#include "fuzz/wdp/uc_peer.h"

#include "wdp/pieces.h"
#include "wire/wdp_crc.h"
#include "wire/wdp_messages.h"

namespace weft::fuzz {

using rdmap::Access;
using rdmap::Arrival;
using rdmap::Operation;
using rdmap::Receive;
using rdmap::SendWqe;
using rdmap::Status;
using wire::Opcode;
using wire::WdpClass;
using wire::WdpCommon;
using wire::WdpCtl;
using wire::WdpData;

namespace {

constexpr SessionToken kOwnToken{0x11223344};
constexpr SessionToken kPeerToken{0x55667788};
constexpr wdp::Endpoint kPeer{Gid::from_ipv4(0x0a000002), 40000};

wdp::UcParameters parameters_of(bool crc, bool is_static, uint32_t first_psn) {
  wdp::UcParameters p{.path = {.to = kPeer},
                      .peer_token = kPeerToken,
                      .own_token = kOwnToken,
                      .own_qpn = make_qpn(50000, 9),
                      .peer_qpn = make_qpn(40000, 5),
                      .first_psn = Psn{0xfffffff0U},
                      .crc = crc,
                      .ird = 4,
                      .ord = 4,
                      .max_payload = WdpData::kSize + UcPeer::kStride,
                      .receive_buffer = 4096,
                      .retry_count = 3,
                      // A handful of datagrams.
                      .window = 4096,
                      .is_static = is_static};
  if (!is_static) p.peer_first_psn = Psn{first_psn};
  return p;
}

}  // namespace

UcPeer::UcPeer(bool crc, bool is_static) : crc_(crc) {
  session_.emplace(host_, parameters_of(crc, is_static, kFirstPsn), random_, windows_, now_);
  session_->open();
  const auto add = [&](Area& a, uint8_t rights, bool foreign) {
    a.stag = Stag{0x100U + static_cast<uint32_t>(host_.host.regions.size())};
    host_.host.regions[a.stag] = {a.data(), kBase, a.size(), rights, foreign};
  };
  add(writable_, 15, false);
  add(readable_, static_cast<uint8_t>(Access::remote_read), false);
  add(foreign_, 15, true);
  gone_ = Stag{0xdead};
  host_.on_receive = [this](const auto& r, Status s, const Arrival& a) { received(r, s, a); };
  host_.on_send = [this](const SendWqe& w, Status) { sent(w); };
}

// Different for neighbours, and for other messages. Bytes 0 to 3 are the MSN.
std::byte UcPeer::byte_of(uint32_t msn, uint64_t at) {
  if (at < 4) return static_cast<std::byte>(msn >> (24 - 8 * at));
  return static_cast<std::byte>((at * 167 + msn * 13 + (at >> 8)) & 0xff);
}

Stag UcPeer::stag(Region r) {
  switch (r) {
    case Region::writable:
      return writable_.stag;
    case Region::readable:
      return readable_.stag;
    case Region::foreign:
      return foreign_.stag;
    case Region::gone:
      return gone_;
    case Region::none:
      break;
  }
  return {};
}

// --- the peer

void UcPeer::note(const WdpData& d) {
  auto& bytes = said_[d.msn.value()];
  for (uint32_t i = 0; i < d.payload_size(); ++i) bytes.insert(d.mo.value() + i);
}

void UcPeer::give(Bytes datagram) {
  last_.assign(datagram.begin(), datagram.end());
  const auto copy = exact(datagram, datagram.size());
  const auto common = WdpCommon::parse(copy);
  // What the port sees to before (port_test.cc, uc_listener).
  if (!common.ok() || common->token != kOwnToken) return;
  if (common->wdp_class == WdpClass::ctl) {
    const auto c = WdpCtl::parse(copy);
    if (c.ok() && c->type > wire::CtlType::wait) session_->received(*c, now_);
  } else {
    session_->received(copy, now_);
  }
}

void UcPeer::give_in_two_steps(Bytes datagram) {
  PieceList places;
  const auto front = exact(datagram, std::min(datagram.size(), WdpData::kLook));
  if (!session_->direct(front, datagram.size(), places)) return give(datagram);
  FUZZ_CHECK(!crc_);
  wdp::place(datagram.subspan(WdpData::kSize), places);
  session_->direct_received(now_);
}

void UcPeer::say(const Segment& s) {
  const bool reads = s.opcode == Opcode::read_request;
  WdpData d{.flags = {.crc = crc_, .immediate = s.immediate},
            .didx = 9,
            .sidx = 5,
            .token = kOwnToken,
            .psn = Psn{psn_ + static_cast<uint32_t>(s.psn)},
            .msn = Msn{s.msn},
            .mo = MessageOffset{s.mo},
            .mlen = s.mlen,
            .last = true,
            .write_se = s.solicited && s.opcode == Opcode::write,
            .opcode = s.opcode,
            .stride = s.stride,
            .stag = s.opcode == Opcode::read_response ? Stag{} : stag(s.region),
            .imm_or_read = s.immediate ? s.msn : s.rid,
            .to = TaggedOffset{kBase + s.offset + (reads ? 0 : s.mo)}};
  if (s.psn >= 0) psn_ += static_cast<uint32_t>(s.psn) + 1;
  size_t n = wire::WdpReadRange::kSize;
  if (!reads) {
    n = s.mo <= s.mlen ? std::min<size_t>(s.stride, s.mlen - s.mo) : 0;
    d.last = uint64_t{s.mo} + n == s.mlen;
  }
  std::vector<std::byte> b(WdpData::kSize + n);
  d.encode(b.data());
  for (size_t i = 0; i < n; ++i) b[WdpData::kSize + i] = byte_of(s.msn, s.mo + i);
  if (reads) wire::WdpReadRange{.length = s.range}.encode(b.data() + WdpData::kSize);
  if (crc_) wire::seal_wdp(b);
  if (WdpData::parse(b).ok() && !reads) note(d);
  if (s.in_two_steps) {
    give_in_two_steps(b);
  } else {
    give(b);
  }
  msn_ = std::max(msn_, s.msn + 1);
}

void UcPeer::say_all(Segment s) {
  do {
    say(s);
    s.mo += s.stride;
  } while (s.mo < s.mlen && s.stride > 0);
}

void UcPeer::say_header(Bytes header, size_t size) {
  std::vector<std::byte> b(std::max(size, WdpData::kSize));
  std::copy(header.begin(), header.end(), b.begin());
  b[0] = std::byte{0xd1};
  b[2] = std::byte{9};
  store_be(b.data() + 4, kOwnToken.value());
  const auto msn = load_be<uint32_t>(b.data() + 16);
  const auto mo = load_be<uint32_t>(b.data() + 20);
  // Immediates name their message, as all of the peer's do.
  if ((b[1] & std::byte{4}) != std::byte{}) store_be(b.data() + 36, msn);
  for (size_t i = WdpData::kSize; i < b.size(); ++i) b[i] = byte_of(msn, mo + i - WdpData::kSize);
  if ((b[1] & std::byte{8}) != std::byte{}) wire::seal_wdp(b);
  const auto d = WdpData::parse(b);
  if (d.ok() && d->opcode != Opcode::read_request) note(*d);
  give(b);
}

void UcPeer::say_ctl(wire::CtlType type, uint32_t reason, uint32_t psn, Bytes private_data) {
  std::array<std::byte, WdpData::kSize> header{};
  WdpData{.opcode = Opcode::read_request, .imm_or_read = psn}.encode(header.data());
  const WdpCtl c{.type = type,
                 .didx = 9,
                 .sidx = 5,
                 .token = kOwnToken,
                 .source_token = kPeerToken,
                 .source = make_qpn(40000, 5),
                 .destination = make_qpn(50000, 9),
                 // The session asks how far the peer has come, and heeds the answer to that.
                 .xid = Xid{type == wire::CtlType::kaa ? asked_ + psn : psn},
                 .service = wire::CtlService::uc,
                 .reason = reason,
                 .private_data = private_data,
                 .highest_psn = Psn{psn_ + psn},
                 .offending = header};
  std::vector<std::byte> b(c.size());
  c.encode(b.data());
  give(b);
}

void UcPeer::respond(unsigned which, uint32_t index) {
  if (heard_.empty()) return;
  const Heard& h = heard_[which % heard_.size()];
  say({.opcode = Opcode::read_response,
       .msn = msn_,
       .mo = index * kStride,
       .mlen = h.mlen,
       .rid = h.id.value(),
       .in_two_steps = (which & 1) != 0});
}

void UcPeer::repeat_last() {
  const auto again = last_;
  give(again);
}

// --- the program

void UcPeer::post_receive(size_t size) {
  if (posted_receives_ - done_receives_ > 64) return;
  Area& a = receives_.emplace_back(size);
  host_.host.regions[Stag{0x8000U + static_cast<uint32_t>(posted_receives_)}] = {
      a.data(), reinterpret_cast<uintptr_t>(a.data()), size, 1};
  host_.host.post_receive(posted_receives_,
                          {{reinterpret_cast<uintptr_t>(a.data()), static_cast<uint32_t>(size),
                            Stag{0x8000U + static_cast<uint32_t>(posted_receives_)}}});
  ++posted_receives_;
}

void UcPeer::post(Operation op, size_t size, bool bad_key) {
  if (over_ || posted_ - done_ > 60) return;
  Area& a = sinks_.emplace_back(size);
  const auto address = reinterpret_cast<uintptr_t>(a.data());
  const Stag key{0x4000U + static_cast<uint32_t>(posted_)};
  if (!bad_key) host_.host.regions[key] = {a.data(), address, size, 1};
  host_.host.post({.wr_id = posted_++,
                   .operation = op,
                   .signaled = true,
                   .remote_stag = Stag{0x77},
                   .remote_to = TaggedOffset{kBase}},
                  {{address, static_cast<uint32_t>(size), key}});
}

void UcPeer::deregister(Region r) {
  host_.host.regions.erase(stag(r));
}

void UcPeer::later(Duration d) {
  const Time end = now_ + d;
  for (int i = 0; i < 200 && now_ < end; ++i) {
    now_ = std::min(end, std::max(session_->deadline(), now_ + Duration{1000}));
    session_->tick(now_);
  }
  now_ = end;
  session_->tick(now_);
}

void UcPeer::abort() {
  over_ = true;
  session_->abort(0, now_);
}

void UcPeer::own_memory_lost() {
  wdp::Train t;
  if (!session_->ready(now_)) return;
  session_->fill(t, now_);
  session_->own_memory_lost(now_);
  last_psn_.reset();  // the train is gone
}

// --- what must hold

void UcPeer::listen(size_t trains) {
  for (size_t i = 0; i < trains && session_->ready(now_); ++i) {
    wdp::Train t;
    session_->fill(t, now_);
    FUZZ_CHECK(t.datagrams() <= wdp::Train::kMostDatagrams);
    t.each_datagram([&](std::span<const IoVec> pieces) {
      std::vector<std::byte> d;
      for (const IoVec& v : pieces) {
        const auto* p = static_cast<const std::byte*>(v.iov_base);
        d.insert(d.end(), p, p + v.iov_len);
      }
      FUZZ_CHECK(d.size() <= t.segment_size());
      judge(d);
    });
    session_->llp_took_all(now_);
  }
}

// All that the session says is right, whatever was said to it.
void UcPeer::judge(Bytes datagram) {
  const auto common = WdpCommon::parse(datagram);
  FUZZ_CHECK(common.ok());
  FUZZ_CHECK(common->token == kPeerToken && common->didx == 5 && common->sidx == 9);
  if (common->wdp_class == WdpClass::ctl) {
    const auto c = WdpCtl::parse(datagram);
    FUZZ_CHECK(c.ok());
    FUZZ_CHECK(!session_->parameters().is_static);
    if (c->type == wire::CtlType::ka) asked_ = c->xid.value();
    return;
  }
  const auto d = WdpData::parse(datagram);
  FUZZ_CHECK(d.ok());
  FUZZ_CHECK(d->flags.crc == crc_ && (!crc_ || wire::wdp_crc_matches(datagram)));
  FUZZ_CHECK(!last_psn_ || d->psn == next(*last_psn_));
  last_psn_ = d->psn;
  if (d->opcode == Opcode::read_request) heard_.push_back({d->read_id(), d->mlen});
  if (d->opcode == Opcode::read_response) {
    // Nothing but what the peer may read.
    const Bytes payload = datagram.subspan(WdpData::kSize);
    const auto inside = [&](const Area& a) {
      const Bytes all = a.bytes();
      return std::search(all.begin(), all.end(), payload.begin(), payload.end()) != all.end();
    };
    FUZZ_CHECK(payload.empty() || inside(readable_) || inside(writable_));
  }
}

void UcPeer::received(const Receive& r, Status status, const Arrival& a) {
  // In the order of posting, once.
  FUZZ_CHECK(r.wr_id == done_receives_);
  ++done_receives_;
  if (status != Status::success) return;
  const Area& room = *std::next(receives_.begin(), static_cast<ptrdiff_t>(r.wr_id));
  if (a.write_with_immediate) FUZZ_CHECK(a.has_immediate);
  const auto first_word = [&] { return load_be<uint32_t>(room.bytes().data()); };
  if (!a.has_immediate && a.length < 4) return;  // nobody knows which one it was
  const uint32_t msn = a.has_immediate ? a.immediate : first_word();
  // No completion before all bytes are there.
  const auto& said = said_[msn];
  for (uint32_t i = 0; i < a.length; ++i) FUZZ_CHECK(said.contains(i));
  if (a.write_with_immediate) return;
  FUZZ_CHECK(a.length <= room.size());
  for (uint32_t i = 0; i < a.length; ++i) FUZZ_CHECK(room.bytes()[i] == byte_of(msn, i));
}

void UcPeer::sent(const SendWqe& w) {
  FUZZ_CHECK(w.wr_id == done_);
  ++done_;
}

void UcPeer::check() {
  for (const Area* a : {&writable_, &readable_, &foreign_}) FUZZ_CHECK(a->guards_intact());
  FUZZ_CHECK(readable_.untouched() && foreign_.untouched());
  for (const Area& a : receives_) FUZZ_CHECK(a.guards_intact());
  for (const Area& a : sinks_) FUZZ_CHECK(a.guards_intact());
  // Receives that nobody took are as they were; the next one may be half full.
  size_t i = 0;
  for (const Area& a : receives_) {
    if (i++ > done_receives_) FUZZ_CHECK(a.untouched());
  }
  // wire.md 9.2 rule 9: "one bad or forged datagram must not kill a stream".
  if (host_.send_failures > 0) over_ = true;
  FUZZ_CHECK(session_->deadline().is_never() ||
             session_->deadline() > now_ - std::chrono::hours{1});
}

// The program leaves, time passes, and nothing is left to do.
void UcPeer::finish() {
  if (!session_->ended()) abort();
  for (int i = 0; i < 40 && !session_->gone(); ++i) {
    listen(100);
    later(std::chrono::milliseconds{100});
  }
  FUZZ_CHECK(session_->gone());
  FUZZ_CHECK(!session_->abandon_receive() || done_receives_ < posted_receives_);
  check();
}

}  // namespace weft::fuzz
