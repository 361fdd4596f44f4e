// UD queue pairs behind a port, against anybody (spec/wdp-ud 3, spec/threats 4), from each state
// that they can be in. First byte: Start. Then steps. Nothing is ever said in answer.

#include "base/log.h"
#include "fuzz/support/input.h"
#include "fuzz/wdp/ud_member.h"
#include "tests/support/wdp_node.h"
#include "wire/wdp_crc.h"

namespace {

using namespace weft;
using fuzz::Input;
using fuzz::UdMember;
using fuzz::UdSaid;
using wire::WdpDrop;
using wire::WdpUd;

// New ones at the end, or the corpus changes its meaning.
enum class Start : uint8_t {
  nothing_posted,
  receives_posted,
  receive_too_small,
  in_a_group,
  own_memory_gone,
  in_error,
  out_of_receives,
  receive_kept,
  held,
  failing,
  resumed,
  two_in_a_group,
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
  attach,
  from_here,
  hold,
  fill,
  resume,
};
constexpr unsigned kSteps = 19;

const wdp::Endpoint kHere{Gid::from_ipv4(0x0a000001), 7471};
const wdp::Endpoint kThere{Gid::from_ipv4(0x0a000002), 41234};
const Gid kGroup = Gid::from_ipv4(0xef000001);
const Qpn kQpn = make_qpn(7471, 3);
const Qpn kNeighbour = make_qpn(7471, 4);
constexpr Time kNow = Time::from_ns(2'000'000'000);
constexpr size_t kSizes[] = {0, 1, 39, 40, 41, 100, 140, 600, 1440, 1480};

std::byte byte_of(size_t at, uint8_t salt) {
  return static_cast<std::byte>((at * 167 + salt * 13 + (at >> 8)) & 0xff);
}

class Play {
 public:
  explicit Play(Start start);

  void step(Input& in);
  void check();

 private:
  bool reached(Start start);
  void give(Bytes datagram, bool group);
  void count(Bytes datagram, uint64_t before, bool group);
  uint64_t counted() const { return all_counted() + node_.port.drops().total(); }
  uint64_t all_counted() const { return member_.counted() + neighbour_.counted(); }
  void say(uint8_t bits, size_t size, bool group, std::optional<uint8_t> damaged = {});
  void message(Input& in, bool group);
  void attach(UdMember& m);

  UdSaid said_;
  test::WdpNode node_{kHere, 3, Time::from_ns(1'000'000'000)};
  UdMember member_;
  UdMember neighbour_{kNeighbour, kThere, said_};  // known to the port in some states
  std::vector<UdMember*> group_;
  bool from_here_ = false;
};

Play::Play(Start start) : member_{kQpn, kThere, said_, start == Start::two_in_a_group} {
  node_.port.demux().add(kQpn, member_.queue());
  switch (start) {
    case Start::nothing_posted:
      return;
    case Start::receive_too_small:
      member_.post_receive(39);
      return;
    case Start::own_memory_gone:
      member_.post_receive(600);
      member_.deregister_all();
      return;
    case Start::out_of_receives:
      member_.post_receive(140);
      say(0, 100, false);
      break;
    case Start::receive_kept:
      member_.post_receive(140);
      say(0, 600, false);
      break;
    case Start::in_a_group:
      attach(member_);
      [[fallthrough]];
    case Start::receives_posted:
      for (const size_t n : {140, 600, 1480}) member_.post_receive(n);
      break;
    case Start::in_error:
      member_.post_send(1, 100);
      member_.fill();
      for (const size_t n : {140, 600, 1480}) member_.post_receive(n);
      break;
    case Start::held:
      member_.hold(true);
      member_.post_send(0, 100);
      member_.post_receive(140);
      break;
    case Start::failing:
      // The one at fault waits for the kernel to take the one before it.
      member_.post_send(0, 100);
      member_.post_send(1, 100);
      member_.fill();
      member_.post_receive(140);
      break;
    case Start::resumed:
      member_.post_send(1, 100);
      member_.post_send(0, 100);
      member_.send();
      member_.resume();
      member_.post_send(0, 140);
      member_.post_receive(140);
      break;
    case Start::two_in_a_group:
      node_.port.demux().add(kNeighbour, neighbour_.queue());
      for (UdMember* m : {&member_, &neighbour_}) {
        attach(*m);
        for (const size_t n : {600, 140}) m->post_receive(n);
      }
      break;
  }
  FUZZ_CHECK(reached(start));
}

// Of those that a mistake on the way would miss without a word.
bool Play::reached(Start start) {
  switch (start) {
    case Start::in_error:
      return member_.failed();
    case Start::out_of_receives:
      return member_.receives() == 0 && member_.queue().counters().messages_received == 1;
    case Start::receive_kept:
      return member_.receives() == 1 &&
             member_.queue().counters().drops.of(WdpDrop::receive_too_small) == 1;
    case Start::held:
      return member_.requests() == 1 && !member_.queue().ready({});
    case Start::failing:
      return member_.requests() == 2 && member_.train_waits() && !member_.failed();
    case Start::resumed:
      return member_.requests() == 1 && member_.queue().ready({});
    default:
      return true;
  }
}

void Play::attach(UdMember& m) {
  if (std::find(group_.begin(), group_.end(), &m) != group_.end()) return;
  group_.push_back(&m);
  node_.port.demux().attach(kGroup, m.queue());
}

void Play::give(Bytes datagram, bool group) {
  said_ = {.bytes = {datagram.begin(), datagram.end()},
           .how = {.from = from_here_ ? kHere : kThere,
                   .to = group ? kGroup : kHere.address,
                   .from_own_address = from_here_},
           .to_group = group};
  const auto copy = fuzz::exact(datagram, datagram.size());
  const uint64_t before = counted();
  if (group) {
    node_.port.received_by_group(copy, said_.how);
  } else {
    node_.port.received(copy, said_.how, kNow, node_);
  }
  count(datagram, before, group);
}

// Each datagram counts once, and once for each member where it reaches a group.
void Play::count(Bytes datagram, uint64_t before, bool group) {
  const auto common = wire::WdpCommon::parse(datagram);
  const auto ud = WdpUd::parse(datagram);
  if (group) {
    const bool reaches = ud.ok() && ud->multicast();
    FUZZ_CHECK(counted() == before + (reaches ? group_.size() : 1));
  } else if (common.ok() && common->wdp_class == wire::WdpClass::ud) {
    FUZZ_CHECK(counted() == before + 1);
  }
}

// `damaged`: this byte, on its way.
void Play::say(uint8_t bits, size_t size, bool group, std::optional<uint8_t> damaged) {
  std::vector<std::byte> b(WdpUd::kSize + size);
  WdpUd{.flags = {.crc = (bits & 1) != 0, .immediate = (bits & 2) != 0},
        .q_key = (bits & 4) != 0 ? QKey{UdMember::kKey.value() + 1} : UdMember::kKey,
        .source = (bits & 8) != 0 ? kQpn : Qpn{0x654321},
        .destination = group != ((bits & 16) != 0) ? wire::kMulticastQpn : kQpn,
        .msn = Msn{bits},
        .solicited = (bits & 32) != 0,
        .length = static_cast<uint16_t>(size),
        .imm = 77}
      .encode(b.data());
  for (size_t i = 0; i < size; ++i) b[WdpUd::kSize + i] = byte_of(i, bits);
  if ((bits & 1) != 0) wire::seal_wdp(b);
  if (damaged) b[*damaged % b.size()] ^= std::byte{1};
  give(b, group);
}

void Play::message(Input& in, bool group) {
  const uint8_t bits = in.u8();
  const size_t size = kSizes[in.u8() % std::size(kSizes)];
  std::optional<uint8_t> damaged;
  if ((bits & 64) != 0) damaged = in.u8();
  say(bits, size, group, damaged);
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
      const auto again = said_.bytes;
      return give(again, said_.to_group);
    }
    case Step::post_receive:
      return member_.post_receive(kSizes[in.u8() % std::size(kSizes)]);
    case Step::deregister:
      return member_.deregister(in.u8());
    case Step::post_send: {
      const uint8_t bits = in.u8();
      return member_.post_send(bits, kSizes[in.u8() % std::size(kSizes)]);
    }
    case Step::send:
      return member_.send();
    case Step::own_memory_lost:
      return member_.own_memory_lost();
    case Step::set_q_key:
      return member_.queue().set_q_key(QKey{UdMember::kKey.value() + (in.flag() ? 1U : 0U)});
    case Step::flush:
      return member_.flush();
    case Step::detach:
      std::erase(group_, &member_);
      return node_.port.demux().detach(kGroup, member_.queue());
    case Step::attach:
      return attach(member_);
    case Step::from_here:
      from_here_ = in.flag();
      return;
    case Step::hold:
      return member_.hold((first & 32) != 0);
    case Step::fill:
      return member_.fill();
    case Step::resume:
      return member_.resume();
  }
}

void Play::check() {
  // "Errors never produce packets": and nothing else of UD does. CTL are for uc_listener.
  const auto common = wire::WdpCommon::parse(said_.bytes);
  const bool ud = common.ok() && common->wdp_class == wire::WdpClass::ud;
  FUZZ_CHECK(node_.port.deadline().is_never() && !(ud && node_.port.ready()));
  node_.said(kNow);
  member_.check();
  neighbour_.check();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  log::set_level(log::Level::off);
  Input input{fuzz::as_bytes(data, size)};
  Play play(input.choice(Start::two_in_a_group));
  play.check();
  while (!input.empty()) {
    play.step(input);
    play.check();
  }
  return 0;
}
