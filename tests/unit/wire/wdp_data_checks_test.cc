// The hard checks of spec/wdp-uc 2.3: drop (count, never NAK in UC) if any fails.

#include <gtest/gtest.h>

#include <optional>

#include "tests/support/hex.h"
#include "wire/wdp_data.h"
#include "wire/wdp_messages.h"

namespace weft::wire {
namespace {

using test::Buffer;
using Why = std::optional<WdpDrop>;

WdpData data(Opcode op, uint32_t mlen, uint16_t stride, uint32_t mo = 0,
             WdpClass c = WdpClass::uc) {
  WdpData d;
  d.wdp_class = c;
  d.opcode = op;
  d.token = SessionToken{0x01020304};
  d.stride = stride;
  d.mlen = mlen;
  d.mo = MessageOffset{mo};
  d.last = uint64_t{mo} + stride >= mlen;
  return d;
}
Buffer datagram(const WdpData& d, Bytes payload) {
  Buffer b(WdpData::kSize);
  d.encode(b.data());
  b.insert(b.end(), payload.begin(), payload.end());
  return b;
}
Why dropped(Bytes b) {
  const auto d = WdpData::parse(b);
  return d.ok() ? Why{} : Why{d.error()};
}
// With `n` bytes of payload.
Why dropped(const WdpData& d, size_t n) {
  return dropped(datagram(d, test::pattern(n, 1)));
}

TEST(WdpDataChecks, EveryCutOfEveryMessageIsDropped) {
  for (const Opcode op :
       {Opcode::write, Opcode::read_request, Opcode::read_response, Opcode::send_inv,
        Opcode::terminate, Opcode::atomic_request, Opcode::atomic_response}) {
    const uint32_t n = op == Opcode::atomic_request    ? 52
                       : op == Opcode::atomic_response ? 12
                       : op == Opcode::read_request    ? 8
                                                       : 36;
    Buffer b = datagram(data(op, n, 1424, 0, WdpClass::rd), test::pattern(n, 1));
    if (op == Opcode::read_request) WdpReadRange{8, 0}.encode(b.data() + WdpData::kSize);
    ASSERT_EQ(dropped(b), Why{}) << to_string(op);
    for (size_t size = 0; size < b.size(); ++size) {
      // In memory of its own, so that a sanitizer sees a read beyond it.
      const Buffer cut(b.begin(), b.begin() + static_cast<ptrdiff_t>(size));
      EXPECT_EQ(dropped(cut), size < 48 ? WdpDrop::too_short : WdpDrop::length_mismatch)
          << to_string(op) << " " << size;
    }
    b.push_back(std::byte{0});
    EXPECT_EQ(dropped(b), WdpDrop::length_mismatch) << to_string(op);
  }
}

TEST(WdpDataChecks, CommonBytesComeFirst) {
  Buffer b = datagram(data(Opcode::write, 40, 40), test::pattern(40, 1));
  b[0] = std::byte{0xc1};
  EXPECT_EQ(dropped(b), WdpDrop::not_wdp);
  b[0] = std::byte{0xd2};
  EXPECT_EQ(dropped(b), WdpDrop::other_version);
  b[0] = std::byte{0xd1};
  for (unsigned c = 0; c < 16; ++c) {
    b[1] = static_cast<std::byte>(c << 4);
    const Why why = c == 1 || c == 3 ? Why{}
                    : c < 6          ? Why{WdpDrop::wrong_class}
                                     : Why{WdpDrop::unknown_class};
    EXPECT_EQ(dropped(b), why) << c;
  }
}

TEST(WdpDataChecks, Versions) {
  Buffer b = datagram(data(Opcode::write, 40, 40), test::pattern(40, 1));
  for (unsigned v = 0; v < 4; ++v) {
    b[28] = static_cast<std::byte>(0xc0 | v);
    EXPECT_EQ(dropped(b), v == 1 ? Why{} : Why{WdpDrop::ddp_version}) << v;
  }
  b[28] = std::byte{0xc1};
  for (unsigned v = 0; v < 4; ++v) {
    b[29] = static_cast<std::byte>(v << 6);
    EXPECT_EQ(dropped(b), v == 1 ? Why{} : Why{WdpDrop::rdmap_version}) << v;
  }
}

TEST(WdpDataChecks, EveryOpcodeInBothClasses) {
  // spec/wdp-uc 2.2: 0,1,2,3,4,5,6 as spec/rdmap 1.4; 10,11 RD only; spec/wdp-rd 6: RESP is opcode
  // 7 of class 3.
  for (uint8_t op = 0; op < 16; ++op) {
    const auto o = static_cast<Opcode>(op);
    for (const WdpClass c : {WdpClass::uc, WdpClass::rd}) {
      const bool both = op <= 6;
      const bool rd = op == 7 || op == 10 || op == 11;
      const bool legal = both || (rd && c == WdpClass::rd);
      EXPECT_EQ(wdp_has_opcode(c, o), legal) << unsigned{op};
      const uint32_t n = op == 10 ? 52 : op == 11 ? 12 : op == 7 ? 24 : op == 1 ? 8 : 40;
      Buffer b = datagram(data(o, n, 1424, 0, c), test::pattern(n, 1));
      if (op == 1) WdpReadRange{8, 0}.encode(b.data() + WdpData::kSize);
      EXPECT_EQ(dropped(b), legal ? Why{} : Why{WdpDrop::bad_opcode}) << unsigned{op};
      if (!legal) continue;
      b[28] ^= std::byte{0x80};
      EXPECT_EQ(dropped(b), WdpDrop::tag_mismatch) << unsigned{op};
    }
  }
  EXPECT_FALSE(wdp_has_opcode(WdpClass::ud, Opcode::send));
}

TEST(WdpDataChecks, Stride) {
  // "STRIDE: 1..65456"
  EXPECT_EQ(dropped(data(Opcode::write, 1, 1), 1), Why{});
  EXPECT_EQ(dropped(data(Opcode::write, 65456, 65456), 65456), Why{});
  EXPECT_EQ(dropped(data(Opcode::write, 65457, 65457), 65457), WdpDrop::bad_stride);
  EXPECT_EQ(dropped(data(Opcode::write, 10, 65535), 10), WdpDrop::bad_stride);
  EXPECT_EQ(dropped(data(Opcode::write, 0, 0), 0), WdpDrop::bad_stride);
}

TEST(WdpDataChecks, Offset) {
  // "MO % STRIDE == 0", "MO < MLEN or MLEN==MO==0"
  for (uint32_t mo = 0; mo < 64; ++mo) {
    const Why why = mo % 16 != 0 ? Why{WdpDrop::misaligned_offset}
                    : mo >= 40   ? Why{WdpDrop::offset_beyond_message}
                                 : Why{};
    EXPECT_EQ(dropped(data(Opcode::send, 40, 16, mo), mo == 32 ? 8 : 16), why) << mo;
  }
  EXPECT_EQ(dropped(data(Opcode::send, 0, 16, 0), 0), Why{}) << "an empty message";
  EXPECT_EQ(dropped(data(Opcode::send, 0, 16, 16), 0), WdpDrop::offset_beyond_message);
  EXPECT_EQ(dropped(data(Opcode::send, 16, 16, 16), 0), WdpDrop::offset_beyond_message);
  EXPECT_EQ(dropped(data(Opcode::send, 0xffffffff, 16, 0xfffffff0), 15), Why{});
}

TEST(WdpDataChecks, LengthIsExact) {
  // "datagram length == 48+min(STRIDE,MLEN-MO)"
  for (size_t n = 0; n < 40; ++n) {
    EXPECT_EQ(dropped(data(Opcode::write, 40, 16, 16), n),
              n == 16 ? Why{} : Why{WdpDrop::length_mismatch})
        << n;
    EXPECT_EQ(dropped(data(Opcode::write, 40, 16, 32), n),
              n == 8 ? Why{} : Why{WdpDrop::length_mismatch})
        << n;
    EXPECT_EQ(dropped(data(Opcode::write, 0, 16, 0), n),
              n == 0 ? Why{} : Why{WdpDrop::length_mismatch})
        << n;
  }
}

TEST(WdpDataChecks, LastIsTheEndOfTheMessage) {
  // "L == (MO+n==MLEN)"
  struct Row {
    uint32_t mlen, mo;
    size_t n;
  };
  for (const Row& r :
       {Row{40, 0, 16}, Row{40, 16, 16}, Row{40, 32, 8}, Row{0, 0, 0}, Row{32, 16, 16}}) {
    WdpData d = data(Opcode::read_response, r.mlen, 16, r.mo);
    EXPECT_EQ(d.last, r.mo + r.n == r.mlen);
    EXPECT_EQ(dropped(d, r.n), Why{}) << r.mlen << " " << r.mo;
    d.last = !d.last;
    EXPECT_EQ(dropped(d, r.n), WdpDrop::last_mismatch) << r.mlen << " " << r.mo;
  }
}

TEST(WdpDataChecks, ReadRequestIs56Bytes) {
  // spec/wdp-uc 2.3: a Read Request has exactly 56 bytes; STRIDE may be 0, MO is free, L=1.
  for (const WdpClass c : {WdpClass::uc, WdpClass::rd}) {
    WdpData d = data(Opcode::read_request, 5000, 0, 77, c);
    d.last = true;
    Buffer range(WdpReadRange::kSize);
    WdpReadRange{4923, 1}.encode(range.data());
    const Buffer good = datagram(d, range);
    EXPECT_EQ(dropped(good), Why{});
    for (const size_t n : {0, 7, 9, 16}) {
      Buffer b = good;
      b.resize(WdpData::kSize + n);
      EXPECT_EQ(dropped(b), WdpDrop::length_mismatch) << n;
    }
    d.last = false;
    EXPECT_EQ(dropped(datagram(d, range)), WdpDrop::last_mismatch);
    d.last = true;
    d.stride = WdpData::kMaxStride;
    EXPECT_EQ(dropped(datagram(d, range)), Why{});
    d.stride = WdpData::kMaxStride + 1;
    EXPECT_EQ(dropped(datagram(d, range)), WdpDrop::bad_stride);
  }
}

TEST(WdpDataChecks, ReadRangeStaysInsideTheRead) {
  struct Row {
    uint32_t mlen, mo, length;
    bool good;
  };
  const Row rows[] = {{5000, 0, 5000, true},
                      {5000, 0, 5001, false},
                      {5000, 4999, 1, true},
                      {5000, 4999, 2, false},
                      {5000, 5000, 1, false},
                      {5000, 5000, 0, false},
                      {5000, 100, 0, false},
                      {0, 0, 0, true},
                      {0, 0, 1, false},
                      {0, 1, 0, false},
                      {0xffffffff, 0xfffffffe, 1, true},
                      {0xffffffff, 0xfffffffe, 2, false},
                      {0xffffffff, 0xffffffff, 0xffffffff, false},
                      {0xffffffff, 1, 0xffffffff, false},
                      {0xffffffff, 0, 0xffffffff, true}};
  for (const Row& r : rows) {
    WdpData d = data(Opcode::read_request, r.mlen, 0, r.mo);
    d.last = true;
    Buffer range(WdpReadRange::kSize);
    WdpReadRange{r.length, 0}.encode(range.data());
    EXPECT_EQ(dropped(datagram(d, range)), r.good ? Why{} : Why{WdpDrop::read_range})
        << r.mlen << " " << r.mo << " " << r.length;
  }
}

TEST(WdpDataChecks, AtomicsHaveOneLength) {
  // spec/wdp-uc 2.2: an Atomic Request has 100 bytes; spec/wdp-rd 3: MLEN is 52, the response has
  // 12 bytes.
  struct Row {
    Opcode op;
    uint32_t size;
  };
  for (const Row& r : {Row{Opcode::atomic_request, 52}, Row{Opcode::atomic_response, 12}}) {
    for (uint32_t mlen = 0; mlen < 110; ++mlen) {
      EXPECT_EQ(dropped(data(r.op, mlen, 1424, 0, WdpClass::rd), mlen),
                mlen == r.size ? Why{} : Why{WdpDrop::message_length})
          << mlen;
    }
    const WdpData tight = data(r.op, r.size, static_cast<uint16_t>(r.size), 0, WdpClass::rd);
    EXPECT_EQ(dropped(tight, r.size), Why{});
  }
}

TEST(WdpDataChecks, AtomicsAreOneDatagram) {
  WdpData d = data(Opcode::atomic_request, 52, 26, 0, WdpClass::rd);
  EXPECT_EQ(dropped(d, 26), WdpDrop::message_length);
  d.mo = MessageOffset{26};
  d.last = true;
  EXPECT_EQ(dropped(d, 26), WdpDrop::message_length);
  EXPECT_EQ(dropped(data(Opcode::atomic_response, 12, 6, 0, WdpClass::rd), 6),
            WdpDrop::message_length);
}

TEST(WdpDataChecks, RespIsWholeRecordsOfTheChannel) {
  // spec/wdp-rd 6: didx and sidx are 0, the payload is records of 12 bytes.
  for (uint32_t n = 0; n < 61; ++n) {
    EXPECT_EQ(dropped(data(Opcode::terminate, n, 1424, 0, WdpClass::rd), n),
              n % 12 == 0 ? Why{} : Why{WdpDrop::message_length})
        << n;
  }
  // No record is split, so there is one segment.
  EXPECT_EQ(dropped(data(Opcode::terminate, 36, 24, 0, WdpClass::rd), 24), WdpDrop::message_length);
  WdpData d = data(Opcode::terminate, 24, 24, 0, WdpClass::rd);
  EXPECT_EQ(dropped(d, 24), Why{});
  d.didx = 1;
  EXPECT_EQ(dropped(d, 24), WdpDrop::index_mismatch);
  d.didx = 0;
  d.sidx = 1;
  EXPECT_EQ(dropped(d, 24), WdpDrop::index_mismatch);
}

// spec/wdp-rd 6.3: the header alone, in place of any segment.
TEST(WdpDataChecks, EndIsAHeaderOfAFlow) {
  WdpData d = data(Opcode::terminate, 0, 1424, 0, WdpClass::rd);
  d.didx = 2;
  d.sidx = 1;
  d.mo = MessageOffset{2848};
  EXPECT_EQ(dropped(d, 0), Why{});
  EXPECT_TRUE(d.is_end());
  EXPECT_TRUE(d.is_response());
  d.wants_response = true;
  EXPECT_FALSE(d.is_response());
  EXPECT_EQ(d.segment_count(), 1U);
  EXPECT_EQ(d.payload_size(), 0U);
  EXPECT_EQ(dropped(d, 12), WdpDrop::length_mismatch);
  d.mlen = 1;
  EXPECT_EQ(dropped(d, 0), WdpDrop::message_length);
  d.mo = MessageOffset{77};
  EXPECT_EQ(dropped(d, 0), WdpDrop::misaligned_offset);
  d.stride = 0;
  EXPECT_EQ(dropped(d, 0), WdpDrop::bad_stride);
  d.last = false;
  EXPECT_EQ(dropped(d, 0), WdpDrop::last_mismatch);
}

}  // namespace
}  // namespace weft::wire
