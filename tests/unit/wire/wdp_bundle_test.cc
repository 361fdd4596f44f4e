// Bundles (spec/wdp-rd 6.7): what of them is right.

#include "wire/wdp_bundle.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/bundles.h"
#include "tests/support/pattern.h"
#include "wire/wdp_ack.h"
#include "wire/wdp_data.h"

namespace weft::wire {
namespace {

using test::Buffer;

Buffer message(uint32_t size) {
  WdpData d{.wdp_class = WdpClass::rd,
            .didx = 2,
            .sidx = 1,
            .msn = Msn{1},
            .mlen = size,
            .last = true,
            .wants_response = true,
            .opcode = Opcode::send,
            .stride = 1424};
  Buffer b(WdpData::kSize + size);
  d.encode(b.data());
  const Buffer payload = test::pattern_bytes(size, size);
  std::copy(payload.begin(), payload.end(), b.begin() + WdpData::kSize);
  return b;
}

Buffer ack() {
  const WdpAck a{.cum = Csn{7}};
  Buffer b(a.size());
  a.encode(b.data());
  return b;
}

Buffer bundle(const std::vector<Buffer>& parts) {
  Buffer all(WdpBundle::kSize);
  WdpCommon{.wdp_class = WdpBundle::kClass, .class_word = 9}.encode(all.data());
  for (const Buffer& part : parts) {
    const size_t at = all.size();
    all.resize(at + WdpBundle::kFrame + part.size());
    std::copy(part.begin(), part.end(), WdpBundle::frame(all.data() + at, part.size()));
  }
  return all;
}

Result<Ok, WdpDrop> check(const Buffer& b) {
  return test::check_bundle(*WdpCommon::parse(b), b);
}
WdpDrop why(const Buffer& b) {
  const auto v = check(b);
  return v.ok() ? WdpDrop{} : v.error();
}

TEST(WdpBundle, ItsPartsComeInTheirOrder) {
  const std::vector<Buffer> parts{message(64), message(0), message(33), ack()};
  const Buffer b = bundle(parts);
  ASSERT_TRUE(check(b).ok());
  Bytes rest = Bytes{b}.subspan(WdpBundle::kSize);
  for (const Buffer& part : parts) {
    const auto taken = WdpBundle::take(rest);
    ASSERT_TRUE(taken.ok());
    EXPECT_EQ(Buffer(taken->begin(), taken->end()), part);
  }
  EXPECT_TRUE(rest.empty());
}

TEST(WdpBundle, ItIsThePortsOwn) {
  Buffer b = bundle({message(64)});
  b[2] = std::byte{1};
  EXPECT_EQ(why(b), WdpDrop::index_mismatch);
  b[2] = std::byte{0};
  b[3] = std::byte{1};
  EXPECT_EQ(why(b), WdpDrop::index_mismatch);
}

TEST(WdpBundle, LengthsAgree) {
  EXPECT_EQ(why(bundle({})), WdpDrop::length_mismatch) << "of nothing";
  const Buffer good = bundle({message(64), message(5)});
  for (size_t n = WdpBundle::kSize; n < good.size(); ++n) {
    // Cut between its two messages it is one of one message.
    const bool whole = n == WdpBundle::kSize + WdpBundle::kFrame + WdpData::kSize + 64;
    EXPECT_EQ(check({good.begin(), good.begin() + static_cast<ptrdiff_t>(n)}).ok(), whole) << n;
  }
  Buffer longer = good;
  longer.emplace_back();
  EXPECT_EQ(why(longer), WdpDrop::length_mismatch);
}

TEST(WdpBundle, EachPartHasToBeRight) {
  Buffer bad = message(64);
  bad[28] = std::byte{0x42};
  EXPECT_EQ(why(bundle({message(64), bad})), WdpDrop::ddp_version);
  bad = message(64);
  bad[0] = std::byte{0xd2};
  EXPECT_EQ(why(bundle({bad})), WdpDrop::other_version);
  bad = message(64);
  bad.pop_back();
  EXPECT_EQ(why(bundle({bad, message(5)})), WdpDrop::length_mismatch);
  bad = ack();
  bad[8] ^= std::byte{1};
  EXPECT_EQ(why(bundle({message(64), bad})), WdpDrop::bad_crc);
}

TEST(WdpBundle, MessagesAndOneRdackAtTheEnd) {
  EXPECT_TRUE(check(bundle({ack()})).ok());
  EXPECT_EQ(why(bundle({ack(), message(64)})), WdpDrop::wrong_class);
  EXPECT_EQ(why(bundle({message(64), ack(), ack()})), WdpDrop::wrong_class);
  EXPECT_EQ(why(bundle({bundle({message(64)})})), WdpDrop::wrong_class);
  Buffer of_uc = message(64);
  of_uc[1] = std::byte{0x10};
  EXPECT_EQ(why(bundle({of_uc})), WdpDrop::wrong_class);
}

TEST(WdpBundle, TokenAndCsnOfAPartDoNotMatter) {
  Buffer part = message(64);
  for (size_t i = 4; i < 12; ++i) part[i] = std::byte{0xff};
  EXPECT_TRUE(check(bundle({part})).ok());
}

}  // namespace
}  // namespace weft::wire
