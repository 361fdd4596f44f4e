// The start and the bytes of an RC connection over a channel (spec/wdp-rd 7.2, 7.5), against a peer
// whose channel is right and whose messages are anything. First byte: Start. Then steps.

#include <algorithm>
#include <memory>

#include "base/log.h"
#include "fuzz/support/input.h"
#include "tests/support/rd_node.h"
#include "wdp/rd_stream.h"

namespace {

using namespace weft;
using namespace std::chrono_literals;
using fuzz::Input;
using test::Buffer;
using test::RdNode;
using wire::RdOffer;
using wire::RdStreamWord;

// New ones at the end, or the corpus changes its meaning.
enum class Start : uint8_t {
  channel,  // and nothing else
  asking,   // we are: nothing has come back
  asked,    // we are not: the peer is
  initiator,
  responder,
};

// New ones at the end, or the corpus changes its meaning.
enum class Step : uint8_t {
  word,  // of the peer's: any message without bytes of a stream
  data,  // the same with
  exchange,
  later,
  ask,
  answer,  // what was asked of us
  send,
  read,
  end,
  leave,
  forsake,
  take_back,
  close,
};
constexpr unsigned kSteps = 13;

constexpr uint8_t kUs = 1;
constexpr uint8_t kPeer = 2;
constexpr uint8_t kOurs = 3;    // index of our queue pair
constexpr uint8_t kTheirs = 5;  // and of the peer's
constexpr size_t kMost = 1400;
constexpr uint32_t kTheirSession = 0x7777;
constexpr Duration kWaits[] = {50us, 2ms, 1s, 20s};
const RdOffer kTheirOffer{
    .qpn = make_qpn(RdNode::kPort, kTheirs), .session = kTheirSession, .room = 1472};

// Our end, as long as it lives.
struct End final : wdp::RdStreamOwner {
  End(RdNode& on, uint32_t session)
      : offer{.qpn = make_qpn(RdNode::kPort, kOurs), .session = session, .room = 1472},
        stream(on.socket.channels(), *this, offer) {}
  ~End() override { stream.forsake(); }
  void stream_changed() override {}
  void replied(Bytes frame) override {
    if (stream.begun() || frame.size() < RdOffer::kSize) return;
    const auto peer = RdOffer::parse(frame.data());
    if (peer && peer->session != 0) stream.begin(*peer, *stream.channel(), kMost);
  }
  const RdOffer offer;
  wdp::RdStream stream;
};

class Play {
 public:
  explicit Play(Start start);
  void step(Input& in);
  void check();

 private:
  void talk(uint32_t losses = 0);
  void later(Duration d);
  void ask();
  void answer(bool yes);
  void say(Input& in, bool word);
  void say(std::optional<RdStreamWord> word, uint32_t session, uint32_t number, Bytes payload);
  wdp::RdChannel* channel() { return us_.socket.channels().find(path_); }

  Time now_ = Time::from_ns(2'000'000'000);
  RdNode us_{kUs, 1, now_, true, 1 << 20};
  RdNode peer_{kPeer, 2, now_, true, 1 << 20};
  const wdp::Path path_{.to = RdNode::address_of(kPeer), .from = RdNode::address_of(kUs).address};
  const wdp::Path back_{.to = RdNode::address_of(kUs), .from = RdNode::address_of(kPeer).address};
  std::unique_ptr<End> end_;
  uint32_t sessions_ = 0;
  uint64_t said_ = 0;  // bytes of streams, by the peer
  uint64_t read_ = 0;
  int error_ = 0;  // of end_
};

Play::Play(Start start) {
  for (RdNode* n : {&us_, &peer_}) {
    n->socket.channels().enable({.own_port = RdNode::kPort, .window = 1 << 20, .starts = true});
  }
  us_.open(path_, now_);
  talk();
  Buffer offer(RdOffer::kSize);
  kTheirOffer.encode(offer.data());
  if (start == Start::asking || start == Start::initiator) {
    ask();
    talk();
  }
  if (start == Start::initiator) say(RdStreamWord::reply, end_->offer.session, 0, offer);
  if (start == Start::asked || start == Start::responder) say(RdStreamWord::request, 0, 0, offer);
  talk();
  if (start == Start::responder) answer(true);
  talk();
}

void Play::talk(uint32_t losses) {
  for (int round = 0; round < 4000; ++round) {
    bool any = false;
    for (RdNode* from : {&us_, &peer_}) {
      for (const auto& d : from->said(now_)) {
        any = true;
        const bool lost = (losses & 1) != 0;
        losses >>= 1;
        if (lost) continue;
        (from == &us_ ? peer_ : us_).hear(d.bytes, from->address, now_);
      }
    }
    if (!any) return;
  }
  FUZZ_CHECK(!"they talk for ever");
}

void Play::later(Duration d) {
  int turns = 0;
  for (const Time end = now_ + d; now_ < end;) {
    FUZZ_CHECK(++turns < 100'000);
    now_ = std::min(end, std::max(std::min(us_.deadline(), peer_.deadline()), now_ + 1us));
    us_.tick(now_);
    peer_.tick(now_);
    talk();
  }
}

void Play::ask() {
  end_ = nullptr;
  error_ = 0;
  end_ = std::make_unique<End>(us_, ++sessions_);
  end_->stream.call(path_);
  if (end_->stream.needs_channel()) {
    us_.open(path_, now_);
    talk();
  }
  if (end_->stream.has_channel() && end_->stream.error() == 0) {
    (void)end_->stream.request(kTheirOffer.qpn, Buffer(100));
  }
}

// As the adapter does: the last one that asks has our queue pair.
void Play::answer(bool yes) {
  while (const auto start = us_.socket.channels().take_start()) {
    FUZZ_CHECK(start->offer.session != 0);
    wdp::RdChannel* const by = us_.socket.channels().find(start->channel);
    if (start->word == RdStreamWord::cancel) {
      us_.socket.channels().cancelled(*start);
    } else if (yes && by != nullptr && by->is_usable() && start->index == kOurs) {
      end_ = nullptr;
      error_ = 0;
      end_ = std::make_unique<End>(us_, ++sessions_);
      end_->stream.begin(start->offer, *by, kMost);
      end_->stream.reply(Buffer(200));
    }
  }
}

void Play::say(std::optional<RdStreamWord> word, uint32_t session, uint32_t number, Bytes payload) {
  wdp::RdChannel* by = peer_.socket.channels().find(back_);
  if (by == nullptr || !by->out().has_room(static_cast<uint32_t>(payload.size()))) return;
  const wdp::RdMessage m{
      .sidx = kTheirs,
      .didx = kOurs,
      .q_key = QKey{session},
      .immediate = word ? std::optional{static_cast<uint32_t>(*word)} : std::nullopt,
      .number = number,
      .length = static_cast<uint32_t>(payload.size())};
  std::copy(payload.begin(), payload.end(), by->out().send(m, wdp::kNoClient, 0));
}

void Play::say(Input& in, bool word) {
  const uint8_t bits = in.u8();
  const uint32_t ours = end_ != nullptr ? end_->offer.session : 0;
  const uint32_t session = (bits & 1) != 0 ? 0 : (bits & 2) != 0 ? 0x1234 : ours;
  const uint32_t number = (bits & 4) != 0 ? in.u16() * 64U : static_cast<uint32_t>(said_);
  Buffer payload;
  if (!word) {
    payload.resize(1 + size_t{in.u8()} * 5);
    if (session == ours) said_ += payload.size();
    return say(std::nullopt, session, number, payload);
  }
  if ((bits & 8) == 0) {
    RdOffer offer = kTheirOffer;
    if ((bits & 16) != 0) offer.session = in.u8();
    if ((bits & 32) != 0) offer.qpn = make_qpn(RdNode::kPort, in.u8());
    payload.resize(RdOffer::kSize);
    offer.encode(payload.data());
  }
  const Bytes more = in.take(in.u8() % 32);
  payload.insert(payload.end(), more.begin(), more.end());
  say(static_cast<RdStreamWord>(in.u8() % 9), session, number, payload);
}

void Play::step(Input& in) {
  const uint8_t first = in.u8();
  switch (static_cast<Step>((first & 0x1f) % kSteps)) {
    case Step::word:
      return say(in, true);
    case Step::data:
      return say(in, false);
    case Step::exchange:
      return talk(static_cast<uint32_t>(in.u16()) << 16 | in.u16());
    case Step::later:
      return later(kWaits[in.u8() % std::size(kWaits)]);
    case Step::ask:
      return ask();
    case Step::answer:
      return answer((first & 0x80) == 0);
    case Step::close:
      if (wdp::RdChannel* const c = channel()) c->close(now_);
      return;
    default:
      break;
  }
  if (end_ == nullptr) return;
  wdp::RdStream& s = end_->stream;
  switch (static_cast<Step>((first & 0x1f) % kSteps)) {
    case Step::send: {
      Buffer bytes(size_t{in.u8()} * 64);
      const IoVec one{bytes.data(), bytes.size()};
      if (s.begun() && s.has_channel()) (void)s.send({&one, 1});
      return;
    }
    case Step::read: {
      Buffer bytes(size_t{in.u8()} * 64);
      const IoVec one{bytes.data(), bytes.size()};
      read_ += s.read({&one, 1}).bytes;
      return;
    }
    case Step::end:
      return s.end();
    case Step::leave:
      return s.leave((first & 0x80) != 0);
    case Step::forsake:
      end_ = nullptr;
      error_ = 0;
      return;
    case Step::take_back:
      return s.cancel_request();
    default:
      return;
  }
}

// No more comes out than has gone in, an end is for good, and no stream speaks before it has begun.
void Play::check() {
  if (end_ == nullptr) return;
  const wdp::RdStream& s = end_->stream;
  FUZZ_CHECK(read_ + s.readable() <= said_);
  FUZZ_CHECK(error_ == 0 || s.error() == error_);
  error_ = s.error();
  FUZZ_CHECK(s.begun() || s.readable() == 0);
  FUZZ_CHECK(!s.peer_ended() || s.begun());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  log::set_level(log::Level::off);
  Input input{fuzz::as_bytes(data, size)};
  Play play(input.choice(Start::responder));
  play.check();
  while (!input.empty()) {
    play.step(input);
    play.check();
  }
  return 0;
}
