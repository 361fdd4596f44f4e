// Recordings of lanes: plain and compressed, cut off, damaged, from a moment on, and again and
// again.
#include "stream/recording/recording_source.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "kit/failure.h"
#include "stream/sample_time.h"
#include "stream/utc.h"

namespace weft::stream {
namespace {

using Bytes = std::vector<std::byte>;
using Numbers = std::vector<uint64_t>;

constexpr uint64_t kFirst = 19'531'250'000'000;

class Recording : public ::testing::Test {
 protected:
  Recording() { std::filesystem::create_directory(folder_); }
  ~Recording() override { std::filesystem::remove_all(folder_); }

  // Samples vary with number and place.
  Bytes packet(uint64_t number) const {
    Bytes p(shape_.packet_bytes());
    for (size_t i = 0; i < p.size(); ++i) p[i] = static_cast<std::byte>(number * 31 + i * 7);
    write_header(shape_, 0, number, p);
    return p;
  }
  Bytes packets(uint64_t first, uint64_t count) const {
    Bytes all;
    for (uint64_t n = first; n < first + count; ++n) append(all, packet(n));
    return all;
  }
  static void append(Bytes& to, const Bytes& more) {
    to.insert(to.end(), more.begin(), more.end());
  }
  static Bytes compressed(const Bytes& bytes) {
    Bytes out(ZSTD_compressBound(bytes.size()));
    out.resize(ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 1));
    return out;
  }
  std::string file(const std::string& name, const Bytes& bytes) const {
    const std::string path = folder_ + "/" + name;
    std::ofstream{path, std::ios::binary}.write(reinterpret_cast<const char*>(bytes.data()),
                                                static_cast<std::streamsize>(bytes.size()));
    return path;
  }
  std::unique_ptr<Source> open(const std::vector<std::string>& paths, bool loop = false,
                               std::optional<int64_t> start = {}) const {
    return make_recording_source({.recordings = paths, .start = start, .loop = loop}, shape_);
  }
  Numbers numbers(Source& source, size_t most = 1'000'000, uint32_t stream = 0) const {
    Numbers all;
    Bytes got(shape_.packet_bytes());
    while (all.size() < most) {
      const auto number = source.own_number(stream);
      if (!number) break;
      EXPECT_EQ(source.own_time_ns(stream), static_cast<int64_t>(*number) * 81'920);
      EXPECT_TRUE(source.fill(stream, *number, got));
      EXPECT_EQ(number_of(shape_, got), number);
      all.push_back(*number);
    }
    return all;
  }
  static Numbers range(uint64_t first, uint64_t count) {
    Numbers all;
    for (uint64_t i = 0; i < count; ++i) all.push_back(first + i);
    return all;
  }
  std::string refusal(const std::string& path, std::optional<int64_t> start = {}) const {
    try {
      open({path}, false, start);
    } catch (const kit::Failure& failure) {
      return std::string{failure.what()}.substr(path.size());
    }
    return "none";
  }

  const Shape shape_{.beamlets = 3, .slices = 16, .bits = 8};
  const std::string folder_ = ::testing::TempDir() + "weft-recording-" + std::to_string(::getpid());
};

// Nobody has told the order of the counter's bytes; one file has fewer packets than it takes to see
// it, and what the first one shows is so in all.
TEST_F(Recording, PacketsShowTheOrderOfTheirCounter) {
  const Shape open{.format = Format::raw, .payload = 20};
  for (const char* const place : {"0:8:be", "0:8:le"}) {
    Shape written = open;
    written.number = place_of(Format::raw, place);
    std::vector<std::string> paths;
    for (const uint64_t count : {30, 1}) {
      Bytes all;
      for (uint64_t n = 250; n < 250 + count; ++n) {
        Bytes p(written.packet_bytes(), static_cast<std::byte>(n * 7));
        write_header(written, 0, n, p);
        append(all, p);
      }
      paths.push_back(file(std::to_string(count), all));
    }
    const auto source = make_recording_source({.recordings = paths, .start = {}}, open);
    EXPECT_EQ(source->shape(), written);
    Bytes got(written.packet_bytes());
    for (uint64_t n = 250; n < 280; ++n) {
      ASSERT_EQ(source->own_number(0), n) << place;
      ASSERT_TRUE(source->fill(0, n, got));
    }
    EXPECT_EQ(source->own_number(0), std::nullopt);
    EXPECT_EQ(source->own_number(1), 250U);
    EXPECT_EQ(source->unusable(), 0U);
  }
}

TEST_F(Recording, EachByteOfALanePerStreamPlainOrCompressed) {
  const auto source =
      open({file("a", packets(kFirst, 300)), file("b.zst", compressed(packets(kFirst + 50, 400)))});
  EXPECT_TRUE(source->has_own_numbers());
  Bytes got(shape_.packet_bytes());
  for (uint64_t i = 0; i < 400; ++i) {
    for (uint32_t stream = 0; stream < 2; ++stream) {
      const auto number = source->own_number(stream);
      if (stream == 0 && i >= 300) {
        EXPECT_EQ(number, std::nullopt);
        continue;
      }
      ASSERT_EQ(number, kFirst + (stream == 0 ? 0 : 50) + i);
      ASSERT_TRUE(source->fill(stream, *number, got));
      ASSERT_EQ(got, packet(*number));
    }
  }
  EXPECT_EQ(source->own_number(1), std::nullopt);
  EXPECT_EQ(source->unusable(), 0U);
  EXPECT_EQ(source->error(), "");
}

TEST_F(Recording, KnowsTheLowestOfThePacketsThatAreNext) {
  Bytes all;
  for (const uint64_t i : {5, 1, 2, 3, 4, 0, 6, 7, 8}) append(all, packet(kFirst + i));
  const auto source = open({file("a", all)});
  Bytes got(shape_.packet_bytes());
  EXPECT_EQ(source->lowest_own_number(0), kFirst);
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(source->fill(0, 0, got));
  EXPECT_EQ(source->lowest_own_number(0), kFirst + 6);
}

TEST_F(Recording, ACounterOfFewBitsGoesOnWhenItComesRound) {
  Shape shape{.format = Format::raw, .payload = 20};
  shape.number = place_of(Format::raw, "0:2");
  Bytes all;
  for (uint64_t n = 65'500; n < 65'600; ++n) {
    Bytes p(shape.packet_bytes());
    write_header(shape, 0, n, p);
    append(all, p);
  }
  const auto source = make_recording_source({.recordings = {file("a", all)}, .start = {}}, shape);
  Bytes got(shape.packet_bytes());
  for (uint64_t n = 65'500; n < 65'600; ++n) {
    ASSERT_EQ(source->own_number(0), n);
    ASSERT_TRUE(source->fill(0, n, got));
  }
  EXPECT_EQ(source->own_number(0), std::nullopt);
}

// A recorder that is started again adds a frame.
TEST_F(Recording, SeveralFramesOfZstdAreOneFile) {
  Bytes all = compressed(packets(kFirst, 100));
  append(all, compressed(packets(kFirst + 100, 20)));
  EXPECT_EQ(numbers(*open({file("a.zst", all)})), range(kFirst, 120));
}

TEST_F(Recording, WhatIsCutOffEndsThere) {
  const Bytes whole = packets(kFirst, 20);
  const auto source = open({file("a", {whole.begin(), whole.end() - 1})});
  EXPECT_EQ(numbers(*source), range(kFirst, 19));
  EXPECT_EQ(source->unusable(), 1U);

  // Noise does not compress: as much is left of the packets as of the file.
  Bytes noise = packets(kFirst, 2000);
  uint32_t x = 1;
  for (size_t i = 0; i < noise.size(); ++i) {
    if (i % shape_.packet_bytes() >= 16)
      noise[i] = static_cast<std::byte>((x = x * 1'664'525 + 1'013'904'223) >> 24);
  }
  Bytes half = compressed(noise);
  half.resize(half.size() / 2);
  const auto cut = open({file("b.zst", half)});
  const Numbers left = numbers(*cut);
  EXPECT_GT(left.size(), 300U);
  EXPECT_EQ(left, range(kFirst, left.size()));
  EXPECT_EQ(cut->error(), "");
}

TEST_F(Recording, WhatIsDamagedSaysSo) {
  Bytes all = compressed(packets(kFirst, 100));
  append(all, Bytes(200, std::byte{0x77}));
  const auto source = open({file("a.zst", all)});
  EXPECT_EQ(numbers(*source), range(kFirst, 100));
  EXPECT_NE(source->error().find("a.zst cannot be decompressed"), std::string::npos)
      << source->error();
  EXPECT_NE(refusal(file("b.zst", packets(kFirst, 3))).find("cannot be decompressed"),
            std::string::npos);
}

TEST_F(Recording, HeadersThatAreNoneAreUnusableAndTheRestIsSent) {
  Bytes all = packets(kFirst, 30);
  all[5 * shape_.packet_bytes()] = std::byte{9};                      // its version
  std::memset(all.data() + 10 * shape_.packet_bytes() + 8, 0xff, 4);  // no time
  all[15 * shape_.packet_bytes() + 4] = std::byte{77};                // another station
  const auto source = open({file("a", all)});
  Numbers expected = range(kFirst, 30);
  for (const ptrdiff_t gone : {15, 10, 5}) expected.erase(expected.begin() + gone);
  EXPECT_EQ(numbers(*source), expected);
  EXPECT_EQ(source->unusable(), 3U);
}

TEST_F(Recording, WhatIsNoRecordingIsRefused) {
  EXPECT_EQ(refusal(file("a", Bytes(5 * shape_.packet_bytes(), std::byte{0xaa}))),
            " has no packets of this shape; the first that is none: version 170, not 2 to 4");
  EXPECT_EQ(refusal(file("b", Bytes(5))),
            " has no packets of this shape; the first that is none: the file ends within a packet");
  EXPECT_EQ(refusal(folder_ + "/none"), ": No such file or directory");
}

// By halves in a plain file, and by reading on in a compressed one.
TEST_F(Recording, BeginsAtAMoment) {
  constexpr uint64_t kCount = 30'000;
  const Bytes all = packets(kFirst, kCount);
  const std::string plain = file("a", all);
  const std::string zst = file("a.zst", compressed(all));
  for (const uint64_t skip : {uint64_t{0}, uint64_t{1}, uint64_t{12'345}, kCount - 1}) {
    const auto start = static_cast<int64_t>(kFirst + skip) * 81'920;
    for (const std::string& path : {plain, zst}) {
      for (const int64_t earlier : {0, 81'919}) {
        const auto source = open({path}, false, start - earlier);
        EXPECT_EQ(numbers(*source), range(kFirst + skip, kCount - skip)) << path << skip;
      }
    }
  }
  const int64_t last = static_cast<int64_t>(kFirst + kCount - 1) * 81'920;
  for (const std::string& path : {plain, zst}) {
    EXPECT_EQ(refusal(path, last + 1),
              " ends before --start: its last packet is of " + utc_text(last, 6));
  }
}

TEST_F(Recording, BeginsAtAMomentThoughPacketsOvertookEachOther) {
  Bytes all;
  for (uint64_t i = 0; i < 10'000; i += 4) {
    for (const uint64_t k : {3, 1, 2, 0}) append(all, packet(kFirst + i + k));
  }
  Bytes no_time = packet(kFirst);
  std::memset(no_time.data() + 8, 0xff, 4);
  const size_t middle = 5'000 * no_time.size();
  for (size_t i = 0; i < 70; ++i)
    std::memcpy(&all[middle + i * no_time.size()], no_time.data(), no_time.size());
  const auto source = open({file("a", all)}, false, static_cast<int64_t>(kFirst + 4'000) * 81'920);
  Numbers got = numbers(*source);
  std::sort(got.begin(), got.end());
  Numbers expected = range(kFirst + 4'000, 1'000);
  for (const uint64_t n : range(kFirst + 5'070, 4'930)) expected.push_back(n);
  // 5070 and 5071 stood behind 5068 and 5069, of which one came in the place of those without time.
  got.erase(std::remove_if(got.begin(), got.end(),
                           [](uint64_t n) { return n >= kFirst + 5'068 && n < kFirst + 5'072; }),
            got.end());
  expected.erase(
      std::remove_if(expected.begin(), expected.end(),
                     [](uint64_t n) { return n >= kFirst + 5'068 && n < kFirst + 5'072; }),
      expected.end());
  EXPECT_EQ(got, expected);
}

TEST_F(Recording, ALoopGoesOnInTimeByTheLongestOne) {
  const auto source =
      open({file("a", packets(kFirst, 30)), file("b.zst", compressed(packets(kFirst, 50)))}, true);
  Numbers expected = range(kFirst, 30);
  for (const uint64_t n : range(kFirst + 50, 30)) expected.push_back(n);
  EXPECT_EQ(numbers(*source, 60, 0), expected);
  EXPECT_EQ(numbers(*source, 120, 1), range(kFirst, 120));
}

TEST_F(Recording, PacketsOfOtherFormatsHaveNumbersAndNoTimes) {
  const Shape raw{.format = Format::raw, .payload = 50};
  Bytes all;
  for (uint64_t n = 70; n < 90; ++n) {
    Bytes p(raw.packet_bytes(), static_cast<std::byte>(n));
    write_header(raw, 0, n, p);
    append(all, p);
  }
  const auto source = make_recording_source({.recordings = {file("a", all)}}, raw);
  EXPECT_FALSE(source->has_own_times());
  EXPECT_EQ(source->own_time_ns(0), std::nullopt);
  Bytes got(raw.packet_bytes());
  for (uint64_t n = 70; n < 90; ++n) {
    ASSERT_EQ(source->own_number(0), n);
    ASSERT_TRUE(source->fill(0, n, got));
    EXPECT_EQ(got[30], static_cast<std::byte>(n));
  }
  EXPECT_EQ(source->own_number(0), std::nullopt);
}

TEST_F(Recording, APipeIsAsGood) {
  const std::string path = folder_ + "/pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::thread writer{[&] { (void)file("pipe", packets(kFirst, 5'000)); }};
  EXPECT_EQ(numbers(*open({path})), range(kFirst, 5'000));
  writer.join();
  EXPECT_THROW(open({path}, true), kit::Failure);
}

}  // namespace
}  // namespace weft::stream
