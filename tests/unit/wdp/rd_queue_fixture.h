// Two hosts with a queue pair of type RD each.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "tests/support/rd_messages.h"
#include "tests/unit/wdp/rd_two_nodes.h"
#include "wdp/rd_queue.h"
#include "wire/wdp_data.h"

namespace weft::wdp {

struct RdQueueTest : RdTwoNodes {
  test::RdNode::Member& p = a.add_member(1);
  test::RdNode::Member& q = b.add_member(2);

  // Its messages, by opcode, of one of the two.
  static Watch count(std::map<wire::Opcode, int>& seen, bool of_a) {
    return [&seen, of_a](bool from_a, const test::Buffer& bytes) {
      if (from_a != of_a) return true;
      for (const auto& m : test::messages_in(bytes)) ++seen[m.header.opcode];
      return true;
    };
  }
  // The responses of b's queue pairs, which are sent in messages of this opcode.
  static Watch keep_responses(std::vector<wire::WdpResponse>& said) {
    return [&said](bool from_a, const test::Buffer& bytes) {
      for (const auto& m : test::messages_in(bytes)) {
        if (from_a || m.header.opcode != wire::Opcode::terminate) continue;
        for (size_t at = 0; at < m.payload.size(); at += wire::WdpResponse::kSize) {
          said.push_back(wire::WdpResponse::parse(m.payload.data() + at));
        }
      }
      return true;
    };
  }
  void expect_all(test::RdNode::Member& m, work::Status status) {
    ASSERT_EQ(m.host.sent.size(), m.posted);
    for (const auto& d : m.host.sent) EXPECT_EQ(d.status, status) << d.wr_id;
  }
  // As a test's peer would say it to b's queue pair.
  void tell(test::RdNode::Member& m, const wire::WdpResponse& r) {
    m.queue->answered(m.node.links.front().channel, r);
  }
};

}  // namespace weft::wdp
