// A channel of reliable datagrams against a peer that says anything (spec/wdp-rd), from each state
// that it can be in. First byte: Start. Then steps. The peer is a whole host, so that what it says
// may be right; what passes between the two may be lost, and anything may be said in its name.

#include <algorithm>

#include "base/log.h"
#include "fuzz/support/input.h"
#include "tests/support/bundles.h"
#include "tests/support/rd_node.h"
#include "wire/rdmap_messages.h"
#include "wire/wdp_bundle.h"
#include "wire/wdp_crc.h"
#include "wire/wdp_messages.h"

namespace {

using namespace weft;
using namespace std::chrono_literals;
using fuzz::Input;
using test::Buffer;
using test::RdNode;
using wire::CtlType;
using wire::WdpAck;
using wire::WdpClass;
using wire::WdpCtl;
using wire::WdpData;

// New ones at the end, or the corpus changes its meaning.
enum class Start : uint8_t {
  nothing,
  calling,
  called,
  open,
  gap,          // at us
  lost,         // of what we said
  unread,       // messages that wait for receives
  window_shut,  // the peer's
  closing,
  self,
};

// New ones at the end, or the corpus changes its meaning.
enum class Step : uint8_t {
  bytes,
  data,
  acknowledgement,
  control,
  request,
  exchange,
  post_receives,
  send,
  peer_sends,
  later,
  flush,
  close,
  drop_queue_pair,
  rd_data,      // of a queue pair of type RD's
  rd_response,  // RESP
  rd_posts,
  rd_goes,
  rd_bundle,  // of the two steps that follow
};
constexpr unsigned kSteps = 18;

constexpr uint8_t kUs = 1;
constexpr uint8_t kPeer = 2;
constexpr uint8_t kRd = 3;  // index of the queue pair of type RD
constexpr Duration kWaits[] = {50us, 300us, 2ms, 50ms, 1s, 13s, 40s, 130s};

class Play {
 public:
  explicit Play(Start start);
  void step(Input& in);
  void check();

 private:
  void reach(Start start);
  // Everybody says what there is to say; a bit of `losses` for each datagram.
  void talk(uint32_t losses = 0, bool to_us = true, bool to_peer = true);
  void later(Duration d);
  void listen(const Buffer& said);
  void give(Bytes datagram) {
    if (bundling_) return bundle(datagram);
    us_.hear(datagram, peer_.address, now_, traffic_class_);
  }
  // Becomes the next part.
  void bundle(Bytes part);
  void give_bundle(Input& in);
  void send(RdNode& from, uint8_t to, size_t size) {
    for (RdNode::Pair& p : from.pairs) {
      if (p.posted - p.host.sent.size() < 200) return p.send(to, 1, Buffer(size));
    }
  }
  void say_rd(Input& in);
  void post_rd(Input& in, RdNode& node);
  wdp::RdChannel* channel() { return us_.links.empty() ? nullptr : &us_.links.front().channel; }

  Time now_ = Time::from_ns(2'000'000'000);
  uint8_t traffic_class_ = 0;  // of what is said in the peer's name
  bool bundling_ = false;
  Buffer bundle_;
  RdNode us_{kUs, 1, now_, true, 1 << 16};
  RdNode peer_{kPeer, 2, now_, true, 1 << 16};
  size_t checked_ = 0;     // of our completions
  size_t checked_rd_ = 0;  // of those of our queue pair of type RD
};

Play::Play(Start start) {
  reach(start);
}

void Play::reach(Start start) {
  us_.rests = peer_.rests = true;
  us_.add_pair(1).way = {.most = 1472};
  us_.add_pair(2);
  peer_.add_pair(1);
  us_.add_member(kRd);
  peer_.add_member(kRd);
  if (start == Start::nothing) return;
  if (start == Start::self) {
    send(us_, kUs, 100);
    return talk();
  }
  if (start == Start::called) {
    send(peer_, kUs, 100);
    return talk(0, true, false);
  }
  send(us_, kPeer, 100);
  if (start == Start::calling) return talk(0, true, false);
  talk();
  later(1ms);
  switch (start) {
    case Start::gap:
      us_.pairs.front().post_receives(3);
      for (int i = 0; i < 3; ++i) send(peer_, kUs, 50);
      return talk(1);
    case Start::lost:
      for (int i = 0; i < 3; ++i) send(us_, kPeer, 50);
      return talk(2);
    case Start::unread:
      for (int i = 0; i < 3; ++i) send(peer_, kUs, 50);
      return talk();
    case Start::window_shut:
      for (int i = 0; i < 150; ++i) send(us_, kPeer, 1000);
      talk();
      return later(2ms);
    case Start::closing:
      channel()->close(now_);
      return talk(0, true, false);
    default:
      return;
  }
}

void Play::talk(uint32_t losses, bool to_us, bool to_peer) {
  // A window of two datagrams takes a round for each two messages.
  for (int round = 0; round < 2000; ++round) {
    bool any = false;
    for (RdNode* from : {&us_, &peer_}) {
      for (const auto& d : from->said(now_)) {
        any = true;
        if (from == &us_) listen(d.bytes);
        const bool lost = (losses & 1) != 0;
        losses >>= 1;
        RdNode& to = d.to == us_.address ? us_ : peer_;
        if (lost || (&to == &us_ ? !to_us : !to_peer)) continue;
        to.hear(d.bytes, from->address, now_, d.traffic_class);
      }
    }
    if (!any) return;
  }
  FUZZ_CHECK(!"they talk for ever");
}

// What we say is right, whatever was said to us.
void Play::listen(const Buffer& said) {
  const auto common = wire::WdpCommon::parse(said);
  FUZZ_CHECK(common.ok());
  if (common->wdp_class == wire::WdpBundle::kClass) {
    FUZZ_CHECK(test::check_bundle(*common, said).ok());
    return;
  }
  switch (common->wdp_class) {
    case WdpClass::ctl:
      FUZZ_CHECK(WdpCtl::parse(*common, said).ok());
      return;
    case WdpClass::rd:
      FUZZ_CHECK(WdpData::parse(*common, said, said.size()).ok());
      return;
    case WdpClass::rd_ack: {
      const auto ack = WdpAck::parse(said);
      FUZZ_CHECK(ack.ok());
      FUZZ_CHECK(!ack->holds(ack->cum));
      return;
    }
    case WdpClass::ud:
      return;
    default:
      FUZZ_CHECK(!"of no class that we have");
  }
}

void Play::later(Duration d) {
  int turns = 0;
  for (const Time end = now_ + d; now_ < end;) {
    FUZZ_CHECK(++turns < 100'000);
    const Time next = std::min(us_.deadline(), peer_.deadline());
    now_ = std::min(end, std::max(next, now_ + 1us));
    us_.tick(now_);
    peer_.tick(now_);
    talk();
  }
}

// As the peer's queue pair might say it, or no honest one.
void Play::say_rd(Input& in) {
  const wdp::RdChannel* const c = channel();
  const uint8_t bits = in.u8();
  const uint8_t places = in.u8();
  const Csn cum = c != nullptr && c->receiver() != nullptr ? c->receiver()->cum() : Csn{};
  const RdNode::Member& target = us_.members.front();
  WdpData d{.wdp_class = WdpClass::rd,
            .flags = {.immediate = (bits & 1) != 0},
            .didx = (places & 1) != 0 ? uint8_t{1} : kRd,
            .sidx = (places & 2) != 0 ? uint8_t{1} : kRd,
            .token = c != nullptr ? c->token() : SessionToken{1},
            .psn = cum + in.u8() % 4U,
            .msn = Msn{1U + in.u8() % 16},
            .mo = MessageOffset{(in.u8() % 4U) * 16},
            .mlen = in.u8(),
            .flow_open = (bits & 2) != 0,
            .wants_response = (bits & 4) == 0,
            .opcode = static_cast<wire::Opcode>(in.u8() % 12),
            .stride = static_cast<uint16_t>((bits & 8) != 0 ? 16 : 256),
            .stag = (bits & 16) != 0 ? Stag{7} : target.rkey,
            .imm_or_read = in.u8() % 16U,
            .to = test::address_of(target.board, in.u8() * 8U)};
  if (d.opcode == wire::Opcode::send || d.opcode == wire::Opcode::send_se) {
    d.to = TaggedOffset{uint64_t{RdNode::kQKey} << 32};
  }
  if (d.opcode == wire::Opcode::atomic_request) d.mlen = wire::AtomicRequest::kSize;
  if (d.opcode == wire::Opcode::atomic_response) d.mlen = wire::AtomicResponse::kSize;
  const bool alone = d.opcode == wire::Opcode::read_request || d.is_end();
  const uint32_t left = d.mlen - std::min(d.mo.value(), d.mlen);
  d.last = alone || left <= d.stride;
  Buffer b(WdpData::kSize + (d.is_end() ? 0 : alone ? 8 : std::min<uint32_t>(left, d.stride)));
  d.encode(b.data());
  if (d.opcode == wire::Opcode::read_request) {
    wire::WdpReadRange{.length = d.mlen}.encode(b.data() + WdpData::kSize);
  } else if (d.opcode == wire::Opcode::atomic_request && b.size() == WdpData::kSize + d.mlen) {
    wire::AtomicRequest{.code = wire::AtomicRequest::Code::fetch_add,
                        .request_id = d.msn.value(),
                        .stag = d.stag,
                        .to = test::address_of(target.board, in.u8() * 4U),
                        .add_swap = 1}
        .encode(b.data() + WdpData::kSize);
  } else if (d.opcode == wire::Opcode::atomic_response && b.size() >= WdpData::kSize + 4) {
    store_be<uint32_t>(b.data() + WdpData::kSize, in.u8() % 16U);
  }
  give(b);
}

void Play::bundle(Bytes part) {
  const size_t at = bundle_.size();
  bundle_.resize(at + wire::WdpBundle::kFrame + part.size());
  std::copy(part.begin(), part.end(), wire::WdpBundle::frame(bundle_.data() + at, part.size()));
}

void Play::give_bundle(Input& in) {
  const wdp::RdChannel* const c = channel();
  const Csn cum = c != nullptr && c->receiver() != nullptr ? c->receiver()->cum() : Csn{};
  bundle_.assign(wire::WdpBundle::kSize, std::byte{});
  const uint8_t first = in.u8();
  wire::WdpCommon{.wdp_class = wire::WdpBundle::kClass,
                  .flags = {.ack_requested = (first & 0x80) != 0},
                  .token = c != nullptr ? c->token() : SessionToken{1},
                  .class_word = cum.value() + (first & 1U)}
      .encode(bundle_.data());
  bundling_ = true;
  for (int i = 0; i < 2 && !in.empty(); ++i) step(in);
  bundling_ = false;
  give(bundle_);
}

void Play::post_rd(Input& in, RdNode& node) {
  if (node.members.empty() || !node.members.front().queue) return;
  RdNode::Member& m = node.members.front();
  if (m.posted - m.host.sent.size() >= 100) return;
  const uint8_t what = in.u8();
  RdNode& to = &node == &us_ && (what & 0x80) == 0 ? peer_ : us_;
  const uint8_t number = &to == &us_ ? kUs : kPeer;
  const RdNode::Member& target = to.members.front();
  const Stag stag = (what & 0x40) != 0 ? Stag{7} : target.rkey;
  const size_t size = size_t{in.u8()} * 32;
  switch (what % 5) {
    case 0:
      return m.send(number, kRd, Buffer(size));
    case 1:
      return m.write(number, kRd, Buffer(size), stag, test::address_of(target.board));
    case 2:
      (void)m.read(number, kRd, size, stag, test::address_of(target.board));
      return;
    case 3:
      (void)m.add(number, kRd, 1, stag, test::address_of(target.board, size % 512));
      return;
    default:
      return m.post_receives(size % 4);
  }
}

void Play::step(Input& in) {
  const uint8_t first = in.u8();
  const bool marked = (first & 0x40) != 0;
  traffic_class_ = marked ? wdp::kCe : 0;
  wdp::RdChannel* const c = channel();
  const SessionToken token = c != nullptr ? c->token() : SessionToken{1};
  switch (static_cast<Step>((first & 0x1f) % kSteps)) {
    case Step::bytes:
      return give(in.take(in.u8()));
    case Step::data: {
      constexpr wire::Opcode kOpcodes[] = {wire::Opcode::send, wire::Opcode::send_se,
                                           wire::Opcode::send_inv, wire::Opcode::write};
      const uint8_t bits = in.u8();
      const Csn cum = c != nullptr && c->receiver() != nullptr ? c->receiver()->cum() : Csn{};
      const auto size = static_cast<uint32_t>(in.u8()) * ((bits & 64) != 0 ? 4 : 1);
      const auto ahead = static_cast<int8_t>(in.u8());
      const WdpData d{.wdp_class = WdpClass::rd,
                      .flags = {.crc = (bits & 1) != 0,
                                .immediate = (bits & 2) != 0,
                                .ack_requested = (bits & 4) != 0},
                      .didx = static_cast<uint8_t>((bits >> 3) & 3),
                      .sidx = static_cast<uint8_t>(1 + (in.u8() & 1)),
                      .token = token,
                      .psn = cum + static_cast<uint32_t>((bits & 32) != 0 ? ahead * 40 : ahead),
                      .msn = Msn{1U + in.u8()},
                      .mlen = size,
                      .last = true,
                      .opcode = kOpcodes[(bits & 128) != 0 ? in.u8() % 4 : 0],
                      .stride = static_cast<uint16_t>(std::max<uint32_t>(size, 1)),
                      .to = TaggedOffset{uint64_t{RdNode::kQKey} << 32}};
      Buffer b(WdpData::kSize + size);
      d.encode(b.data());
      if (d.flags.crc) wire::seal_wdp(b);
      return give(b);
    }
    case Step::acknowledgement: {
      const Csn end = c != nullptr ? c->sender().next_csn() : Csn{};
      WdpAck a{.token = token,
               .cum = end + static_cast<uint32_t>(static_cast<int8_t>(in.u8())),
               .timestamp = in.u16() * 1000U,
               .delay = in.u8(),
               .words = static_cast<uint16_t>(in.u8() % 3),
               .window = in.u16() % 256U,
               .ce = marked ? token.value() : 0};
      for (size_t i = 0; i < a.words; ++i) a.sack.at(i) = uint32_t{in.u16()} << 16 | in.u16();
      Buffer b(a.size());
      a.encode(b.data());
      return give(b);
    }
    case Step::control:
    case Step::request: {
      const bool request = static_cast<Step>((first & 0x1f) % kSteps) == Step::request;
      WdpCtl m{.type = request ? CtlType::req : static_cast<CtlType>(2 + in.u8() % 12),
               .token = request ? SessionToken{} : token,
               .source_token = SessionToken{1U + in.u8()},
               .source = make_qpn(RdNode::kPort, 0),
               .destination = make_qpn(RdNode::kPort, 0),
               .xid = Xid{in.u8()},
               .service = in.flag() ? wire::CtlService::uc : wire::CtlService::rd_channel,
               .ib_style = in.flag(),
               .max_payload = 1472,
               .first_psn = Psn{in.u8()},
               .reason = in.u8()};
      const uint8_t bits = in.u8();
      // As the one who is called, or has called, would say it.
      if ((bits & 1) != 0 && c != nullptr) m.source_token = c->peer().token;
      if ((bits & 2) != 0 && c != nullptr && c->handshake() != nullptr) {
        m.xid = c->handshake()->peer().xid;
      }
      if ((bits & 4) != 0 && c != nullptr) m.highest_psn = c->sender().next_csn();
      Buffer offending(WdpCtl::kOffendingSize);
      if (m.type == CtlType::err) m.offending = offending;
      Buffer b(m.size());
      m.encode(b.data());
      return give(b);
    }
    case Step::exchange:
      return talk(static_cast<uint32_t>(in.u16()) << 16 | in.u16());
    case Step::post_receives: {
      const uint8_t count = in.u8() % 8;
      RdNode& node = (first & 0x80) != 0 ? peer_ : us_;
      for (RdNode::Pair& p : node.pairs) p.post_receives(count);
      return;
    }
    case Step::send:
      return send(us_, (first & 0x80) != 0 ? kUs : kPeer, size_t{in.u8()} * 4);
    case Step::peer_sends:
      return send(peer_, kUs, in.u8());
    case Step::later:
      return later(kWaits[in.u8() % std::size(kWaits)]);
    case Step::flush:
      return us_.socket.channels().flush();
    case Step::close:
      if (c != nullptr) c->close(now_);
      return;
    case Step::drop_queue_pair:
      if (us_.pairs.size() > 1) us_.pairs.pop_back();
      return;
    case Step::rd_data:
      return say_rd(in);
    case Step::rd_response: {
      WdpData d{.wdp_class = WdpClass::rd,
                .token = token,
                .psn = c != nullptr && c->receiver() != nullptr ? c->receiver()->cum() : Csn{},
                .msn = Msn{1U + in.u8() % 8},
                .last = true,
                .opcode = wire::Opcode::terminate,
                .stride = 256};
      d.mlen = (in.u8() % 4U) * wire::WdpResponse::kSize;
      Buffer b(WdpData::kSize + d.mlen);
      d.encode(b.data());
      for (size_t at = WdpData::kSize; at < b.size(); at += wire::WdpResponse::kSize) {
        wire::WdpResponse{.qidx = kRd,
                          .ridx = kRd,
                          .code = static_cast<wire::WdpResponse::Code>(in.u8() % 11),
                          .delay = in.u8(),
                          .msn = Msn{in.u8() % 32U}}
            .encode(b.data() + at);
      }
      return give(b);
    }
    case Step::rd_posts:
      return post_rd(in, (first & 0x80) != 0 ? peer_ : us_);
    case Step::rd_bundle:
      if (!bundling_) give_bundle(in);
      return;
    case Step::rd_goes: {
      RdNode& node = (first & 0x80) != 0 ? peer_ : us_;
      node.members.front().queue.reset();
      return;
    }
  }
}

// Completions come once and in order; and who keeps anything for us keeps no more than it may.
void Play::check() {
  const RdNode::Pair& p = us_.pairs.front();
  for (; checked_ < p.host.sent.size(); ++checked_) {
    FUZZ_CHECK(p.host.sent[checked_].wr_id == checked_ + 1);
  }
  FUZZ_CHECK(checked_ <= p.posted);
  const RdNode::Member& m = us_.members.front();
  for (; checked_rd_ < m.host.sent.size(); ++checked_rd_) {
    FUZZ_CHECK(m.host.sent[checked_rd_].wr_id == checked_rd_ + 1);
  }
  FUZZ_CHECK(checked_rd_ <= m.posted);
  FUZZ_CHECK(p.failures == 0);
  for (const RdNode::Link& l : us_.links) {
    const wdp::RdSendPath& s = l.channel.sender();
    // One that was closed waits for what the peer lacks.
    const auto state = l.channel.state();
    FUZZ_CHECK(s.idle() || state == wdp::RdChannel::State::setting_up ||
               state == wdp::RdChannel::State::open);
  }
  // Those that have ended are there for messages that wait.
  FUZZ_CHECK(std::count_if(us_.links.begin(), us_.links.end(),
                           [](const RdNode::Link& l) { return l.channel.left_bytes() == 0; }) <= 4);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  log::set_level(log::Level::off);
  Input input{fuzz::as_bytes(data, size)};
  Play play(input.choice(Start::self));
  play.check();
  while (!input.empty()) {
    play.step(input);
    play.check();
  }
  return 0;
}
