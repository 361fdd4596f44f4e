// The data header field by field; its hard checks are in wdp_data_checks_test.cc.
#include "wire/wdp_data.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/support/hex.h"
#include "wire/rdmap_messages.h"
#include "wire/wdp_messages.h"

namespace weft::wire {
namespace {

using test::Buffer;
using test::from_hex;
using test::to_hex;

// spec/wdp-uc 2, every field with bytes of its own: the middle segment of three of a Send.
constexpr char kSend[] =
    "d1 37 07 09 | 01 02 03 04 | 11 12 13 14 | 00 00 00 00 | 21 22 23 24 | 00 00 00 20 |"
    "00 00 00 50 | 11 44 00 20 | 31 32 33 34 | 41 42 43 44 | 51 52 53 54 55 56 57 58";

Buffer with_payload(Buffer header, size_t n) {
  const Buffer payload = test::pattern(n, 5);
  header.insert(header.end(), payload.begin(), payload.end());
  return header;
}
Buffer encoded(const WdpData& d) {
  Buffer b(WdpData::kSize + 1, std::byte{0xee});
  d.encode(b.data());
  EXPECT_EQ(b.back(), std::byte{0xee}) << "wrote beyond kSize";
  b.pop_back();
  return b;
}

TEST(WdpData, LayoutOfTheSpecification) {
  const Buffer header = from_hex(kSend);
  ASSERT_EQ(header.size(), WdpData::kSize);
  // DDP control 0x11: flow open, and neither tagged nor last. 32 of 80 bytes.
  const auto d = WdpData::parse(with_payload(header, 32));
  ASSERT_TRUE(d.ok()) << to_string(d.error());
  EXPECT_EQ(d->wdp_class, WdpClass::rd);
  EXPECT_TRUE(d->flags.immediate && d->flags.ack_requested && d->flags.retransmission);
  EXPECT_FALSE(d->flags.crc);
  EXPECT_EQ(d->didx, 7);
  EXPECT_EQ(d->sidx, 9);
  EXPECT_EQ(d->token, SessionToken{0x01020304});
  EXPECT_EQ(d->psn, Psn{0x11121314});
  EXPECT_EQ(d->msn, Msn{0x21222324});
  EXPECT_EQ(d->mo, MessageOffset{32});
  EXPECT_EQ(d->mlen, 80U);
  EXPECT_FALSE(d->last);
  EXPECT_TRUE(d->flow_open);
  EXPECT_FALSE(d->write_se);
  EXPECT_EQ(d->opcode, Opcode::send_inv);
  EXPECT_EQ(d->stride, 32);
  EXPECT_EQ(d->stag, Stag{0x31323334});
  EXPECT_EQ(d->imm_or_read, 0x41424344U);
  EXPECT_EQ(d->read_id(), ReadId{0x41424344});
  EXPECT_EQ(d->to, TaggedOffset{0x5152535455565758});
  EXPECT_EQ(d->q_key(), QKey{0x51525354}) << "spec/wdp-rd 3: upper 32 bits of TO";
  EXPECT_EQ(d->segment_count(), 3U);
  EXPECT_EQ(d->segment_index(), 1U);
  EXPECT_EQ(d->payload_size(), 32U);
  EXPECT_EQ(to_hex(encoded(*d)), to_hex(header));
}

// A message of a class that has it, any segment of it.
WdpData random_data(SeededRandom& random) {
  WdpData d;
  const auto word = [&] { return static_cast<uint32_t>(random.next()); };
  do {
    d.wdp_class = (word() & 1) != 0 ? WdpClass::uc : WdpClass::rd;
    d.opcode = static_cast<Opcode>(word() % 16);
  } while (!wdp_has_opcode(d.wdp_class, d.opcode));
  d.flags = WdpFlags::from_bits(word() & 15);
  const bool response = d.opcode == Opcode::terminate;
  d.didx = response ? 0 : static_cast<uint8_t>(word());
  d.sidx = response ? 0 : static_cast<uint8_t>(word());
  d.token = SessionToken{word()};
  d.psn = Psn{word()};
  d.msn = Msn{word()};
  d.write_se = (word() & 1) != 0;
  d.flow_open = (word() & 1) != 0;
  d.wants_response = d.wdp_class == WdpClass::rd && (word() & 1) != 0;
  d.stag = Stag{word()};
  d.imm_or_read = word();
  d.to = TaggedOffset{random.next()};
  d.stride = static_cast<uint16_t>(1 + word() % 2000);
  d.mlen = word() % 20000;
  if (d.opcode == Opcode::read_request) {
    d.stride = static_cast<uint16_t>(word() % 2000);
    d.mlen = word();
    d.mo = MessageOffset{d.mlen == 0 ? 0 : word() % d.mlen};
    d.last = true;
    return d;
  }
  if (response) d.mlen = word() % 20 * 12;
  if (d.opcode == Opcode::atomic_request) d.mlen = AtomicRequest::kSize;
  if (d.opcode == Opcode::atomic_response) d.mlen = AtomicResponse::kSize;
  if (response || d.opcode == Opcode::atomic_request || d.opcode == Opcode::atomic_response) {
    d.stride = static_cast<uint16_t>(1424 + word() % 16);
  }
  d.mo = MessageOffset{word() % d.segment_count() * d.stride};
  d.last = d.segment_index() + 1 == d.segment_count();
  return d;
}

TEST(WdpData, RoundTrips) {
  SeededRandom random(2);
  for (int i = 0; i < 5000; ++i) {
    const WdpData d = random_data(random);
    Buffer b = with_payload(encoded(d), d.payload_size());
    if (d.opcode == Opcode::read_request) {
      const uint32_t left = d.mlen - d.mo.value();
      const uint32_t length = left == 0 ? 0 : 1 + static_cast<uint32_t>(random.next()) % left;
      WdpReadRange{length, 3}.encode(b.data() + WdpData::kSize);
    }
    const auto again = WdpData::parse(b);
    ASSERT_TRUE(again.ok()) << d.to_string() << ": " << to_string(again.error());
    ASSERT_EQ(*again, d) << d.to_string();
  }
}

TEST(WdpData, ReservedBitsAreIgnoredAndSentAsZero) {
  // spec/wdp-uc 2.1: set reserved bits in data: ignore.
  Buffer b = with_payload(from_hex(kSend), 32);
  const auto plain = WdpData::parse(b);
  b[28] |= std::byte{0x04};
  b[29] |= std::byte{0x30};
  const auto d = WdpData::parse(b);
  ASSERT_TRUE(plain.ok() && d.ok());
  EXPECT_EQ(*d, *plain);
  EXPECT_EQ(to_hex(encoded(*d)), to_hex(from_hex(kSend)));
}

// spec/wdp-rd 6.1: RD's alone.
TEST(WdpData, WhetherAResponseIsWanted) {
  Buffer b = with_payload(from_hex(kSend), 32);
  b[28] |= std::byte{0x08};
  const auto rd = WdpData::parse(b);
  ASSERT_TRUE(rd.ok());
  EXPECT_TRUE(rd->wants_response);
  EXPECT_TRUE(rd->is_of_rd());
  EXPECT_EQ(to_hex(Bytes{encoded(*rd)}.subspan(28, 1)), to_hex(Bytes{b}.subspan(28, 1)));
  b[1] = std::byte{0x10};
  const auto uc = WdpData::parse(b);
  ASSERT_TRUE(uc.ok());
  EXPECT_FALSE(uc->wants_response);
}

TEST(WdpData, TheCrcFieldIsTheCallers) {
  Buffer b = with_payload(from_hex(kSend), 32);
  for (const uint8_t flags : {0x37, 0x3f}) {
    b[1] = std::byte{flags};
    store_be(b.data() + 12, 0xdeadbeefU);
    const auto d = WdpData::parse(b);
    ASSERT_TRUE(d.ok());
    EXPECT_EQ(d->flags.crc, flags == 0x3f);
    EXPECT_EQ(to_hex(Bytes{encoded(*d)}.subspan(12, 4)), "00 00 00 00");
  }
}

TEST(WdpData, EachControlBitOfAWrite) {
  struct Row {
    const char* ddp;
    bool last, se, open;
  };
  for (const Row& r : {Row{"81", false, false, false}, Row{"c1", true, false, false},
                       Row{"e1", true, true, false}, Row{"d1", true, false, true}}) {
    // The segment at 32, of 48 bytes or of 80; class UC, F_IMM.
    Buffer b = with_payload(from_hex(kSend), r.last ? 16 : 32);
    b[1] = std::byte{0x14};
    store_be<uint32_t>(b.data() + 24, r.last ? 48 : 80);
    b[28] = from_hex(r.ddp)[0];
    b[29] = std::byte{0x40};
    const auto d = WdpData::parse(b);
    ASSERT_TRUE(d.ok()) << r.ddp << ": " << to_string(d.error());
    EXPECT_EQ(d->last, r.last) << r.ddp;
    EXPECT_EQ(d->write_se, r.se) << r.ddp;
    EXPECT_EQ(d->solicited(), r.se) << r.ddp;
    EXPECT_EQ(d->flow_open, r.open) << r.ddp;
    EXPECT_EQ(to_hex(Bytes{encoded(*d)}.subspan(28, 1)), r.ddp);
  }
}

TEST(WdpData, ImmediateAndSolicitedByOpcode) {
  // spec/wdp-uc 2.2: F_IMM of a Write or Send; solicited are Sends 5 and 6, and a Write that has
  // F_IMM and DDP reserved bit 5.
  for (uint8_t op = 0; op < 16; ++op) {
    WdpData d;
    d.opcode = static_cast<Opcode>(op);
    for (const bool imm : {false, true}) {
      for (const bool se : {false, true}) {
        d.flags.immediate = imm;
        d.write_se = se;
        const bool send = op >= 3 && op <= 6;
        if (op < 8) {
          EXPECT_EQ(d.has_immediate(), imm && (op == 0 || send)) << unsigned{op};
        }
        if (op < 8) {
          EXPECT_EQ(d.solicited(), op == 5 || op == 6 || (op == 0 && imm && se)) << unsigned{op};
        }
      }
    }
  }
}

TEST(WdpData, PlaceInTheMessageFromAnySegment) {
  struct Row {
    uint32_t mlen;
    uint16_t stride;
    uint32_t count, last_payload;
  };
  // N = max(1, ceil(MLEN / STRIDE))
  const Row rows[] = {{0, 1424, 1, 0},
                      {1, 1424, 1, 1},
                      {1424, 1424, 1, 1424},
                      {1425, 1424, 2, 1},
                      {2848, 1424, 2, 1424},
                      {19, 16, 2, 3},
                      {0x80000000, 1424, 1508065, 512},
                      {0xffffffff, 1, 0xffffffff, 1},
                      {0xffffffff, 65456, 65617, 6399}};
  for (const Row& r : rows) {
    WdpData d;
    d.opcode = Opcode::write;
    d.mlen = r.mlen;
    d.stride = r.stride;
    EXPECT_EQ(d.segment_count(), r.count) << r.mlen;
    d.mo = MessageOffset{(r.count - 1) * r.stride};
    EXPECT_EQ(d.segment_index(), r.count - 1) << r.mlen;
    EXPECT_EQ(d.payload_size(), r.last_payload) << r.mlen;
  }
  WdpData read;
  read.opcode = Opcode::read_request;
  read.mlen = 5000;
  read.mo = MessageOffset{77};
  EXPECT_EQ(read.segment_count(), 1U) << "STRIDE 0 divides nothing";
  EXPECT_EQ(read.segment_index(), 0U);
  EXPECT_EQ(read.payload_size(), 8U);
}

TEST(WdpStride, FiguresOfTheSpecification) {
  EXPECT_EQ(wdp_stride(1500 - 20 - 8), 1424);
  EXPECT_EQ(wdp_stride(1500 - 40 - 8), 1392) << "1404 floored";
  EXPECT_EQ(wdp_stride(9000 - 20 - 8), 8912);
  EXPECT_EQ(wdp_stride(65536 - 20 - 8), 65456);
  EXPECT_EQ(wdp_stride(kMaxUdpPayload), WdpData::kMaxStride);
}

TEST(WdpStride, IsTheLargestMultipleOf16ThatFits) {
  for (size_t n = 0; n <= 65535; ++n) {
    const uint16_t s = wdp_stride(n);
    ASSERT_EQ(s % 16, 0) << n;
    ASSERT_LE(s, WdpData::kMaxStride) << n;
    if (s != 0) {
      ASSERT_LE(WdpData::kSize + s, n) << n;
    }
    ASSERT_TRUE(s == WdpData::kMaxStride || WdpData::kSize + s + 16 > n) << n;
  }
  EXPECT_EQ(wdp_stride(63), 0);
  EXPECT_EQ(wdp_stride(64), 16);
  EXPECT_EQ(wdp_stride(1 << 20), WdpData::kMaxStride);
}

TEST(WdpData, ToString) {
  WdpData d;
  d.flags = {.crc = true, .immediate = true};
  d.didx = 5;
  d.sidx = 9;
  d.token = SessionToken{0xa1b2c3d4};
  d.psn = Psn{4097};
  d.msn = Msn{42};
  d.mo = MessageOffset{16};
  d.mlen = 19;
  d.last = true;
  d.write_se = true;
  d.opcode = Opcode::write;
  d.stride = 16;
  d.stag = Stag{0x55667700};
  d.imm_or_read = 0xcafef00d;
  d.to = TaggedOffset{0x7f0000001010};
  EXPECT_EQ(d.to_string(),
            "UC RDMA Write with immediate, last, SE: from 9 to 5 token 0xa1b2c3d4 PSN 4097 MSN 42 "
            "MO 16 of 19 stride 16 STag 0x55667700 IMM 0xcafef00d TO 0x7f0000001010, CRC");
  WdpData r;
  r.wdp_class = WdpClass::rd;
  r.flags = {.ack_requested = true, .retransmission = true};
  r.opcode = Opcode::terminate;
  r.flow_open = true;
  EXPECT_EQ(r.to_string(),
            "RD RESP, flow open: from 0 to 0 token 0x00000000 PSN 0 MSN 0 MO 0 of 0 stride 0 STag "
            "0x00000000 RID 0x00000000 TO 0x0, ACKREQ, RETX");
}

}  // namespace
}  // namespace weft::wire
