// Connections over channels (spec/wdp-rd 7), one after the other, between hosts on a network that
// loses, doubles and reorders: hosts are killed and begin anew on their port, channels end for want
// of messages at any moment, and strangers call in a peer's name. Both ends agree over something
// else, as they do over TCP. Whatever was before, the next connection carries its bytes, soon. All
// randomness comes from the seed.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "base/draw.h"
#include "sim/seeds.h"
#include "tests/support/rd_hosts.h"
#include "wdp/rd_stream.h"

namespace weft::test {
namespace {

using namespace std::chrono_literals;

constexpr size_t kHosts = 3;
constexpr size_t kMost = 1000;  // bytes of a datagram
constexpr size_t kEach = 4000;  // bytes of a connection, each way
// Less than 12.7 s, when a call ends, and 15 s, when silence does.
constexpr Duration kSoon = 8s;

// One end. Sends its bytes and reads the peer's.
struct End final : wdp::RdStreamOwner {
  End(Hosts& of, uint8_t number, uint8_t index, uint32_t session, size_t seed)
      : hosts(of),
        host(number),
        offer{.qpn = make_qpn(RdNode::kPort, index), .session = session},
        stream(of.host(number).socket.channels(), *this, offer),
        out(pattern_bytes(kEach, seed)) {}
  void stream_changed() override {}

  void begin(const End& peer) {
    stream.begin(peer.offer,
                 {.to = RdNode::address_of(peer.host), .from = RdNode::address_of(host).address},
                 kMost);
  }
  // What there is to be done. The caller alone opens channels.
  void serve(bool calls) {
    if (calls && stream.needs_channel()) {
      hosts.host(host).open(stream.path(), hosts.scheduler.now());
    }
    if (stream.has_channel() && (calls || !in.empty()) && sent < out.size()) {
      const IoVec rest{out.data() + sent, out.size() - sent};
      sent += stream.send({&rest, 1}).bytes;
    }
    Buffer more(kEach);
    const IoVec room{more.data(), more.size()};
    more.resize(stream.read({&room, 1}).bytes);
    in.insert(in.end(), more.begin(), more.end());
    hosts.wake(host);
  }

  Hosts& hosts;
  const uint8_t host;
  const wire::RdOffer offer;
  wdp::RdStream stream;
  Buffer out;
  size_t sent = 0;
  Buffer in;
};

// A REQ in the name of `from`.
void call_in_its_name(Hosts& hosts, uint8_t from, uint8_t to) {
  SeededRandom& random = hosts.random();
  const wire::WdpCtl c{.type = wire::CtlType::req,
                       .source_token = SessionToken{static_cast<uint32_t>(random.next() | 1)},
                       .source = make_qpn(RdNode::kPort, 0),
                       .destination = make_qpn(RdNode::kPort, 0),
                       .xid = Xid{static_cast<uint32_t>(random.next() >> draw_below(random, 64))},
                       .service = wire::CtlService::rd_channel,
                       .ib_style = true,
                       .max_payload = 1472,
                       .first_psn = Psn{static_cast<uint32_t>(random.next())}};
  Buffer d(c.size());
  c.encode(d.data());
  hosts.host(to).hear(d, RdNode::address_of(from), hosts.scheduler.now());
  hosts.wake(to);
}

void connect(Hosts& hosts, uint8_t from, uint8_t to, uint32_t number) {
  SeededRandom& random = hosts.random();
  const auto index = static_cast<uint8_t>(10 + number % 200);
  End active{hosts, from, index, 2 * number, number};
  End passive{hosts, to, index, 2 * number + 1, number + 7};
  // The Responder knows the Initiator's queue pair a little later than this one knows its.
  active.begin(passive);
  hosts.wake(from);
  hosts.scheduler.run_for(draw_up_to(random, 2ms));
  passive.begin(active);
  hosts.wake(to);
  hosts.scheduler.run_for(draw_up_to(random, 2ms));
  if (draw_chance(random, 0.3)) call_in_its_name(hosts, from, to);
  if (draw_chance(random, 0.3)) call_in_its_name(hosts, to, from);
  const auto complete = [&] {
    active.serve(true);
    passive.serve(false);
    return active.stream.error() != 0 || passive.stream.error() != 0 ||
           (active.in.size() == kEach && passive.in.size() == kEach);
  };
  ASSERT_TRUE(hosts.scheduler.run_until(complete, kSoon));
  ASSERT_EQ(active.stream.error(), 0);
  ASSERT_EQ(passive.stream.error(), 0);
  ASSERT_EQ(active.in, passive.out);
  ASSERT_EQ(passive.in, active.out);
  active.stream.leave(false);
  passive.stream.leave(false);
  hosts.wake(from);
  hosts.wake(to);
}

TEST(ReliableConnections, TheNextOneIsSoonThereWhateverWasBefore) {
  for (const uint64_t seed : sim::seeds(100)) {
    WEFT_SIM_TRACE(seed);
    Hosts hosts(seed, kHosts, bad_network(seed), Hosts::Type::ud, seed % 2 == 0);
    SeededRandom& random = hosts.random();
    for (uint32_t i = 1; i <= 20; ++i) {
      const auto from = static_cast<uint8_t>(1 + draw_below(random, kHosts));
      const auto to = static_cast<uint8_t>(1 + (from + draw_below(random, kHosts - 1)) % kHosts);
      if (draw_chance(random, 0.3)) call_in_its_name(hosts, from, to);
      if (draw_chance(random, 0.3)) hosts.restart(to);
      if (draw_chance(random, 0.1)) hosts.restart(from);
      // About when the channel of the last one ends.
      if (draw_chance(random, 0.5)) {
        hosts.scheduler.run_for(wdp::kIdleChannel - 2ms + draw_up_to(random, 4ms));
      }
      connect(hosts, from, to, i);
      if (HasFatalFailure()) return;
      if (draw_chance(random, 0.5)) hosts.scheduler.run_for(draw_up_to(random, 10ms));
    }
  }
}

}  // namespace
}  // namespace weft::test
