// Two handshakes that hear each other only as far as a test lets them.
#pragma once

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/support/host.h"
#include "wdp/handshake.h"

namespace weft::wdp {

using Failure = Handshake::Failure;
using test::Buffer;
using test::pattern_bytes;
using wire::CtlType;
using wire::RejReason;
using wire::WdpCtl;

inline const Endpoint kActive{Gid::from_ipv4(0x0a000001), 50000};
inline const Endpoint kPassive{Gid::from_ipv4(0x0a000002), 7471};

struct Said {
  Buffer bytes;
  WdpCtl ctl;
};

struct HandshakeTest : ::testing::Test {
  Offer active_offer() {
    return {.own_qpn = make_qpn(50000, 9),
            .token = SessionToken{0xa1},
            .first_psn = Psn{100},
            .ird = 4,
            .ord = 8,
            .max_payload = 1472,
            .features = {.immediate = true, .uc_read = true},
            .private_data = pattern_bytes(20, 1)};
  }
  Offer passive_offer() {
    return {.own_qpn = make_qpn(40000, 5),
            .token = SessionToken{0xb2},
            .first_psn = Psn{200},
            .ird = 3,
            .ord = 16,
            .max_payload = 8972,
            .features = {.data_crc = true, .immediate = true, .uc_read = true},
            .private_data = pattern_bytes(30, 2)};
  }
  void connect() { a.connect(active_offer(), {.to = kPassive}, Qpn{}, false, now); }
  std::vector<Said> said(Handshake& h) {
    std::vector<Said> all;
    while (h.ready()) {
      Train t;
      h.fill(t);
      const auto* p = static_cast<const std::byte*>(t.pieces()[0].iov_base);
      all.push_back({Buffer(p, p + t.bytes()), {}});
    }
    // Only now, for they refer to the bytes.
    for (Said& s : all) s.ctl = *WdpCtl::parse(s.bytes);
    return all;
  }
  // The one message that it says, of this type.
  Said one(Handshake& h, CtlType type) {
    auto all = said(h);
    EXPECT_EQ(all.size(), 1U);
    if (all.empty()) return {};
    EXPECT_EQ(all[0].ctl.type, type);
    return std::move(all[0]);
  }
  void request(const Said& req, bool validated = false) {
    b.requested(req.ctl, {.to = kActive}, req.bytes.size(), validated);
  }
  void hear(Handshake& h, const Said& s) {
    EXPECT_TRUE(h.received(s.ctl, s.bytes.size(), now).ok());
  }
  void later(Handshake& h, Duration d) {
    now = now + d;
    h.tick(now);
  }

  SeededRandom random{3};
  Time now = Time::from_ns(1'000'000'000);
  Handshake a{random};
  Handshake b{random};
};

}  // namespace weft::wdp
