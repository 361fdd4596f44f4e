#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "sdp/wire/bsdh.h"
#include "sdp/wire/extended_headers.h"
#include "sdp/wire/hello.h"

namespace weft::sdp {
namespace {

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> out;
  for (const int v : values) out.push_back(static_cast<std::byte>(v));
  return out;
}

// spec/sdp 2: each field at its place.
TEST(SdpWire, TheHeaderOfAMessage) {
  const auto wire = bytes({0xff, 0x06, 0x12, 0x34, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const auto h = Bsdh::parse(wire.data());
  ASSERT_TRUE(h);
  EXPECT_EQ(h->mid, MessageId::data);
  EXPECT_EQ(h->flags, Bsdh::kOobPending | Bsdh::kRequestPipelined);
  EXPECT_EQ(h->bufs, 0x1234);
  EXPECT_EQ(h->length, 0x00010203U);
  EXPECT_EQ(h->mseq, 0x04050607U);
  EXPECT_EQ(h->mseq_ack, 0x08090a0bU);
  std::vector<std::byte> again(Bsdh::kSize);
  h->encode(again.data());
  EXPECT_EQ(again, wire);
}

// spec/sdp 2.1: 18 identifiers, and no other is taken.
TEST(SdpWire, IdentifiersThatThereAreNotAreRefused) {
  int known = 0;
  for (int mid = 0; mid < 256; ++mid) {
    std::vector<std::byte> wire(Bsdh::kSize);
    wire[0] = static_cast<std::byte>(mid);
    const bool parsed = Bsdh::parse(wire.data()).has_value();
    EXPECT_EQ(parsed, mid <= 0x0e || mid >= 0xfd) << mid;
    if (parsed) ++known;
  }
  EXPECT_EQ(known, 18);
}

// spec/sdp 2.3: the nibble 8 says whose half, the rest the mode.
TEST(SdpWire, AChangeOfMode) {
  for (const auto& [half, mode, first] :
       {std::tuple{false, Mode::buffered, 0x00}, std::tuple{false, Mode::combined, 0x10},
        std::tuple{false, Mode::pipelined, 0x20}, std::tuple{true, Mode::buffered, 0x80},
        std::tuple{true, Mode::combined, 0x90}, std::tuple{true, Mode::pipelined, 0xa0}}) {
    std::vector<std::byte> wire(ModeChange::kSize, std::byte{0xee});
    ModeChange{half, mode}.encode(wire.data());
    EXPECT_EQ(wire, bytes({first, 0, 0, 0}));
    const auto parsed = ModeChange::parse(wire.data());
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->send_half, half);
    EXPECT_EQ(parsed->mode, mode);
  }
  EXPECT_FALSE(ModeChange::parse(bytes({0x30, 0, 0, 0}).data()));
  EXPECT_FALSE(ModeChange::parse(bytes({0xf0, 0, 0, 0}).data()));
}

TEST(SdpWire, AdvertisedBuffers) {
  std::vector<std::byte> wire(SinkAvail::kSize);
  SinkAvail{0x01020304, 0x05060708, 0x090a0b0c0d0e0f10, 0x11121314}.encode(wire.data());
  EXPECT_EQ(wire, bytes({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}));
  const SinkAvail sink = SinkAvail::parse(wire.data());
  EXPECT_EQ(sink.non_discards, 0x11121314U);
  const SrcAvail source = SrcAvail::parse(wire.data());
  EXPECT_EQ(source.length, 0x01020304U);
  EXPECT_EQ(source.stag, 0x05060708U);
  EXPECT_EQ(source.to, 0x090a0b0c0d0e0f10U);
  std::vector<std::byte> again(SrcAvail::kSize);
  source.encode(again.data());
  EXPECT_TRUE(std::equal(again.begin(), again.end(), wire.begin()));
}

Hello some_hello() {
  Hello h{.ip_version = 6,
          .capabilities = kInvalidateCapable,
          .max_adverts = 7,
          .bufs = 0x0102,
          .desired_receive = 0x03040506,
          .receive_size = 0x0708090a,
          .port = 0x0b0c};
  for (size_t i = 0; i < 16; ++i) {
    h.source[i] = static_cast<std::byte>(0x20 + i);
    h.destination[i] = static_cast<std::byte>(0x40 + i);
  }
  return h;
}

// spec/sdp 3.1.
TEST(SdpWire, HelloIsOfNinetyTwoBytesAndReadsBack) {
  std::vector<std::byte> wire(Hello::kSize, std::byte{0xee});
  some_hello().encode(wire.data());
  EXPECT_EQ(std::vector(wire.begin(), wire.begin() + 32),
            bytes({0,    0,    1, 2, 0, 0, 0, 92, 0, 0, 0, 0,  0,  0,  0, 0,
                   0x22, 0x61, 0, 7, 3, 4, 5, 6,  7, 8, 9, 10, 11, 12, 0, 0}));
  EXPECT_EQ(wire[32], std::byte{0x20});
  EXPECT_EQ(wire[48], std::byte{0x40});
  EXPECT_THAT(std::vector(wire.begin() + 64, wire.end()), ::testing::Each(std::byte{0}));
  const auto h = Hello::parse(wire);
  ASSERT_TRUE(h);
  EXPECT_EQ(h->bufs, 0x0102);
  EXPECT_EQ(h->receive_size, 0x0708090aU);
  EXPECT_EQ(h->port, 0x0b0c);
  EXPECT_EQ(h->source, some_hello().source);
  EXPECT_EQ(h->destination, some_hello().destination);
}

// spec/sdp 3.1: what a Hello must have. A byte is changed at a time.
TEST(SdpWire, AHelloThatCannotBeUsedIsRefused) {
  std::vector<std::byte> good(Hello::kSize);
  some_hello().encode(good.data());
  ASSERT_TRUE(Hello::parse(good));
  EXPECT_FALSE(Hello::parse(Bytes{good}.first(Hello::kSize - 1)));
  const auto changed = [&good](size_t at, int value) {
    auto wire = good;
    wire[at] = static_cast<std::byte>(value);
    return Hello::parse(wire).has_value();
  };
  EXPECT_FALSE(changed(0, 1)) << "a HelloAck";
  EXPECT_FALSE(changed(7, 91)) << "another length";
  EXPECT_TRUE(changed(16, 0x11)) << "version 1.1";
  EXPECT_FALSE(changed(16, 0x01)) << "version 0";
  EXPECT_FALSE(changed(16, 0x30)) << "version 3";
  EXPECT_FALSE(changed(17, 0x50)) << "IP version 5";
  EXPECT_FALSE(changed(19, 0)) << "no advertisements";
  Hello few = some_hello();
  few.bufs = kFewestBufs - 1;
  few.encode(good.data());
  EXPECT_FALSE(Hello::parse(good));
  Hello small = some_hello();
  small.receive_size = kSmallestReceive - 1;
  small.encode(good.data());
  EXPECT_FALSE(Hello::parse(good));
}

// spec/sdp 3.2: 196 bytes, and those that a provider adds are not looked at.
TEST(SdpWire, HelloAckReadsBack) {
  std::vector<std::byte> wire(HelloAck::kSize + 4, std::byte{0xee});
  HelloAck{.capabilities = 1, .max_adverts = 3, .bufs = 0x0405, .receive_size = 0x06070809}.encode(
      wire.data());
  const auto h = HelloAck::parse(wire);
  ASSERT_TRUE(h);
  EXPECT_EQ(h->capabilities, 1);
  EXPECT_EQ(h->max_adverts, 3);
  EXPECT_EQ(h->bufs, 0x0405);
  EXPECT_EQ(h->receive_size, 0x06070809U);
  EXPECT_FALSE(HelloAck::parse(Bytes{wire}.first(HelloAck::kSize - 1)));
  EXPECT_FALSE(Hello::parse(wire));
}

}  // namespace
}  // namespace weft::sdp
