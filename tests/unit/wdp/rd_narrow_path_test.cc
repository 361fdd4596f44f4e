// Datagrams of a channel that the path does not carry as a whole (spec/wdp-rd 5.5).

#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/pattern.h"
#include "wdp/fixed_rate.h"
#include "wdp/path_probe.h"
#include "wdp/rd_send_path.h"
#include "wire/wdp_data.h"

namespace weft::wdp {
namespace {

using namespace std::chrono_literals;

struct NarrowPath : ::testing::Test {
  NarrowPath() { sender.open(SessionToken{9}, false, now); }
  void append(size_t size) {
    SentDatagram& d = sender.append(size, 0, 0);
    const auto bytes = test::pattern_bytes(size, size);
    std::memcpy(d.bytes.get(), bytes.data(), size);
    wire::WdpData{.wdp_class = wire::WdpClass::rd, .opcode = wire::Opcode::send, .stride = 1}
        .encode(d.bytes.get());
  }
  // How many datagrams go now, and may IP cut them up?
  struct Sent {
    size_t count = 0;
    bool fragments = false;
    friend bool operator==(const Sent&, const Sent&) = default;
  };
  friend void PrintTo(const Sent& s, std::ostream* out) {
    *out << s.count << (s.fragments ? ", in parts" : ", whole");
  }
  Sent send() {
    Train train;
    sender.fill(train, path, now);
    return {train.datagrams(), train.fragments()};
  }
  // The next question, which sends the oldest one again.
  Sent ask() {
    now = std::max(now + 1ns, sender.deadline());
    EXPECT_TRUE(sender.tick(now));
    return send();
  }
  void arrive(uint32_t cum) {
    wire::WdpAck ack;
    ack.cum = Csn{cum};
    ack.window = 1024;
    EXPECT_TRUE(sender.received(ack, now, [](const SentDatagram&) {}).ok());
  }

  Time now = Time::from_ns(1'000'000'000);
  Path path{.to = {Gid::from_ipv4(0x0a000002), 4000}, .from = Gid::from_ipv4(0x0a000001)};
  RdSendPath sender{Csn{0}, std::make_unique<FixedRate>(1000), false};
};

constexpr NarrowPath::Sent whole(size_t n) {
  return {n, false};
}
constexpr NarrowPath::Sent in_parts(size_t n) {
  return {n, true};
}

TEST_F(NarrowPath, WhatIsLostTwiceAsAWholeGoesInParts) {
  append(1400);
  EXPECT_EQ(send(), whole(1));
  EXPECT_EQ(ask(), whole(1));
  EXPECT_EQ(ask(), in_parts(1));
  arrive(1);
  // From then on others of its size as well, at once, and no smaller ones.
  append(1400);
  EXPECT_EQ(send(), in_parts(1));
  append(1399);
  EXPECT_EQ(send(), whole(1));
}

TEST_F(NarrowPath, WhatTheKernelRefusesGoesInPartsTheNextTime) {
  append(1400);
  EXPECT_EQ(send(), whole(1));
  sender.path_carries(1372);
  EXPECT_EQ(ask(), in_parts(1));
}

TEST_F(NarrowPath, WhatEachPathCarriesIsNeverCut) {
  append(PathProbe::least(true));
  EXPECT_EQ(send(), whole(1));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(ask(), whole(1));
}

}  // namespace
}  // namespace weft::wdp
