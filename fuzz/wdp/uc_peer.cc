#include "fuzz/wdp/uc_peer.h"

#include "wdp/pieces.h"
#include "wire/wdp_crc.h"
#include "wire/wdp_messages.h"

namespace weft::fuzz {

using work::Access;

namespace {

constexpr SessionToken kOwnToken{0x11223344};
constexpr SessionToken kPeerToken{0x55667788};
constexpr wdp::Endpoint kPeer{Gid::from_ipv4(0x0a000002), 40000};

wdp::UcParameters parameters_of(const UcPeer::Shape& shape, uint32_t first_psn) {
  wdp::UcParameters p{
      .path = {.to = kPeer},
      .peer_token = kPeerToken,
      .own_token = kOwnToken,
      .own_qpn = make_qpn(50000, 9),
      .peer_qpn = make_qpn(40000, 5),
      .first_psn = Psn{0xfffffff0U},
      .crc = shape.crc,
      .ird = 4,
      .ord = 4,
      // The least that every path carries is not probed.
      .max_payload = shape.probes_path ? UcPeer::kProbed : WdpData::kSize + UcPeer::kStride,
      .receive_buffer = 4096,
      .retry_count = 3,
      // A handful of datagrams.
      .window = 4096,
      .probes_path = shape.probes_path,
      .is_static = shape.is_static};
  if (!shape.is_static) p.peer_first_psn = Psn{first_psn};
  return p;
}

}  // namespace

UcPeer::UcPeer(const Shape& shape) : crc_(shape.crc) {
  session_.emplace(host_, parameters_of(shape, kFirstPsn), random_, windows_, now_);
  carried_ = session_->parameters().max_payload;
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
  // What the port sees to before (wdp_socket_test.cc, uc_listener).
  if (!common.ok() || common->token != kOwnToken) return;
  if (common->wdp_class == WdpClass::ctl) {
    const auto c = WdpCtl::parse(*common, copy);
    if (!c.ok() || c->type <= wire::CtlType::wait) return;
    if (c->type == wire::CtlType::dreq) goodbye_ |= !session_->parameters().is_static;
    if (c->type == wire::CtlType::probea && probe_ && c->xid == probe_->xid &&
        c->max_payload == wdp::PathProbe::kSmall) {
      ++small_answers_;
    }
    session_->received(*c, now_);
  } else {
    session_->received(*common, copy, now_);
  }
}

void UcPeer::give_in_two_steps(Bytes datagram) {
  PieceList places;
  const auto front = exact(datagram, std::min(datagram.size(), WdpData::kLook));
  const auto common = WdpCommon::parse(front);
  if (!common.ok() || !session_->direct(*common, front, datagram.size(), places)) {
    return give(datagram);
  }
  FUZZ_CHECK(!crc_);
  FUZZ_CHECK(wdp::place(datagram.subspan(WdpData::kSize), places));
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

// The session heeds answers to its own questions: how far the peer has come, what the path carries.
uint32_t UcPeer::answered_by(wire::CtlType type) const {
  if (type == wire::CtlType::kaa) return asked_;
  return answers_probe(type) ? probe_->xid.value() : 0;
}

// What a PROBEA says of the size: that of the last large probe, of the small one, or another.
uint16_t UcPeer::probed_size(uint32_t reason) const {
  if (reason == 0) return static_cast<uint16_t>(probe_->size);
  return reason == kSmallProbe ? static_cast<uint16_t>(wdp::PathProbe::kSmall)
                               : static_cast<uint16_t>(reason);
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
                 .xid = Xid{answered_by(type) + psn},
                 .service = wire::CtlService::uc,
                 .max_payload = answers_probe(type) ? probed_size(reason) : uint16_t{0},
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
  account_for_flushed();
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

void UcPeer::withdraw(uint64_t request) {
  host_.host.regions.erase(Stag{kRequestKeys + static_cast<uint32_t>(request)});
}

// As ibv_modify_qp from SQE to RTS: what was posted meanwhile is flushed, and nothing else is.
void UcPeer::resume() {
  account_for_flushed();
  if (!stopped()) return;
  host_.host.flush();
  account_for_flushed();
  resumed_ = host_.send_failures;
  session_->resume_requests();
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

}  // namespace weft::fuzz
