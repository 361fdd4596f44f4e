// WEFT_FAULT over real sockets against what a session makes of it: what was done on purpose is
// counted where it was done, and what UC finds missing, double or damaged is exactly that.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>

#include "port/faults.h"
#include "port/udp_socket.h"
#include "tests/support/hex.h"
#include "wdp/psn_window.h"
#include "wire/wdp_crc.h"
#include "wire/wdp_data.h"

namespace weft::wdp {
namespace {

using stats::InjectedFault;
using wire::WdpData;
using wire::WdpDrop;

constexpr uint32_t kFirst = 0xfffff000;  // PSNs wrap on the way
constexpr uint32_t kDatagrams = 20'000;
constexpr uint32_t kTrain = 40;
constexpr size_t kPayload = 128;

port::UdpSocket make() {
  port::Fd fd{::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  const port::Address any = port::Address::any(AF_INET, 0);
  EXPECT_EQ(::bind(fd.get(), any.get(), any.length), 0);
  return port::UdpSocket{std::move(fd), 4 << 20};
}

class InjectedFaults : public ::testing::Test {
 protected:
  InjectedFaults() { port::faults::count_in(counters_.get()); }
  ~InjectedFaults() override { port::faults::count_in(nullptr); }

  uint64_t injected(InjectedFault what) const {
    return counters_->fault_injected[static_cast<size_t>(what)].value();
  }

  static test::Buffer datagram(uint32_t i) {
    WdpData d{.flags = {.crc = true},
              .psn = Psn{kFirst + i},
              .msn = Msn{i + 1},
              .mlen = kPayload,
              .last = true,
              .opcode = wire::Opcode::write,
              .stride = kPayload};
    test::Buffer bytes(WdpData::kSize);
    d.encode(bytes.data());
    const test::Buffer payload = test::pattern(kPayload, i);
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    wire::seal_wdp(bytes);
    return bytes;
  }

  void run(const char* at_sender, const char* at_receiver) {
    a_.inject(*FaultSpec::parse(at_sender));
    b_.inject(*FaultSpec::parse(at_receiver));
    const port::Address to =
        port::Address::from_gid(Gid::from_ipv4(INADDR_LOOPBACK), b_.local().port());
    port::Segmentation segmentation;
    for (uint32_t i = 0; i < kDatagrams; i += kTrain) {
      test::Buffer train;
      for (uint32_t k = i; k < i + kTrain; ++k) {
        const test::Buffer one = datagram(k);
        train.insert(train.end(), one.begin(), one.end());
      }
      const IoVec piece{train.data(), train.size()};
      const size_t size = train.size() / kTrain;
      ASSERT_EQ(a_.send({.to = &to, .segment = size, .pieces = {&piece, 1}}, segmentation).bytes,
                train.size());
      drain();
    }
    while (!a_.held_until().is_never() || !b_.held_until().is_never()) {
      a_.release_held();
      drain();
    }
    window_.peer_sent(Psn{kFirst + kDatagrams - 1});
    EXPECT_EQ(b_.overruns(), 0U) << "then the network itself has lost something";
  }
  void drain() {
    test::Buffer place(65'536);
    for (auto r = b_.receive(place); !r.would_block; r = b_.receive(place)) {
      for (size_t at = 0; at < r.bytes; at += r.segment) {
        take(Bytes{place}.subspan(at, std::min(r.segment, r.bytes - at)));
      }
    }
  }
  // As UcSession does.
  void take(Bytes bytes) {
    const auto d = WdpData::parse(bytes);
    if (!d.ok() || !wire::wdp_crc_matches(bytes)) {
      ++damaged_;
      return;
    }
    if (const auto good = window_.check(d->psn); !good.ok()) {
      ++drops_[good.error()];
      return;
    }
    window_.mark(d->psn);
  }

  std::unique_ptr<stats::DeviceCounters> counters_ = std::make_unique<stats::DeviceCounters>();
  port::UdpSocket a_ = make();
  port::UdpSocket b_ = make();
  PsnWindow window_{Psn{kFirst}};
  std::map<WdpDrop, uint64_t> drops_;
  uint64_t damaged_ = 0;
};

TEST_F(InjectedFaults, WhatIsMissingIsWhatWasLost) {
  run("loss:0.03,burst:5,seed:1", "loss:0.02,reorder:0.1,seed:2");
  const uint64_t lost = injected(InjectedFault::lost_out) + injected(InjectedFault::lost_in);
  EXPECT_GT(lost, kDatagrams / 50);
  EXPECT_EQ(window_.lost(), lost);
  EXPECT_EQ(window_.unique(), kDatagrams - lost);
  EXPECT_GT(injected(InjectedFault::reordered_in), kDatagrams / 20);
  EXPECT_TRUE(drops_.empty());
  EXPECT_EQ(damaged_, 0U);
}

TEST_F(InjectedFaults, WhatComesTwiceIsWhatWasDoubled) {
  run("duplicate:0.05,reorder:0.05,seed:3", "duplicate:0.05,seed:4");
  const uint64_t doubled =
      injected(InjectedFault::duplicated_out) + injected(InjectedFault::duplicated_in);
  EXPECT_GT(doubled, kDatagrams / 20);
  EXPECT_EQ(drops_[WdpDrop::duplicate] + drops_[WdpDrop::stale_psn], doubled);
  EXPECT_EQ(window_.lost(), 0U);
  EXPECT_EQ(window_.unique(), kDatagrams);
}

// spec/wdp 2.3: the CRC finds what the UDP checksum, which was computed behind the damage, cannot.
TEST_F(InjectedFaults, WhatIsDamagedIsFoundAndMissing) {
  run("corrupt:0.03,seed:5", "corrupt:0.03,loss:0.01,way:in,seed:6");
  const uint64_t damaged =
      injected(InjectedFault::corrupted_out) + injected(InjectedFault::corrupted_in);
  EXPECT_GT(damaged_, kDatagrams / 25);
  // Some were damaged on both ways, or lost after the damage.
  EXPECT_LE(damaged_, damaged);
  EXPECT_EQ(window_.lost(), damaged_ + injected(InjectedFault::lost_in));
}

}  // namespace
}  // namespace weft::wdp
