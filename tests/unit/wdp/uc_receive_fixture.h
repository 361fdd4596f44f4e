// What the tests of wdp::UcReceivePath share: a session, and a peer that says whatever the test
// likes.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <list>

#include "tests/support/append.h"
#include "tests/support/uc_host.h"
#include "wdp/uc_session.h"
#include "wire/wdp_crc.h"

namespace weft::wdp {

using test::Buffer;
using test::pattern_bytes;
using wire::Opcode;
using wire::WdpData;
using wire::WdpDrop;

class UcReceiveTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kFirstPsn = 1000;
  static constexpr uint16_t kStride = 100;

  UcReceiveTest() { configure({}); }

  void configure(UcParameters p) {
    p.path.to = {Gid::from_ipv4(0x0a000002), 40000};
    p.peer_token = SessionToken{7};
    p.own_token = SessionToken{8};
    p.own_qpn = make_qpn(50000, 9);
    p.peer_qpn = make_qpn(40000, 5);
    if (!p.is_static) p.peer_first_psn = Psn{kFirstPsn};
    p.ird = p.ord = 4;
    host = std::make_unique<test::UcHost>();
    session = std::make_unique<UcSession>(*host, p, random, windows, now);
    session->open();
    target = pattern_bytes(4000, 77);
    before = target;
    stag = host->host.add_region(target);
    psn = kFirstPsn;
    receives.clear();
    posted = 0;
  }

  // --- the peer
  struct Message {
    Opcode opcode = Opcode::send;
    uint32_t msn = 1;
    Buffer content;
    std::optional<uint32_t> immediate = {};
    Stag stag = {};
    uint64_t to = 0;
    bool write_se = false;
    uint16_t stride = kStride;
    bool crc = false;
  };
  // The datagrams of a message, with the next PSNs.
  std::vector<Buffer> cut(const Message& m) {
    std::vector<Buffer> all;
    size_t mo = 0;
    do {
      const size_t n = std::min<size_t>(m.stride, m.content.size() - mo);
      const bool tagged = m.opcode == Opcode::write;
      all.push_back(encode({.flags = {.crc = m.crc, .immediate = m.immediate.has_value()},
                            .psn = Psn{psn++},
                            .msn = Msn{m.msn},
                            .mo = MessageOffset{static_cast<uint32_t>(mo)},
                            .mlen = static_cast<uint32_t>(m.content.size()),
                            .last = mo + n == m.content.size(),
                            .write_se = m.write_se,
                            .opcode = m.opcode,
                            .stride = m.stride,
                            .stag = m.stag,
                            .imm_or_read = m.immediate.value_or(0),
                            .to = TaggedOffset{tagged ? m.to + mo : 0}},
                           Bytes{m.content}.subspan(mo, n)));
      mo += n;
    } while (mo < m.content.size());
    return all;
  }
  static Buffer encode(const WdpData& d, Bytes payload) {
    Buffer b(WdpData::kSize + payload.size());
    d.encode(b.data());
    std::copy(payload.begin(), payload.end(), b.begin() + WdpData::kSize);
    if (d.flags.crc) wire::seal_wdp(b);
    return b;
  }
  void give(const Buffer& datagram) {
    const auto common = wire::WdpCommon::parse(datagram);
    ASSERT_TRUE(common.ok());
    session->received(*common, datagram, now);
  }
  void give(const std::vector<Buffer>& datagrams) {
    for (const Buffer& d : datagrams) give(d);
  }
  // The same in two steps: whether it may go straight to `places`; and there it goes.
  bool direct(const Buffer& d) {
    places.clear();
    const auto common = wire::WdpCommon::parse(d);
    return session->direct(*common, Bytes{d}.first(std::min(d.size(), WdpData::kLook)), d.size(),
                           places);
  }
  bool give_direct(const Buffer& d) {
    if (!direct(d) || places.bytes() != d.size() - WdpData::kSize) return false;
    const std::byte* from = d.data() + WdpData::kSize;
    for (const IoVec& piece : places.pieces()) {
      std::memcpy(piece.iov_base, from, piece.iov_len);
      from += piece.iov_len;
    }
    session->direct_received(now);
    return true;
  }
  // Calls f(header, bytes) for each data datagram that the session has to say.
  template <class F>
  void each_said(F&& f) {
    while (session->ready(now)) {
      Train t;
      session->fill(t, now);
      if (t.empty()) break;
      t.each_datagram([&](std::span<const IoVec> pieces) {
        Buffer d;
        test::append(d, pieces);
        if (const auto h = WdpData::parse(d); h.ok()) f(*h, Bytes{d});
      });
      session->llp_took_all(now);
    }
  }
  void later(Duration d) {
    now = now + d;
    session->tick(now);
  }
  // Of a Write to place `offset` of the target.
  Message write(uint32_t msn, size_t size, size_t offset) {
    return {.opcode = Opcode::write,
            .msn = msn,
            .content = pattern_bytes(size, msn),
            .stag = stag,
            .to = test::address_of(target, offset).value()};
  }
  Message write_imm(uint32_t msn, size_t size, size_t offset) {
    Message m = write(msn, size, offset);
    m.immediate = msn;
    return m;
  }
  Message send(uint32_t msn, size_t size) {
    return {.msn = msn, .content = pattern_bytes(size, msn)};
  }

  // --- the program
  void post_receive(size_t size) {
    receives.push_back(std::make_unique<Buffer>(pattern_bytes(size, 1000 + posted)));
    host->host.post_receive(posted++, {test::segment(host->host, *receives.back())});
  }
  // MSNs of what was delivered, as content or immediate tell.
  std::vector<uint32_t> delivered() const {
    std::vector<uint32_t> all;
    for (const auto& r : host->host.received) {
      if (r.arrival.has_immediate) {
        all.push_back(r.arrival.immediate);
        continue;
      }
      uint32_t msn = 0;
      for (uint32_t m = 1; m < 3000 && msn == 0; ++m) {
        if (is_content(r.wr_id, pattern_bytes(r.arrival.length, m))) msn = m;
      }
      all.push_back(msn);
    }
    return all;
  }
  bool is_content(uint64_t wr_id, const Buffer& content) const {
    const Buffer& r = *receives[wr_id];
    return content.size() <= r.size() && std::equal(content.begin(), content.end(), r.begin());
  }
  bool placed(const Message& m) const {
    const auto offset = static_cast<ptrdiff_t>(m.to - test::address_of(target).value());
    return std::equal(m.content.begin(), m.content.end(), target.begin() + offset);
  }
  uint64_t drops(WdpDrop why) const { return session->counters().drops.of(why); }
  const UcCounters& counters() const { return session->counters(); }
  // CTL messages that the session wants to send.
  std::vector<wire::WdpCtl> said() {
    std::vector<wire::WdpCtl> all;
    said_.clear();
    while (session->ready(now)) {
      Train t;
      session->fill(t, now);
      if (t.empty()) break;
      t.each_datagram([&](std::span<const IoVec> pieces) {
        auto& d = said_.emplace_back();
        test::append(d, pieces);
        if (const auto c = wire::WdpCtl::parse(d); c.ok()) all.push_back(*c);
      });
      session->llp_took_all(now);
    }
    return all;
  }

  using Msns = std::vector<uint32_t>;

  SeededRandom random{5};
  SendWindows windows;
  Time now = Time::from_ns(1'000'000'000);
  std::unique_ptr<test::UcHost> host;
  std::unique_ptr<UcSession> session;
  Buffer target;
  Buffer before;
  Stag stag;
  uint32_t psn = kFirstPsn;
  std::vector<std::unique_ptr<Buffer>> receives;
  uint64_t posted = 0;
  PieceList places;  // of the last direct()

 private:
  std::list<Buffer> said_;
};

}  // namespace weft::wdp
