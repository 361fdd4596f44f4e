// CTL messages: fixed block, types, limits. What follows the reason is in wdp_ctl_parts_test.cc.
#include "wire/wdp_ctl.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/support/hex.h"
#include "wire/wdp_crc.h"

namespace weft::wire {
namespace {

using test::Buffer;
using test::from_hex;
using test::to_hex;
using Why = std::optional<WdpDrop>;

// spec/wdp 3.1, every field with bytes of its own. A REP, for it may be of any length.
Buffer rep_bytes() {
  Buffer b = from_hex(
      "d1 08 17 1b | 01 02 03 04 | 02 05 00 40 | 00 00 00 00 | 11 12 13 14 | 00 15 16 17 |"
      "00 19 1a 1b | 1c 1d 1e 1f | 03 01 21 22 | 23 24 25 26 | 31 32 33 34 | 00 00 00 15 |"
      "41 42 43 44 45 46 47 48 | 00 00 00 00 | 51 52 53 54");
  seal_wdp(b);
  return b;
}
// A message of the least size, padded to `length`.
Buffer message(CtlType type, uint16_t length = 0) {
  WdpCtl c;
  c.type = type;
  c.source_token = SessionToken{0x01020304};
  c.service = CtlService::uc;
  c.length = length;
  Buffer b(c.size());
  c.encode(b.data());
  return b;
}
Why dropped(Buffer b, bool seal = true) {
  if (seal) seal_wdp(b);
  const auto c = WdpCtl::parse(b);
  return c.ok() ? Why{} : Why{c.error()};
}
Buffer encoded(const WdpCtl& c) {
  Buffer b(c.size() + 1, std::byte{0xee});
  EXPECT_EQ(c.encode(b.data()), c.size());
  EXPECT_EQ(b.back(), std::byte{0xee}) << "wrote beyond size()";
  b.pop_back();
  return b;
}

TEST(WdpCtl, LayoutOfTheSpecification) {
  const Buffer b = rep_bytes();
  ASSERT_EQ(b.size(), WdpCtl::kSize);
  const auto c = WdpCtl::parse(b);
  ASSERT_TRUE(c.ok()) << to_string(c.error());
  EXPECT_EQ(c->didx, 0x17);
  EXPECT_EQ(c->sidx, 0x1b);
  EXPECT_EQ(c->token, SessionToken{0x01020304});
  EXPECT_EQ(c->type, CtlType::rep);
  EXPECT_EQ(c->attempt, 5);
  EXPECT_EQ(c->length, 64);
  EXPECT_EQ(c->source_token, SessionToken{0x11121314});
  EXPECT_EQ(c->source, Qpn{0x151617});
  EXPECT_EQ(c->destination, Qpn{0x191a1b});
  EXPECT_EQ(c->xid, Xid{0x1c1d1e1f});
  EXPECT_EQ(c->service, CtlService::rd_channel);
  EXPECT_TRUE(c->ib_style);
  EXPECT_EQ(c->ird, 0x2122);
  EXPECT_EQ(c->ord, 0x2324);
  EXPECT_EQ(c->max_payload, 0x2526);
  EXPECT_EQ(c->first_psn, Psn{0x31323334});
  EXPECT_EQ(c->q_key(), QKey{0x31323334});
  EXPECT_TRUE(c->features.data_crc && c->features.uc_read && c->features.ka_stats);
  EXPECT_FALSE(c->features.immediate || c->features.atomics);
  EXPECT_EQ(c->cookie, HandshakeCookie{0x4142434445464748});
  EXPECT_EQ(c->reason, 0x51525354U);
  EXPECT_TRUE(c->private_data.empty() && c->tlvs.empty());
  EXPECT_EQ(to_hex(encoded(*c)), to_hex(b));
}

TEST(WdpCtl, EveryType) {
  // spec/wdp 3.2, table of types; all others are dropped.
  constexpr CtlType kTypes[] = {CtlType::req,    CtlType::rep,  CtlType::rtu,   CtlType::rej,
                                CtlType::cookie, CtlType::wait, CtlType::dreq,  CtlType::drep,
                                CtlType::ka,     CtlType::kaa,  CtlType::probe, CtlType::probea,
                                CtlType::err};
  const size_t sizes[] = {256, 64, 64, 64, 64, 64, 68, 64, 68, 76, 64, 64, 112};
  unsigned number = 1;
  for (const CtlType type : kTypes) {
    EXPECT_EQ(static_cast<unsigned>(type), number);
    const Buffer b = message(type);
    EXPECT_EQ(b.size(), sizes[number - 1]) << number;
    EXPECT_EQ(std::to_integer<unsigned>(b[8]), number);
    EXPECT_EQ(load_be<uint16_t>(b.data() + 10), b.size()) << number;
    const auto c = WdpCtl::parse(b);
    ASSERT_TRUE(c.ok()) << number;
    EXPECT_EQ(c->type, type);
    EXPECT_EQ(to_hex(encoded(*c)), to_hex(b)) << number;
    ++number;
  }
  Buffer b = message(CtlType::rtu, 256);
  for (unsigned type = 0; type < 256; ++type) {
    b[8] = static_cast<std::byte>(type);
    EXPECT_EQ(dropped(b), type >= 1 && type <= 13 ? Why{} : Why{WdpDrop::unknown_ctl_type}) << type;
  }
}

TEST(WdpCtl, EveryCutOfEveryTypeIsDropped) {
  for (uint8_t type = 1; type <= 13; ++type) {
    const Buffer b = message(static_cast<CtlType>(type));
    for (size_t n = 0; n < b.size(); ++n) {
      Buffer cut(b.begin(), b.begin() + static_cast<ptrdiff_t>(n));
      if (n < 64) {
        EXPECT_EQ(dropped(cut, false), WdpDrop::too_short) << n;
        continue;
      }
      // Zeros cut off a REQ's end leave its CRC wrong, too: the length of what is summed counts.
      EXPECT_EQ(dropped(cut, false), WdpDrop::bad_crc) << n;
      EXPECT_EQ(dropped(cut), WdpDrop::length_mismatch) << n;
      store_be(cut.data() + 10, static_cast<uint16_t>(n));
      EXPECT_EQ(dropped(cut), type == 1 ? WdpDrop::request_not_padded : WdpDrop::parts_too_long)
          << n;
    }
    EXPECT_EQ(dropped(b, false), Why{});
  }
}

TEST(WdpCtl, LengthIsTheDatagrams) {
  // "length = whole UDP payload"
  Buffer b = message(CtlType::probe, 1472);
  EXPECT_EQ(b.size(), 1472U) << "a PROBE is as long as what it tests";
  EXPECT_EQ(dropped(b), Why{});
  for (const uint16_t wrong : {0, 64, 1471, 1473, 65535}) {
    store_be(b.data() + 10, wrong);
    EXPECT_EQ(dropped(b), WdpDrop::length_mismatch) << wrong;
  }
  const Buffer largest = message(CtlType::probe, kMaxUdpPayload);
  EXPECT_EQ(largest.size(), kMaxUdpPayload);
  EXPECT_EQ(dropped(largest), Why{});
}

TEST(WdpCtl, RequestsAre256BytesAtLeast) {
  // "Padded with zero to >= 256 bytes": part IV allows answers of three times that.
  EXPECT_EQ(dropped(message(CtlType::req)), Why{});
  for (const uint16_t n : {64, 255}) {
    Buffer b = message(CtlType::req);
    b.resize(n);
    store_be(b.data() + 10, n);
    EXPECT_EQ(dropped(b), WdpDrop::request_not_padded) << n;
  }
  EXPECT_EQ(message(CtlType::req, 300).size(), 300U);
  const Buffer b = message(CtlType::req);
  for (size_t i = 64; i < b.size(); ++i) ASSERT_EQ(b[i], std::byte{0}) << i;
}

TEST(WdpCtl, CrcIsMandatory) {
  // spec/wdp 2.3: Class CTL and RDACK: mandatory.
  Buffer b = rep_bytes();
  b[1] = std::byte{0x00};
  EXPECT_EQ(dropped(b), WdpDrop::crc_missing);
  b = rep_bytes();
  for (size_t bit = 16; bit < b.size() * 8; ++bit) {
    b[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    EXPECT_EQ(dropped(b, false), WdpDrop::bad_crc) << bit;
    b[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
  }
}

TEST(WdpCtl, OnlyItsClass) {
  Buffer b = rep_bytes();
  for (unsigned c = 0; c < 16; ++c) {
    b[1] = static_cast<std::byte>(c << 4 | 8);
    const Why why = c == 0  ? Why{}
                    : c < 6 ? Why{WdpDrop::wrong_class}
                            : Why{WdpDrop::unknown_class};
    EXPECT_EQ(dropped(b), why) << c;
  }
  b[0] = std::byte{0xd2};
  EXPECT_EQ(dropped(b), WdpDrop::other_version);
}

TEST(WdpCtl, ReservedBitsAreIgnoredAndSentAsZero) {
  Buffer b = rep_bytes();
  b[1] = std::byte{0x0f};                // flags of data
  b[20] = b[24] = std::byte{0xa5};       // above the QPNs
  b[33] = std::byte{0xff};               // modes
  store_be(b.data() + 44, 0xffffff95U);  // features
  seal_wdp(b);
  const auto c = WdpCtl::parse(b);
  ASSERT_TRUE(c.ok());
  EXPECT_EQ(to_hex(encoded(*c)), to_hex(rep_bytes()));
  b[33] = std::byte{0xfe};
  seal_wdp(b);
  EXPECT_FALSE(WdpCtl::parse(b)->ib_style);
}

TEST(WdpCtl, TokenThatIsAnnouncedIsNotZero) {
  // "random nonzero". Answers that make no session have none to announce.
  for (uint8_t type = 1; type <= 13; ++type) {
    for (uint8_t service = 0; service < 6; ++service) {
      Buffer b = message(static_cast<CtlType>(type));
      b[32] = std::byte{service};
      store_be<uint32_t>(b.data() + 16, 0);
      const bool announces = type == 1 || (type == 2 && service != 4);
      EXPECT_EQ(dropped(b), announces ? Why{WdpDrop::zero_token} : Why{})
          << unsigned{type} << " " << unsigned{service};
    }
  }
}

TEST(WdpCtl, UnknownServicesAreForAReject) {
  Buffer b = message(CtlType::req);
  for (unsigned service = 0; service < 256; ++service) {
    b[32] = static_cast<std::byte>(service);
    seal_wdp(b);
    const auto c = WdpCtl::parse(b);
    ASSERT_TRUE(c.ok()) << service;
    EXPECT_EQ(static_cast<unsigned>(c->service), service);
  }
}

TEST(WdpCtl, WaitIs30SecondsAtMost) {
  // "off 60 = ms to wait (<= 30 000)"
  Buffer b = message(CtlType::wait);
  for (const uint32_t ms : {0U, 30'000U, 30'001U, 0xffffffffU}) {
    store_be(b.data() + 60, ms);
    EXPECT_EQ(dropped(b), ms <= 30'000 ? Why{} : Why{WdpDrop::wait_too_long}) << ms;
  }
}

TEST(CtlFeatures, BitsOfTheSpecification) {
  for (uint32_t bits = 0; bits < 256; ++bits) {
    const CtlFeatures f = CtlFeatures::from_bits(bits);
    EXPECT_EQ(f.bits(), bits & 0x7f);
    EXPECT_EQ(f.responses, (bits & 32) != 0);
    EXPECT_EQ(f.starts, (bits & 64) != 0);
    EXPECT_EQ(f.data_crc, (bits & 1) != 0);
    EXPECT_EQ(f.immediate, (bits & 2) != 0);
    EXPECT_EQ(f.uc_read, (bits & 4) != 0);
    EXPECT_EQ(f.atomics, (bits & 8) != 0);
    EXPECT_EQ(f.ka_stats, (bits & 16) != 0);
  }
}

TEST(CtlFeatures, AgreedIsTheAndAndOfTheCrcTheOr) {
  for (uint32_t a = 0; a < 32; ++a) {
    for (uint32_t b = 0; b < 32; ++b) {
      EXPECT_EQ(CtlFeatures::agreed(CtlFeatures::from_bits(a), CtlFeatures::from_bits(b)).bits(),
                (a & b & 0x1e) | ((a | b) & 1));
    }
  }
}

TEST(OtherVersionRequest, GivesTheXid) {
  // spec/wdp 6.1
  Buffer b = message(CtlType::req);
  store_be<uint32_t>(b.data() + 28, 0x1c1d1e1f);
  EXPECT_FALSE(other_version_request(b)) << "this version";
  for (unsigned version = 0; version < 16; ++version) {
    b[0] = static_cast<std::byte>(0xd0 | version);
    const auto xid = other_version_request(b);
    ASSERT_EQ(xid.has_value(), version != 1) << version;
    if (xid) {
      EXPECT_EQ(*xid, Xid{0x1c1d1e1f});
    }
  }
  b[0] = std::byte{0xd2};
  for (size_t n = 0; n < b.size(); ++n) {
    const Buffer cut(b.begin(), b.begin() + static_cast<ptrdiff_t>(n));
    EXPECT_EQ(other_version_request(cut).has_value(), n >= 32) << n;
  }
  b[8] = std::byte{2};
  EXPECT_FALSE(other_version_request(b)) << "a REP";
  b[8] = std::byte{1};
  b[1] = std::byte{0x18};
  EXPECT_FALSE(other_version_request(b)) << "data";
  b[1] = std::byte{0x08};
  b[0] = std::byte{0xc2};
  EXPECT_FALSE(other_version_request(b)) << "another protocol";
}

}  // namespace
}  // namespace weft::wire
