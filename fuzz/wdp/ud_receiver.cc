// UD queue pairs behind a port, against anybody (wire.md 10, part IV), from each state that they
// can be in. First byte: Start. Then steps. Nothing is ever said in answer.

#include <list>

#include "base/log.h"
#include "fuzz/rdmap/area.h"
#include "fuzz/support/input.h"
#include "tests/support/host.h"
#include "tests/support/wdp_node.h"
#include "wire/grh.h"
#include "wire/wdp_crc.h"

namespace {

using namespace weft;
using fuzz::Area;
using fuzz::Input;
using rdmap::Status;
using wire::Grh;
using wire::WdpUd;

enum class Start : uint8_t {
  nothing_posted,
  receives_posted,
  receive_too_small,
  in_a_group,
  own_memory_gone,
  in_error,
};

// New ones at the end, or the corpus changes its meaning.
enum class Step : uint8_t {
  bytes,
  header,
  message,
  group_message,
  group_bytes,
  repeat,
  post_receive,
  deregister,
  post_send,
  send,
  own_memory_lost,
  set_q_key,
  flush,
  detach,
};
constexpr unsigned kSteps = 14;

const wdp::Endpoint kHere{Gid::from_ipv4(0x0a000001), 7471};
const wdp::Endpoint kThere{Gid::from_ipv4(0x0a000002), 41234};
const Gid kGroup = Gid::from_ipv4(0xef000001);
const Qpn kQpn = make_qpn(7471, 3);
constexpr size_t kSizes[] = {0, 1, 39, 40, 41, 100, 140, 600, 1440, 1480};

std::byte byte_of(size_t at, uint8_t salt) {
  return static_cast<std::byte>((at * 167 + salt * 13 + (at >> 8)) & 0xff);
}

class Play final : public wdp::UdConsumer {
 public:
  explicit Play(Start start);

  void step(Input& in);
  void check();

  // wdp::UdConsumer
  rdmap::Memory& memory() override { return host_.memory(); }
  rdmap::SendQueue& send_queue() override { return host_.send_queue(); }
  Result<const wdp::UdDestination*, Status> destination(const rdmap::SendWqe& w) override {
    if (w.remote_to.value() == 0) return fail(Status::local_qp_operation);
    return &to_;
  }
  bool take_receive(rdmap::Receive& out) override { return host_.take_receive(out); }
  void receive_done(const rdmap::Receive& r, Status s, const wdp::UdArrival& a) override;
  void send_done(const rdmap::SendWqe& w, Status) override { FUZZ_CHECK(w.wr_id == done_sends_++); }
  void send_failed() override { FUZZ_CHECK(++failures_ == 1); }

 private:
  const wdp::UdDestination to_{.path = {.to = kThere}, .qpn = Qpn{0x123456}, .q_key = QKey{1}};
  void give(Bytes datagram, bool group);
  void message(Input& in, bool group);
  void post_receive(size_t size);
  void post_send(uint8_t bits, size_t size);

  test::Host host_;
  test::WdpNode node_{kHere, 3, Time::from_ns(1'000'000'000)};
  wdp::UdQueue queue_{*this, {.own_qpn = kQpn, .q_key = QKey{0x1111}}};
  std::list<Area> rooms_;    // of receives
  std::list<Area> sources_;  // of Sends
  std::vector<std::byte> last_;
  bool last_to_group_ = false;
  uint64_t posted_ = 0;
  uint64_t done_ = 0;
  uint64_t posted_sends_ = 0;
  uint64_t done_sends_ = 0;
  int failures_ = 0;
};

Play::Play(Start start) {
  node_.port.demux().add(kQpn, queue_);
  switch (start) {
    case Start::nothing_posted:
      return;
    case Start::receive_too_small:
      post_receive(39);
      return;
    case Start::in_a_group:
      node_.port.demux().attach(kGroup, queue_);
      break;
    case Start::receives_posted:
      break;
    case Start::own_memory_gone:
      post_receive(600);
      host_.regions.clear();
      return;
    case Start::in_error:
      post_send(2, 100);
      wdp::Train t;
      queue_.fill(t);
      break;
  }
  for (const size_t n : {140, 600, 1480}) post_receive(n);
}

void Play::post_receive(size_t size) {
  if (posted_ - done_ > 50) return;
  Area& a = rooms_.emplace_back(size);
  const auto address = reinterpret_cast<uintptr_t>(a.data());
  const Stag key{0x8000U + static_cast<uint32_t>(posted_)};
  host_.regions[key] = {a.data(), address, size, 1};
  // In two pieces, cut in the middle of the GRH where it is long enough.
  const auto cut = static_cast<uint32_t>(std::min<size_t>(size, 30));
  host_.post_receive(
      posted_++, {{address, cut, key}, {address + cut, static_cast<uint32_t>(size) - cut, key}});
}

void Play::post_send(uint8_t bits, size_t size) {
  if (failures_ > 0 || posted_sends_ - done_sends_ > 50) return;
  Area& a = sources_.emplace_back(size);
  const auto address = reinterpret_cast<uintptr_t>(a.data());
  const Stag key{0x4000U + static_cast<uint32_t>(posted_sends_)};
  if ((bits & 1) == 0) host_.regions[key] = {a.data(), address, size, 1};
  host_.post(
      {.wr_id = posted_sends_++,
       .operation = (bits & 4) != 0 ? rdmap::Operation::send_immediate : rdmap::Operation::send,
       .signaled = true,
       .remote_to = TaggedOffset{(bits & 2) != 0 ? 0U : 1U}},
      {{address, static_cast<uint32_t>(size), key}});
}

void Play::receive_done(const rdmap::Receive& r, Status s, const wdp::UdArrival& a) {
  // Any order would be a mistake but that of posting.
  FUZZ_CHECK(r.wr_id >= done_);
  done_ = r.wr_id + 1;
  if (s != Status::success) return;
  FUZZ_CHECK(a.length >= Grh::kSize && a.length <= r.length);
  std::vector<std::byte> got;
  for (uint32_t i = 0; i < r.segments; ++i) {
    const auto* p = reinterpret_cast<const std::byte*>(r.segment[i].address);
    got.insert(got.end(), p, p + r.segment[i].length);
  }
  const Grh grh = Grh::parse(got.data());
  FUZZ_CHECK(grh.payload_length == a.length - Grh::kSize);
  FUZZ_CHECK(grh.source == kThere.address && a.from == kThere);
  const Bytes payload = Bytes{last_}.subspan(WdpUd::kSize);
  FUZZ_CHECK(fuzz::same(payload, Bytes{got}.subspan(Grh::kSize, a.length - Grh::kSize)));
  FUZZ_CHECK(load_be<uint32_t>(last_.data() + 4) == queue_.q_key().value());
}

void Play::give(Bytes datagram, bool group) {
  last_.assign(datagram.begin(), datagram.end());
  last_to_group_ = group;
  const auto copy = fuzz::exact(datagram, datagram.size());
  const wdp::UdReception how{.from = kThere, .to = group ? kGroup : kHere.address};
  if (group) {
    node_.port.received_by_group(copy, how);
  } else {
    node_.port.received(copy, how, Time::from_ns(2'000'000'000));
  }
}

void Play::message(Input& in, bool group) {
  const uint8_t bits = in.u8();
  const size_t size = kSizes[in.u8() % std::size(kSizes)];
  std::vector<std::byte> b(WdpUd::kSize + size);
  WdpUd{.flags = {.crc = (bits & 1) != 0, .immediate = (bits & 2) != 0},
        .q_key = QKey{(bits & 4) != 0 ? 0x1112U : 0x1111U},
        .source = (bits & 8) != 0 ? kQpn : Qpn{0x654321},
        .destination = group != ((bits & 16) != 0) ? wire::kMulticastQpn : kQpn,
        .msn = Msn{bits},
        .solicited = (bits & 32) != 0,
        .length = static_cast<uint16_t>(size),
        .imm = 77}
      .encode(b.data());
  for (size_t i = 0; i < size; ++i) b[WdpUd::kSize + i] = byte_of(i, bits);
  if ((bits & 1) != 0) wire::seal_wdp(b);
  if ((bits & 64) != 0) b[in.u8() % b.size()] ^= std::byte{1};
  give(b, group);
}

void Play::step(Input& in) {
  const uint8_t first = in.u8();
  switch (static_cast<Step>((first & 31U) % kSteps)) {
    case Step::bytes:
      return give(in.take(in.u8()), false);
    case Step::group_bytes:
      return give(in.take(in.u8()), true);
    case Step::header: {
      std::vector<std::byte> b(WdpUd::kSize + kSizes[in.u8() % std::size(kSizes)]);
      const Bytes header = in.take(WdpUd::kSize);
      std::copy(header.begin(), header.end(), b.begin());
      b[0] = std::byte{0xd1};
      if ((first & 32) != 0)
        store_be(b.data() + 26, static_cast<uint16_t>(b.size() - WdpUd::kSize));
      return give(b, (first & 64) != 0);
    }
    case Step::message:
      return message(in, false);
    case Step::group_message:
      return message(in, true);
    case Step::repeat: {
      const auto again = last_;
      return give(again, last_to_group_);
    }
    case Step::post_receive:
      return post_receive(kSizes[in.u8() % std::size(kSizes)]);
    case Step::deregister:
      host_.regions.erase(Stag{0x8000U + in.u8()});
      return;
    case Step::post_send: {
      const uint8_t bits = in.u8();
      return post_send(bits, kSizes[in.u8() % std::size(kSizes)]);
    }
    case Step::send: {
      wdp::Train t;
      queue_.fill(t);
      t.each_datagram([](std::span<const IoVec> pieces) {
        std::vector<std::byte> d;
        for (const IoVec& v : pieces) {
          const auto* p = static_cast<const std::byte*>(v.iov_base);
          d.insert(d.end(), p, p + v.iov_len);
        }
        FUZZ_CHECK(WdpUd::parse(d).ok());
      });
      return queue_.llp_took_all();
    }
    case Step::own_memory_lost: {
      wdp::Train t;
      queue_.fill(t);
      return queue_.own_memory_lost();
    }
    case Step::set_q_key:
      return queue_.set_q_key(QKey{in.flag() ? 0x1112U : 0x1111U});
    case Step::flush:
      if (const auto r = queue_.abandon_receive()) done_ = r->wr_id + 1;
      return;
    case Step::detach:
      return node_.port.demux().detach(kGroup, queue_);
  }
}

void Play::check() {
  // "Errors never produce packets": and nothing else of UD does. CTL are for uc_listener.
  const auto common = wire::WdpCommon::parse(last_);
  const bool ud = common.ok() && common->wdp_class == wire::WdpClass::ud;
  FUZZ_CHECK(node_.port.deadline().is_never() && !(ud && node_.port.ready()));
  node_.said(Time::from_ns(2'000'000'000));
  uint64_t i = 0;
  for (const Area& a : rooms_) {
    FUZZ_CHECK(a.guards_intact());
    if (i++ >= done_) FUZZ_CHECK(a.untouched());
  }
  for (const Area& a : sources_) FUZZ_CHECK(a.guards_intact() && a.untouched());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  log::set_level(log::Level::off);
  Input input{fuzz::as_bytes(data, size)};
  Play play(input.choice(Start::in_error));
  play.check();
  while (!input.empty()) {
    play.step(input);
    play.check();
  }
  return 0;
}
