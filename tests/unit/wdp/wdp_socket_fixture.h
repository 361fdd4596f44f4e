// Two hosts with a socket each, for the tests of wdp::WdpSocket.
#pragma once

#include <gtest/gtest.h>

#include "tests/support/wdp_node.h"

namespace weft::wdp {

using test::Buffer;
using test::pattern_bytes;
using test::WdpNode;
using wire::CtlType;
using wire::RejReason;
using wire::WdpCtl;
using wire::WdpDrop;
using work::Operation;

inline const Endpoint kA{Gid::from_ipv4(0x0a000001), 50000};
inline const Endpoint kB{Gid::from_ipv4(0x0a000002), 7471};
inline const Endpoint kStranger{Gid::from_ipv4(0x0a000003), 50000};

struct PortTest : ::testing::Test {
  Offer offer_of_a() {
    return {.own_qpn = make_qpn(kA.port, 9),
            .first_psn = Psn{100},
            .ird = 4,
            .ord = 4,
            .features = {.immediate = true, .uc_read = true},
            .private_data = pattern_bytes(20, 1)};
  }
  // Its QPN belongs to another socket of the process.
  Offer offer_of_b() {
    return {.own_qpn = make_qpn(40000, 5),
            .first_psn = Psn{200},
            .ird = 4,
            .ord = 4,
            .features = {.immediate = true, .uc_read = true}};
  }
  // Until nobody has anything to say. `watch` may lose a datagram.
  void talk(const std::function<bool(bool from_a, const Buffer&)>& watch = {}) {
    for (bool any = true; any;) {
      any = false;
      for (const bool from_a : {true, false}) {
        for (const auto& d : (from_a ? a : b).said(now)) {
          any = true;
          if (watch && !watch(from_a, d.bytes)) continue;
          EXPECT_EQ(d.to, from_a ? kB : kA);
          (from_a ? b : a).hear(d.bytes, from_a ? kA : kB, now);
        }
      }
    }
  }
  void later(Duration d) {
    for (const Time end = now + d; now < end;) {
      now = std::min({end, std::max(a.deadline(), now + 1ns), std::max(b.deadline(), now + 1ns)});
      a.tick(now);
      b.tick(now);
      talk();
    }
  }
  WdpNode::Peer& call() {
    auto& p = a.add_peer();
    a.port.connect(p.connection, offer_of_a(), {.to = kB}, Qpn{}, false, now);
    return p;
  }
  WdpNode::Peer& accept() {
    auto& p = b.add_peer();
    EXPECT_TRUE(b.port.accept(b.requests.back().key, p.connection, offer_of_b(), now));
    return p;
  }
  void stand() {
    caller = &call();
    talk();
    ASSERT_EQ(b.requests.size(), 1U);
    callee = &accept();
    talk();
    ASSERT_EQ(caller->connection.state(), UcConnection::State::open);
    ASSERT_EQ(callee->connection.state(), UcConnection::State::open);
  }
  void exchange(WdpNode::Peer& from, WdpNode::Peer& to) {
    const size_t before = to.host.host.received.size();
    to.host.host.post_receive(3, {test::segment(to.host.host, room)});
    from.host.host.post({.operation = Operation::send}, {test::segment(from.host.host, text)});
    talk();
    ASSERT_EQ(to.host.host.received.size(), before + 1);
    EXPECT_TRUE(std::equal(text.begin(), text.end(), room.begin()));
  }
  static WdpCtl parse(const Buffer& d) { return *WdpCtl::parse(d); }
  // A REQ as a stranger might make it.
  static Buffer request(uint32_t token, uint32_t xid, const std::function<void(WdpCtl&)>& f = {}) {
    WdpCtl c{.type = CtlType::req,
             .sidx = 9,
             .source_token = SessionToken{token},
             .source = make_qpn(50000, 9),
             .xid = Xid{xid},
             .service = wire::CtlService::uc,
             .max_payload = 1472};
    if (f) f(c);
    Buffer b(c.size());
    c.encode(b.data());
    return b;
  }

  Time now = Time::from_ns(1'000'000'000);
  WdpNode a{kA, 1, now};
  WdpNode b{kB, 2, now};
  WdpNode::Peer* caller = nullptr;
  WdpNode::Peer* callee = nullptr;
  Buffer text = pattern_bytes(3000, 7);
  Buffer room = Buffer(4000);
};

}  // namespace weft::wdp
