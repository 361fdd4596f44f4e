// A session, and what it makes of posted requests: tests of UcSendPath.
#pragma once

#include <gtest/gtest.h>
#include "tests/support/append.h"
#include "tests/support/uc_host.h"

#include "tests/support/uc_host.h"
#include "wdp/uc_send_path.h"
#include "wdp/uc_session.h"
#include "wire/wdp_crc.h"

namespace weft::wdp {

using test::Buffer;
using test::pattern_bytes;
using wire::Opcode;
using wire::WdpData;
using work::Operation;
using work::SendWqe;
using work::Status;

struct UcSendPathTest : ::testing::Test {
  UcSendPathTest() { configure({.max_payload = 248}); }  // STRIDE 192

  void configure(UcParameters p) {
    p.path.to = {Gid::from_ipv4(0x0a000002), 40000};
    p.peer_token = SessionToken{7};
    p.own_token = SessionToken{8};
    p.own_qpn = make_qpn(50000, 9);
    p.peer_qpn = make_qpn(40000, 5);
    p.first_psn = Psn{0xfffffffeU};
    p.peer_first_psn = Psn{1};
    host = std::make_unique<test::UcHost>();
    session = std::make_unique<UcSession>(*host, p, random, windows, now);
    session->open();
  }
  SendWqe& post(SendWqe w, Buffer& memory) {
    w.wr_id = ++posted;
    w.signaled = true;
    return host->host.post(w, {test::segment(host->host, memory)});
  }
  struct Datagram {
    Buffer bytes;
    WdpData header;
    Buffer payload;
  };
  // One train, if there is one.
  std::vector<Datagram> train() {
    Train t;
    std::vector<Datagram> all;
    if (!session->ready(now)) return all;
    session->fill(t, now);
    t.each_datagram([&](std::span<const IoVec> pieces) {
      Datagram& d = all.emplace_back();
      test::append(d.bytes, pieces);
      if (const auto h = WdpData::parse(d.bytes); h.ok()) d.header = *h;
      if (d.bytes.size() >= WdpData::kSize) {
        d.payload.assign(d.bytes.begin() + WdpData::kSize, d.bytes.end());
      }
    });
    return all;
  }
  // Everything, and the kernel takes it.
  std::vector<Datagram> say() {
    std::vector<Datagram> all;
    for (;;) {
      const auto some = train();
      if (some.empty()) return all;
      all.insert(all.end(), some.begin(), some.end());
      session->llp_took_all(now);
    }
  }
  // A request that is at fault itself: nothing goes out, and the session stays.
  void expect_failure() {
    EXPECT_TRUE(say().empty());
    EXPECT_EQ(host->send_failures, 1);
    EXPECT_FALSE(host->host.end);
  }
  std::vector<uint64_t> completed() const {
    std::vector<uint64_t> ids;
    for (const auto& d : host->host.sent) {
      EXPECT_EQ(d.status, Status::success) << d.wr_id;
      ids.push_back(d.wr_id);
    }
    return ids;
  }
  using Ids = std::vector<uint64_t>;

  SeededRandom random{5};
  SendWindows windows;
  Time now = Time::from_ns(1'000'000'000);
  std::unique_ptr<test::UcHost> host;
  std::unique_ptr<UcSession> session;
  uint64_t posted = 0;
  Buffer small = pattern_bytes(50, 1);
  Buffer large = pattern_bytes(500, 2);
};

}  // namespace weft::wdp
