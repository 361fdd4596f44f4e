#include "wdp/uc_writer.h"

#include <gtest/gtest.h>

#include "tests/support/append.h"
#include "tests/support/host.h"
#include "wire/wdp_crc.h"

namespace weft::wdp {
namespace {

using test::Buffer;
using test::pattern_bytes;
using wire::Opcode;
using wire::WdpData;

struct UcWriterTest : ::testing::Test {
  UcParameters parameters{.path = {.to = {Gid::from_ipv4(0x0a000002), 40000}},
                          .peer_token = SessionToken{7},
                          .own_token = SessionToken{8},
                          .own_qpn = make_qpn(50000, 9),
                          .peer_qpn = make_qpn(40000, 5),
                          .first_psn = Psn{0xffffffffU}};

  static IoVec piece(Buffer& b) { return {b.data(), b.size()}; }
  static WdpData send(uint32_t size) {
    return {.mlen = size, .last = true, .opcode = Opcode::send, .stride = WdpData::kMaxStride};
  }
  static std::vector<Buffer> datagrams(const Train& train) {
    std::vector<Buffer> all;
    train.each_datagram([&](std::span<const IoVec> pieces) {
      Buffer& d = all.emplace_back();
      test::append(d, pieces);
    });
    return all;
  }
};

TEST_F(UcWriterTest, DatagramsAreAddressedAndNumbered) {
  UcWriter writer{parameters};
  Train train;
  Buffer a = pattern_bytes(100, 1);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(writer.write(train, send(100), std::array{piece(a)}));
  EXPECT_EQ(writer.written(), 2U);
  EXPECT_EQ(writer.next_psn(), Psn{1});
  EXPECT_EQ(train.path(), parameters.path);
  const auto all = datagrams(train);
  ASSERT_EQ(all.size(), 2U);
  uint32_t psn = 0xffffffffU;
  for (const Buffer& d : all) {
    const auto h = WdpData::parse(d);
    ASSERT_TRUE(h.ok());
    EXPECT_EQ(h->token, SessionToken{7});
    EXPECT_EQ(h->didx, 5);
    EXPECT_EQ(h->sidx, 9);
    EXPECT_EQ(h->psn, Psn{psn++}) << "it wraps";
    EXPECT_FALSE(h->flags.crc);
    EXPECT_TRUE(std::equal(a.begin(), a.end(), d.begin() + WdpData::kSize));
  }
}

// Small payloads are copied, and the program may write there; of large ones the train has the
// place.
TEST_F(UcWriterTest, LargePayloadsAreReferredTo) {
  for (const size_t size : {Train::kCopyBelow - 1, Train::kCopyBelow}) {
    UcWriter writer{parameters};
    Train train;
    Buffer a = pattern_bytes(size, 1);
    const Buffer before = a;
    ASSERT_TRUE(writer.write(train, send(static_cast<uint32_t>(size)), std::array{piece(a)}));
    std::fill(a.begin(), a.end(), std::byte{0});
    const Buffer said = datagrams(train).at(0);
    const Buffer& expected = size < Train::kCopyBelow ? before : a;
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), said.begin() + WdpData::kSize))
        << size;
  }
}

// What was summed is what leaves, whatever the program writes there meanwhile.
TEST_F(UcWriterTest, WithACrcAllIsCopied) {
  parameters.crc = true;
  UcWriter writer{parameters};
  Train train;
  Buffer a = pattern_bytes(Train::kCopyBelow + 7, 1);
  Buffer b = pattern_bytes(Train::kCopyBelow, 2);
  const auto size = static_cast<uint32_t>(a.size() + b.size());
  ASSERT_TRUE(writer.write(train, send(size), std::array{piece(a), piece(b)}));
  Buffer both = a;
  both.insert(both.end(), b.begin(), b.end());
  std::fill(a.begin(), a.end(), std::byte{0});
  const Buffer said = datagrams(train).at(0);
  EXPECT_TRUE(std::equal(both.begin(), both.end(), said.begin() + WdpData::kSize));
  const auto header = WdpData::parse(said);
  ASSERT_TRUE(header.ok());
  EXPECT_TRUE(header->flags.crc);
  EXPECT_TRUE(wire::wdp_crc_matches(said));
}

// spec/wdp-uc 2.1: one number for each message. What is said aside in the middle of one has
// another, and all of it the same.
TEST_F(UcWriterTest, WhatIsSaidAsideOfAMessageHasOneNumber) {
  UcWriter writer{parameters};
  EXPECT_EQ(writer.aside(), Msn{1});
  EXPECT_EQ(writer.aside(), Msn{2}) << "each its own where no message is under way";
  EXPECT_EQ(writer.begin_message(), Msn{3});
  EXPECT_EQ(writer.aside(), Msn{4});
  EXPECT_EQ(writer.aside(), Msn{4});
  writer.end_message();
  EXPECT_EQ(writer.aside(), Msn{5});
  EXPECT_EQ(writer.begin_message(), Msn{6});
  EXPECT_EQ(writer.aside(), Msn{7}) << "not that of the message before";
}

TEST_F(UcWriterTest, FitsWhatTheTrainTakes) {
  UcWriter writer{parameters};
  Train train;
  Buffer a = pattern_bytes(100, 1);
  ASSERT_TRUE(writer.write(train, send(100), std::array{piece(a)}));
  EXPECT_TRUE(writer.fits(train, 100));
  EXPECT_TRUE(writer.fits(train, 99)) << "the last one may be shorter";
  EXPECT_FALSE(writer.fits(train, 101));
  UcParameters elsewhere = parameters;
  elsewhere.path.to.port = 1;
  EXPECT_FALSE(UcWriter{elsewhere}.fits(train, 100));
}

}  // namespace
}  // namespace weft::wdp
