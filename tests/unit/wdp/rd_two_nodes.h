// Two hosts with channels against each other, without a network.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "tests/support/rd_node.h"

namespace weft::wdp {

struct RdTwoNodes : ::testing::Test {
  using Watch = std::function<bool(bool from_a, const test::Buffer&)>;
  // What a router makes of the traffic class of a datagram; none: it drops that.
  using Router = std::function<std::optional<uint8_t>(bool from_a, uint8_t traffic_class)>;

  // Until nobody has anything to say. `watch` may lose a datagram.
  void talk(const Watch& watch = {}) {
    for (bool any = true; any;) {
      any = false;
      for (const bool from_a : {true, false}) {
        if (from_a ? a_gone : b_gone) continue;
        for (const auto& d : (from_a ? a : b).said(now)) {
          any = true;
          if (watch && !watch(from_a, d.bytes)) continue;
          const auto traffic_class =
              router ? router(from_a, d.traffic_class) : std::optional{d.traffic_class};
          if (!traffic_class) continue;
          test::RdNode& to = d.to == a.address ? a : b;
          if ((&to == &a && a_gone) || (&to == &b && b_gone)) continue;
          to.hear(d.bytes, from_a ? a.address : b.address, now, *traffic_class);
        }
      }
    }
  }
  void later(Duration d, const Watch& watch = {}) {
    for (const Time end = now + d; now < end;) {
      const Duration least = std::chrono::nanoseconds{1};
      now =
          std::min({end, std::max(a.deadline(), now + least), std::max(b.deadline(), now + least)});
      a.tick(now);
      b.tick(now);
      talk(watch);
    }
  }

  static constexpr uint8_t kA = 1;
  static constexpr uint8_t kB = 2;
  Time now = Time::from_ns(1'000'000'000);
  test::RdNode a{kA, 1, now};
  test::RdNode b{kB, 2, now};
  Router router;
  bool a_gone = false;
  bool b_gone = false;
};

}  // namespace weft::wdp
