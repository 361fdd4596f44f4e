#include "wire/wdp_ud.h"

#include <gtest/gtest.h>

#include <optional>

#include "base/random.h"
#include "tests/support/hex.h"

namespace weft::wire {
namespace {

using test::Buffer;
using test::from_hex;
using test::to_hex;
using Why = std::optional<WdpDrop>;

// spec/wdp-ud 2, every field with bytes of its own.
constexpr char kSend[] =
    "d1 2c 17 13 | 01 02 03 04 | 00 11 12 13 | 00 00 00 00 | 00 15 16 17 | 21 22 23 24 |"
    "41 45 00 06 | 31 32 33 34";

Buffer with_payload(Buffer header, size_t n) {
  const Buffer payload = test::pattern(n, 5);
  header.insert(header.end(), payload.begin(), payload.end());
  return header;
}
Buffer encoded(const WdpUd& u) {
  Buffer b(WdpUd::kSize + 1, std::byte{0xee});
  u.encode(b.data());
  EXPECT_EQ(b.back(), std::byte{0xee}) << "wrote beyond kSize";
  b.pop_back();
  return b;
}
Why dropped(Bytes b) {
  const auto u = WdpUd::parse(b);
  return u.ok() ? Why{} : Why{u.error()};
}

TEST(WdpUd, LayoutOfTheSpecification) {
  const Buffer header = from_hex(kSend);
  ASSERT_EQ(header.size(), WdpUd::kSize);
  const auto u = WdpUd::parse(with_payload(header, 6));
  ASSERT_TRUE(u.ok()) << to_string(u.error());
  EXPECT_TRUE(u->flags.crc && u->flags.immediate);
  EXPECT_EQ(u->q_key, QKey{0x01020304});
  EXPECT_EQ(u->source, Qpn{0x111213});
  EXPECT_EQ(u->destination, Qpn{0x151617});
  EXPECT_EQ(u->msn, Msn{0x21222324});
  EXPECT_TRUE(u->solicited);
  EXPECT_EQ(u->length, 6);
  EXPECT_EQ(u->imm, 0x31323334U);
  EXPECT_FALSE(u->multicast());
  EXPECT_EQ(to_hex(encoded(*u)), to_hex(header));
}

TEST(WdpUd, RoundTrips) {
  SeededRandom random(4);
  for (int i = 0; i < 2000; ++i) {
    WdpUd u;
    u.flags.crc = (random.next() & 1) != 0;
    u.flags.immediate = (random.next() & 1) != 0;
    u.q_key = QKey{static_cast<uint32_t>(random.next())};
    u.source = Qpn{static_cast<uint32_t>(random.next() & 0xffffff)};
    u.destination = Qpn{static_cast<uint32_t>(random.next() & 0xffffff)};
    u.msn = Msn{static_cast<uint32_t>(random.next())};
    u.solicited = (random.next() & 1) != 0;
    u.length = static_cast<uint16_t>(random.next() % 3000);
    u.imm = static_cast<uint32_t>(random.next());
    const auto again = WdpUd::parse(with_payload(encoded(u), u.length));
    ASSERT_TRUE(again.ok()) << u.to_string();
    ASSERT_EQ(*again, u) << u.to_string();
  }
}

TEST(WdpUd, EveryCutIsDropped) {
  const Buffer b = with_payload(from_hex(kSend), 6);
  for (size_t n = 0; n < b.size(); ++n) {
    const Buffer cut(b.begin(), b.begin() + static_cast<ptrdiff_t>(n));
    EXPECT_EQ(dropped(cut), n < 32 ? WdpDrop::too_short : WdpDrop::length_mismatch) << n;
  }
}

TEST(WdpUd, LengthMustEqualTheDatagrams) {
  // "payload length (must equal datagram - 32)"
  Buffer b = with_payload(from_hex(kSend), 6);
  b.push_back(std::byte{1});
  EXPECT_EQ(dropped(b), WdpDrop::length_mismatch);
  store_be<uint16_t>(b.data() + 26, 7);
  EXPECT_EQ(dropped(b), Why{});

  // spec/wdp-ud 4: up to 65 475 bytes; an empty message is one, too.
  constexpr size_t kLongest = kMaxUdpPayload - WdpUd::kSize;
  EXPECT_EQ(kLongest, 65'475U);
  for (const size_t n : {size_t{0}, kLongest}) {
    b = with_payload(from_hex(kSend), n);
    store_be(b.data() + 26, static_cast<uint16_t>(n));
    EXPECT_EQ(dropped(b), Why{}) << n;
  }
}

TEST(WdpUd, OnlyItsClass) {
  Buffer b = with_payload(from_hex(kSend), 6);
  for (unsigned c = 0; c < 16; ++c) {
    b[1] = static_cast<std::byte>(c << 4);
    const Why why = c == 2  ? Why{}
                    : c < 6 ? Why{WdpDrop::wrong_class}
                            : Why{WdpDrop::unknown_class};
    EXPECT_EQ(dropped(b), why) << c;
  }
  b[0] = std::byte{0x00};
  EXPECT_EQ(dropped(b), WdpDrop::not_wdp);
}

TEST(WdpUd, EveryControlByte) {
  // "DDP ctl 0x41", "RDMAP ctl 0x43 or 0x45 (SE)"; reserved bits are ignored.
  Buffer b = with_payload(from_hex(kSend), 6);
  for (unsigned ddp = 0; ddp < 256; ++ddp) {
    b[24] = static_cast<std::byte>(ddp);
    const Why why = (ddp & 3) != 1      ? Why{WdpDrop::ddp_version}
                    : (ddp & 0x80) != 0 ? Why{WdpDrop::tag_mismatch}
                    : (ddp & 0x40) == 0 ? Why{WdpDrop::last_mismatch}
                                        : Why{};
    EXPECT_EQ(dropped(b), why) << ddp;
    if (!why) {
      EXPECT_EQ(encoded(*WdpUd::parse(b))[24], std::byte{0x41}) << ddp;
    }
  }
  b[24] = std::byte{0x41};
  for (unsigned rdmap = 0; rdmap < 256; ++rdmap) {
    b[25] = static_cast<std::byte>(rdmap);
    const unsigned op = rdmap & 15;
    const Why why = rdmap >> 6 != 1      ? Why{WdpDrop::rdmap_version}
                    : op != 3 && op != 5 ? Why{WdpDrop::bad_opcode}
                                         : Why{};
    EXPECT_EQ(dropped(b), why) << rdmap;
    if (why) continue;
    EXPECT_EQ(WdpUd::parse(b)->solicited, op == 5);
    EXPECT_EQ(encoded(*WdpUd::parse(b))[25], op == 5 ? std::byte{0x45} : std::byte{0x43}) << rdmap;
  }
}

TEST(WdpUd, IndexAndQpnMustAgree) {
  // "didx and QN low byte must agree, else drop". Of the source nothing is said.
  Buffer b = with_payload(from_hex(kSend), 6);
  for (unsigned didx = 0; didx < 256; ++didx) {
    b[2] = static_cast<std::byte>(didx);
    EXPECT_EQ(dropped(b), didx == 0x17 ? Why{} : Why{WdpDrop::index_mismatch}) << didx;
  }
  b[2] = std::byte{0x17};
  b[3] = std::byte{0x99};
  ASSERT_EQ(dropped(b), Why{});
  EXPECT_EQ(WdpUd::parse(b)->source, Qpn{0x111213});
}

TEST(WdpUd, MulticastIsAllOnes) {
  // "0xFFFFFF multicast", "didx (255 multicast)"
  WdpUd u;
  u.destination = kMulticastQpn;
  EXPECT_TRUE(u.multicast());
  const Buffer b = encoded(u);
  EXPECT_EQ(to_hex(Bytes{b}.subspan(16, 4)), "00 ff ff ff");
  EXPECT_EQ(b[2], static_cast<std::byte>(kMulticastIndex));
  ASSERT_EQ(dropped(b), Why{});
  EXPECT_TRUE(WdpUd::parse(b)->multicast());
}

TEST(WdpUd, UpperBytesOfQpnsAreReserved) {
  Buffer b = with_payload(from_hex(kSend), 6);
  b[8] = std::byte{0xa5};
  b[16] = std::byte{0x5a};
  ASSERT_EQ(dropped(b), Why{});
  EXPECT_EQ(WdpUd::parse(b)->source, Qpn{0x111213});
  EXPECT_EQ(WdpUd::parse(b)->destination, Qpn{0x151617});
}

TEST(WdpUd, FlagsOfRdMeanNothing) {
  Buffer b = with_payload(from_hex(kSend), 6);
  b[1] = std::byte{0x23};
  ASSERT_EQ(dropped(b), Why{});
  EXPECT_EQ(WdpUd::parse(b)->flags, WdpFlags{});
  EXPECT_EQ(encoded(*WdpUd::parse(b))[1], std::byte{0x20});
}

TEST(WdpUd, ToString) {
  EXPECT_EQ(WdpUd::parse(with_payload(from_hex(kSend), 6))->to_string(),
            "UD Send with immediate, SE, CRC: from QPN 0x111213 to 0x151617 Q_Key 0x01020304 MSN "
            "555885348 length 6 IMM 0x31323334");
}

}  // namespace
}  // namespace weft::wire
