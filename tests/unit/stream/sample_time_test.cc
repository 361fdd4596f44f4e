#include "stream/sample_time.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft::stream {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

std::vector<std::byte> rsp(const Shape& shape, uint32_t second, uint32_t slice, uint32_t clock) {
  std::vector<std::byte> packet(shape.packet_bytes());
  write_header(shape, 0, 0, packet);
  const auto put = [&](size_t at, uint32_t value) {
    for (size_t i = 0; i < 4; ++i) packet[at + i] = static_cast<std::byte>(value >> (8 * i));
  };
  packet[1] = clock == 200 ? std::byte{0x80} : std::byte{0};
  put(8, second);
  put(12, slice);
  return packet;
}

TEST(SampleTime, OfSlicesWithinTheirSecond) {
  const Shape shape;
  const uint32_t even = 1'600'000'000;
  EXPECT_EQ(sample_time_ns(shape, rsp(shape, even, 0, 200)), even * kSecond);
  EXPECT_EQ(sample_time_ns(shape, rsp(shape, even, 100, 200)), even * kSecond + 512'000);
  // In the middle of the second's first slice, the one after it counts from 0.
  EXPECT_EQ(sample_time_ns(shape, rsp(shape, even + 1, 0, 200)), (even + 1) * kSecond + 2'560);
  EXPECT_EQ(sample_time_ns(shape, rsp(shape, even + 1, 3, 160)), (even + 1) * kSecond + 19'200);
}

TEST(SampleTime, GoesOnByThePeriodOfPackets) {
  const Shape shape{.slices = 16};
  EXPECT_EQ(period_of(shape, {.clock = 200}).ns, 81'920);
  EXPECT_EQ(period_of(shape, {.clock = 160}).ns, 102'400);
  std::vector<std::byte> packet(shape.packet_bytes());
  const uint64_t number = 19'531'250'000'000;
  write_header(shape, 0, number, packet);
  EXPECT_EQ(sample_time_ns(shape, packet), static_cast<int64_t>(number) * 81'920);
  advance(shape, 12'345, packet);
  EXPECT_EQ(sample_time_ns(shape, packet), static_cast<int64_t>(number + 12'345) * 81'920);
}

TEST(PacketPeriod, IsCutOffAndLosesNothing) {
  const PacketPeriod third{.ns = 1'000'000'000, .packets = 3};
  EXPECT_EQ(third.times(1), 333'333'333);
  EXPECT_EQ(third.times(2), 666'666'666);
  EXPECT_EQ(third.times(3'000'000'000), 1'000'000'000'000'000'000);
  EXPECT_EQ(third.packet_after(333'333'332), 0);
  EXPECT_EQ(third.packet_after(333'333'333), 1);
  EXPECT_EQ(third.packet_after(666'666'666), 2);
  EXPECT_EQ(third.packet_after(1'000'000'000), 3);
  const PacketPeriod whole{.ns = 81'920};
  EXPECT_EQ(whole.times(12'207), 999'997'440);
  EXPECT_EQ(whole.packet_after(999'997'439), 12'206);
}

TEST(SampleTime, OfVdifAndLofar2) {
  const Shape vdif{.format = Format::vdif, .payload = 64, .frames_per_second = 24'000};
  std::vector<std::byte> frame(vdif.packet_bytes());
  const uint64_t second = 650'000'000;  // since 2000
  write_header(vdif, 0, second * 24'000 + 7, frame);
  const int64_t begin = (946'684'800 + int64_t{second}) * kSecond;
  EXPECT_EQ(sample_time_ns(vdif, frame), begin + 291'666);
  EXPECT_EQ(sample_time_ns(vdif, frame, 24'000), begin + 291'666 + kSecond);

  const Shape lofar2{.format = Format::lofar2, .beamlets = 488, .slices = 4, .bits = 8};
  std::vector<std::byte> packet(lofar2.packet_bytes());
  const uint64_t number = 78'125'000'000'000;
  write_header(lofar2, 0, number, packet);
  EXPECT_EQ(sample_time_ns(lofar2, packet), static_cast<int64_t>(number) * 4 * 5120);
  EXPECT_EQ(sample_time_ns(lofar2, packet, 3), static_cast<int64_t>(number + 3) * 4 * 5120);
}

TEST(SampleTime, IsNotMadeUp) {
  const Shape rsp_shape;
  EXPECT_EQ(sample_time_ns(rsp_shape, rsp(rsp_shape, 0xffffffff, 0, 200)), std::nullopt);
  EXPECT_EQ(sample_time_ns(rsp_shape, std::vector<std::byte>(20)), std::nullopt);
  const Shape raw{.format = Format::raw, .payload = 20};
  EXPECT_FALSE(tells_time(raw));
  EXPECT_EQ(sample_time_ns(raw, std::vector<std::byte>(28)), std::nullopt);
}

}  // namespace
}  // namespace weft::stream
