// What holds of every format's table.
#include "stream/format/format.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace weft::stream {
namespace {

std::vector<std::byte> bytes(std::initializer_list<unsigned> values) {
  std::vector<std::byte> b;
  for (const unsigned v : values) b.push_back(static_cast<std::byte>(v));
  return b;
}

TEST(Field, IsReadAndWrittenInItsOrderAndItsBits) {
  constexpr Field big{"", 1, 3, ByteOrder::big, 4, 12, ""};
  constexpr Field little{"", 1, 3, ByteOrder::little, 4, 12, ""};
  auto header = bytes({0xff, 0x12, 0x34, 0x56, 0xff});
  EXPECT_EQ(big.get(header.data()), 0x345U);
  EXPECT_EQ(little.get(header.data()), 0x341U);
  big.put(header.data(), 0xfabc);  // what does not fit is cut off
  EXPECT_EQ(header, bytes({0xff, 0x12, 0xab, 0xc6, 0xff}));
  header = bytes({0xff, 0x12, 0x34, 0x56, 0xff});
  little.put(header.data(), 0xabc);
  EXPECT_EQ(header, bytes({0xff, 0xc2, 0xab, 0x56, 0xff}));
}

class Formats : public ::testing::TestWithParam<Format> {};

TEST_P(Formats, TablesHaveEachBitOnceAndInsideTheHeader) {
  const Shape shape{.format = GetParam(), .frames_per_second = 25'600, .vtp = true};
  std::set<std::string_view> names;
  std::vector<std::byte> taken(shape.header_bytes());
  for (const Field& field : rules_of(GetParam()).fields(shape)) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
    ASSERT_LE(field.end(), shape.header_bytes()) << field.name;
    ASSERT_LE(field.shift + field.bits, 8 * field.bytes) << field.name;
    EXPECT_EQ(field.get(taken.data()), 0U) << field.name;
    field.put(taken.data(), field.most());
  }
}

TEST_P(Formats, HeadersAreToldByName) {
  const Shape shape{.format = GetParam(), .frames_per_second = 25'600, .vtp = true};
  std::vector<std::byte> packet(shape.packet_bytes());
  write_header(shape, 3, 77, packet);
  EXPECT_EQ(fields_of(shape, packet).size(), rules_of(GetParam()).fields(shape).size());
  EXPECT_TRUE(fields_of(shape, {}).empty());
}

INSTANTIATE_TEST_SUITE_P(All, Formats,
                         ::testing::Values(Format::rsp, Format::spead, Format::raw, Format::vdif,
                                           Format::lofar2),
                         [](const auto& its) { return name_of(its.param); });

}  // namespace
}  // namespace weft::stream
