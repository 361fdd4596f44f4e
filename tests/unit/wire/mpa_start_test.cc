#include "wire/mpa_start.h"

#include <gtest/gtest.h>

#include "tests/support/hex.h"
#include "tests/support/spec_example.h"

namespace weft::wire {
namespace {

using test::Buffer;
using test::from_hex;
using test::to_hex;
using Kind = MpaStart::Kind;
using Error = MpaStart::Error;

Buffer frame(Kind kind, uint8_t flags, uint8_t revision, uint16_t length) {
  Buffer b = test::example(kind == Kind::request ? "E1 Request" : "E2 Reply");
  b.resize(MpaStart::kSize);
  b[16] = std::byte{flags};
  b[17] = std::byte{revision};
  store_be(b.data() + 18, length);
  return b;
}

MpaStart parsed(Kind kind, uint8_t flags, uint8_t revision = 2, uint16_t length = 4) {
  const auto r = MpaStart::parse(kind, frame(kind, flags, revision, length).data());
  EXPECT_TRUE(r.ok());
  return r.ok() ? *r : MpaStart{};
}

Buffer encoded(const MpaStart& f) {
  Buffer b(MpaStart::kSize);
  f.encode(b.data());
  return b;
}

TEST(MpaStart, EachFlagBitInARequest) {
  // spec/mpa 2.1
  EXPECT_TRUE(parsed(Kind::request, 0x80).markers);
  EXPECT_TRUE(parsed(Kind::request, 0x40).crc);
  EXPECT_FALSE(parsed(Kind::request, 0x20).rejected) << "R is ignored in a Request";
  EXPECT_TRUE(parsed(Kind::request, 0x10).enhanced);
  EXPECT_FALSE(parsed(Kind::request, 0x02).extension_accepted) << "XA is the Reply's";
  EXPECT_TRUE(parsed(Kind::request, 0x01).extension_requested);
  EXPECT_TRUE(parsed(Kind::request, 0x04).host_requested);
  EXPECT_FALSE(parsed(Kind::request, 0x1a).host_offered) << "HO is the Reply's";
  EXPECT_TRUE(parsed(Kind::request, 0x03).rd_requested);
  EXPECT_FALSE(parsed(Kind::request, 0x02).rd_requested) << "UR goes with XR";
  EXPECT_FALSE(parsed(Kind::request, 0x17).rd_offered) << "UO is the Reply's";
  EXPECT_TRUE(parsed(Kind::request, 0x09).established_later);
  EXPECT_FALSE(parsed(Kind::request, 0x08).established_later) << "EL goes with XR";
}

TEST(MpaStart, EachFlagBitInAReply) {
  EXPECT_TRUE(parsed(Kind::reply, 0x80).markers);
  EXPECT_TRUE(parsed(Kind::reply, 0x40).crc);
  EXPECT_TRUE(parsed(Kind::reply, 0x20).rejected);
  EXPECT_TRUE(parsed(Kind::reply, 0x10).enhanced);
  EXPECT_TRUE(parsed(Kind::reply, 0x02).extension_accepted);
  EXPECT_TRUE(parsed(Kind::reply, 0x1a).host_offered);
  EXPECT_FALSE(parsed(Kind::reply, 0x04).host_requested) << "HR is the Request's";
  EXPECT_TRUE(parsed(Kind::reply, 0x16).rd_offered);
  EXPECT_FALSE(parsed(Kind::reply, 0x03).rd_requested) << "UR is the Request's";
  EXPECT_FALSE(parsed(Kind::reply, 0x09).established_later) << "EL is the Request's";
}

TEST(MpaStart, AnOfferOfMemoryGoesWithTheExtensionAndTheBlock) {
  // spec/same-host 2.1. A peer that echoes what it does not know offers nothing.
  EXPECT_FALSE(parsed(Kind::reply, 0x08).host_offered);
  EXPECT_FALSE(parsed(Kind::reply, 0x18).host_offered);
  EXPECT_FALSE(parsed(Kind::reply, 0x0a).host_offered);
  EXPECT_FALSE(parsed(Kind::reply, 0x1a, 1).host_offered);
  // And so for datagrams, spec/wdp-rd 7.1.
  for (const uint8_t flags : {0x04, 0x14, 0x06}) {
    EXPECT_FALSE(parsed(Kind::reply, flags).rd_offered) << int{flags};
  }
  EXPECT_FALSE(parsed(Kind::reply, 0x16, 1).rd_offered);
}

TEST(MpaStart, AnEchoedExtensionRequestIsNoAcceptance) {
  // spec/mpa 2.7: siw echoes XR=1, XA=0.
  EXPECT_FALSE(parsed(Kind::reply, 0x51).extension_accepted);
}

TEST(MpaStart, NoFlagStandsForAnother) {
  for (const Kind kind : {Kind::request, Kind::reply}) {
    for (int bit = 0; bit < 8; ++bit) {
      const MpaStart f = parsed(kind, static_cast<uint8_t>(1 << bit));
      const int set = f.markers + f.crc + f.rejected + f.enhanced + f.extension_accepted +
                      f.extension_requested + f.host_offered + f.host_requested + f.rd_offered +
                      f.rd_requested + f.established_later;
      EXPECT_LE(set, 1) << "bit " << bit;
    }
    const uint8_t reserved = kind == Kind::request ? 0x08 : 0x04;
    EXPECT_EQ(to_hex(encoded(parsed(kind, reserved))), to_hex(frame(kind, 0x00, 2, 4)))
        << "reserved bits are ignored and sent as zero";
  }
}

TEST(MpaStart, EnhancedBlockNeedsRevision2) {
  EXPECT_FALSE(parsed(Kind::request, 0x50, 1).enhanced);
  EXPECT_TRUE(parsed(Kind::request, 0x50, 1).crc);
}

TEST(MpaStart, EncodesWhatItParsed) {
  for (const Kind kind : {Kind::request, Kind::reply}) {
    const int defined = kind == Kind::request ? 0xdf : 0xf3;
    const int with_extension = kind == Kind::request ? 0x0a : 0;
    for (int flags = 0; flags < 256; ++flags) {
      if ((flags & ~defined) != 0) continue;
      if ((flags & with_extension) != 0 && (flags & 0x01) == 0) continue;
      const Buffer b = frame(kind, static_cast<uint8_t>(flags), 2, 300);
      const auto r = MpaStart::parse(kind, b.data());
      ASSERT_TRUE(r.ok());
      EXPECT_EQ(to_hex(encoded(*r)), to_hex(b));
    }
  }
}

TEST(MpaStart, PrivateDataLengthTo512) {
  EXPECT_EQ(parsed(Kind::request, 0, 2, 0).private_data_length, 0);
  EXPECT_EQ(parsed(Kind::request, 0, 2, 0x0123).private_data_length, 0x0123);
  EXPECT_EQ(parsed(Kind::request, 0, 2, 512).private_data_length, 512);
  for (const uint16_t n : {513, 0x8000, 0xffff}) {
    const auto r = MpaStart::parse(Kind::request, frame(Kind::request, 0, 2, n).data());
    ASSERT_FALSE(r.ok()) << n;
    EXPECT_EQ(r.error(), Error::private_data_too_long);
  }
}

TEST(MpaStart, RevisionIs1Or2) {
  for (int revision = 0; revision < 256; ++revision) {
    const Buffer b = frame(Kind::request, 0x40, static_cast<uint8_t>(revision), 0);
    const auto r = MpaStart::parse(Kind::request, b.data());
    ASSERT_EQ(r.ok(), revision == 1 || revision == 2) << revision;
    if (r.ok()) {
      EXPECT_EQ(r->revision, revision);
    } else {
      EXPECT_EQ(r.error(), Error::bad_revision);
    }
  }
}

TEST(MpaStart, EveryByteOfTheKeyCounts) {
  for (size_t i = 0; i < 16; ++i) {
    Buffer b = frame(Kind::reply, 0x50, 2, 4);
    b[i] ^= std::byte{0x20};
    const auto r = MpaStart::parse(Kind::reply, b.data());
    ASSERT_FALSE(r.ok()) << i;
    EXPECT_EQ(r.error(), Error::bad_key);
  }
}

TEST(MpaStart, ARequestIsNoReply) {
  const Buffer request = frame(Kind::request, 0x50, 2, 4);
  const Buffer reply = frame(Kind::reply, 0x50, 2, 4);
  EXPECT_EQ(MpaStart::parse(Kind::reply, request.data()).error(), Error::bad_key);
  EXPECT_EQ(MpaStart::parse(Kind::request, reply.data()).error(), Error::bad_key);
}

TEST(MpaStart, ToString) {
  EXPECT_EQ(parsed(Kind::request, 0xd1, 2, 68).to_string(),
            "MPA Request rev 2 M C S XR PD_Length 68");
  EXPECT_EQ(parsed(Kind::reply, 0x32, 2, 4).to_string(), "MPA Reply rev 2 R S XA PD_Length 4");
  EXPECT_STREQ(to_string(Error::bad_key), "not an MPA start-up frame");
  EXPECT_STREQ(to_string(Error::bad_revision), "MPA revision is neither 1 nor 2");
  EXPECT_STREQ(to_string(Error::private_data_too_long), "more than 512 bytes of private data");
}

TEST(MpaEnhanced, EachBit) {
  // spec/mpa 2.2
  const auto parse = [](const char* hex) { return MpaEnhanced::parse(from_hex(hex).data()); };
  EXPECT_TRUE(parse("80 00 00 00").peer_to_peer);
  EXPECT_TRUE(parse("40 00 00 00").rtr_fpdu);
  EXPECT_TRUE(parse("00 00 80 00").rtr_write);
  EXPECT_TRUE(parse("00 00 40 00").rtr_read);
  EXPECT_EQ(parse("3f ff 00 00").ird, MpaEnhanced::kNotNegotiated);
  EXPECT_EQ(parse("00 00 3f ff").ord, MpaEnhanced::kNotNegotiated);
  const MpaEnhanced numbers = parse("21 23 15 67");
  EXPECT_EQ(numbers.ird, 0x2123);
  EXPECT_EQ(numbers.ord, 0x1567);
  EXPECT_FALSE(numbers.peer_to_peer || numbers.rtr_fpdu || numbers.rtr_write || numbers.rtr_read);
}

TEST(MpaEnhanced, EncodesWhatItParsed) {
  for (const char* hex : {"80 01 c0 01", "80 01 80 01", "80 01 40 01", "00 01 00 01", "00 00 00 00",
                          "c0 10 c0 20", "ff ff ff ff", "7f fe bf fd", "12 34 56 78"}) {
    Buffer b(MpaEnhanced::kSize);
    MpaEnhanced::parse(from_hex(hex).data()).encode(b.data());
    EXPECT_EQ(to_hex(b), hex);
  }
}

TEST(MpaEnhanced, NumbersDoNotRunIntoTheBits) {
  Buffer b(MpaEnhanced::kSize);
  MpaEnhanced{.ird = 0xffff, .ord = 0xc005}.encode(b.data());
  EXPECT_EQ(to_hex(b), "3f ff 00 05");
}

TEST(MpaEnhanced, ToString) {
  EXPECT_EQ((MpaEnhanced{.peer_to_peer = true, .rtr_write = true, .ird = 16, .ord = 4}.to_string()),
            "A C IRD 16 ORD 4");
  EXPECT_EQ((MpaEnhanced{.rtr_fpdu = true, .rtr_read = true}.to_string()), "B D IRD 0 ORD 0");
}

}  // namespace
}  // namespace weft::wire
