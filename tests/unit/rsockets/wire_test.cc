#include "abi/rsockets/wire.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft::rsockets {
namespace {

ConnectData data() {
  ConnectData d;
  d.credits = 0x0180;
  d.mapped_slots = 5;
  d.list = {0x0102030405060708, 0x11121314, 2};
  d.buffer = {0x2122232425262728, 0x31323334, 0x10000};
  return d;
}

// The bytes of the worked example in spec/rsockets 2.
TEST(RsocketsWire, PrivateDataAsTheSpecificationHasIt) {
  const auto bytes = data().encode();
  const std::vector<uint8_t> want{1,    2,    0x01, 0x80, 0,    0,    0,    5,    0x01, 0x02,
                                  0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x11, 0x12, 0x13, 0x14,
                                  0,    0,    0,    2,    0x21, 0x22, 0x23, 0x24, 0x25, 0x26,
                                  0x27, 0x28, 0x31, 0x32, 0x33, 0x34, 0,    1,    0,    0};
  ASSERT_EQ(bytes.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_EQ(std::to_integer<uint8_t>(bytes[i]), want[i]) << "byte " << i;

  const auto back = ConnectData::parse(bytes);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->credits, 0x0180);
  EXPECT_EQ(back->mapped_slots, 5u);
  EXPECT_EQ(back->list.address, 0x0102030405060708u);
  EXPECT_EQ(back->buffer.key, 0x31323334u);
  EXPECT_EQ(back->buffer.length, 0x10000u);
}

// Private data may be followed by what a transport puts behind it.
TEST(RsocketsWire, WhatFollowsIsNotLookedAt) {
  const auto bytes = data().encode();
  std::vector<std::byte> longer(bytes.begin(), bytes.end());
  longer.resize(56);
  EXPECT_TRUE(ConnectData::parse(longer));
}

TEST(RsocketsWire, WhatCannotBeUsedIsRefused) {
  auto bytes = data().encode();
  EXPECT_FALSE(ConnectData::parse({bytes.data(), ConnectData::kSize - 1}));
  EXPECT_FALSE(ConnectData::parse({}));
  bytes[0] = std::byte{2};
  EXPECT_FALSE(ConnectData::parse(bytes)) << "another version";
  bytes = data().encode();
  bytes[1] ^= std::byte{1};
  EXPECT_FALSE(ConnectData::parse(bytes)) << "the other byte order";
  ConnectData none = data();
  none.list.length = 0;
  EXPECT_FALSE(ConnectData::parse(none.encode())) << "no list to write to";
}

// Without the flag the byte of the slots is reserved.
TEST(RsocketsWire, APeerThatMapsNoMemoryHasNoSlots) {
  auto bytes = data().encode();
  bytes[1] = std::byte{0};
  const auto d = ConnectData::parse(bytes);
  ASSERT_TRUE(d);
  EXPECT_EQ(d->mapped_slots, 0u);
}

TEST(RsocketsWire, SlotsBeyondSevenBitsCountInPiecesOf256) {
  EXPECT_EQ(sayable_slots(0), 0u);
  EXPECT_EQ(sayable_slots(127), 127u);
  EXPECT_EQ(sayable_slots(128), 128u);
  EXPECT_EQ(sayable_slots(129), 256u);
  EXPECT_EQ(sayable_slots(257), 512u);
  EXPECT_EQ(sayable_slots(0x7F00), 0x7F00u);
  EXPECT_EQ(sayable_slots(0x7F01), 0x7F00u) << "the most there is";
  ConnectData d = data();
  d.mapped_slots = 512;
  EXPECT_EQ(ConnectData::parse(d.encode())->mapped_slots, 512u);
}

TEST(RsocketsWire, AMessageIsThreeBitsAndTwentyNine) {
  const Message m{Message::Kind::target, 0x1234};
  EXPECT_EQ(m.word(), 0x8000'1234u);
  EXPECT_EQ(Message::of(0xE000'0002).kind, Message::Kind::control);
  EXPECT_EQ(Message::of(0xE000'0002).value, Message::kShutdown);
  EXPECT_EQ(Message::of(0xDFFF'FFFF).kind, Message::Kind::mapped);
  EXPECT_EQ(Message::of(0xDFFF'FFFF).value, Message::kValueMask);
}

}  // namespace
}  // namespace weft::rsockets
