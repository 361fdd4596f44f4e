// Two hosts with a queue pair of UD each, and the channel between them.
#pragma once

#include "tests/unit/wdp/rd_two_nodes.h"

namespace weft::wdp {

struct RdChannelTest : RdTwoNodes {
  // A's first message has come, and is acknowledged.
  void stand() {
    q.post_receives(1);
    p.send(kB, 5, text);
    talk();
    later(1ms);
    ASSERT_EQ(q.received.size(), 1U);
    ASSERT_EQ(p.host.sent.size(), 1U);
    q.received.clear();
    p.host.sent.clear();
    ASSERT_EQ(a.links.size(), 1U);
    ASSERT_EQ(b.links.size(), 1U);
  }
  RdChannel& of_a() { return a.links.front().channel; }
  RdChannel& of_b() { return b.links.front().channel; }
  static wire::WdpClass class_of(const test::Buffer& d) {
    return wire::WdpCommon::parse(d)->wdp_class;
  }
  static bool is_data(const test::Buffer& d) { return class_of(d) == wire::WdpClass::rd; }
  static bool is_ack(const test::Buffer& d) { return class_of(d) == wire::WdpClass::rd_ack; }
  static bool is_ctl(const test::Buffer& d, wire::CtlType type) {
    return class_of(d) == wire::WdpClass::ctl && wire::WdpCtl::parse(d)->type == type;
  }
  static uint64_t drops(test::RdNode& n, wire::WdpDrop why) {
    return n.socket.channels().drops().of(why);
  }

  test::RdNode::Pair& p = a.add_pair(3);
  test::RdNode::Pair& q = b.add_pair(5);
  test::Buffer text = test::pattern_bytes(1000, 7);
};

}  // namespace weft::wdp
