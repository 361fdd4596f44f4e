// Files of one stream: which packets lie in which of them, what stands for those that are missing,
// and which names they have.
#include "stream/output/stream_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "kit/failure.h"
#include "stream/utc.h"

namespace {

// What was asked to be on the disk, by the name that it had then.
struct Disk {
  int error = 0;
  std::vector<std::string> synced;
};
Disk g_disk;

}  // namespace

extern "C" int fsync(int fd) {
  g_disk.synced.push_back(
      std::filesystem::read_symlink(std::filesystem::path{"/proc/self/fd"} / std::to_string(fd))
          .string());
  errno = g_disk.error;
  return g_disk.error == 0 ? 0 : -1;
}

namespace weft::stream {
namespace {

constexpr uint32_t kBlock = 8;  // packets
// A whole second, and a whole block.
constexpr uint64_t kFirst = 19'531'250'000'000;

class Files : public ::testing::Test {
 protected:
  Files() { std::filesystem::create_directory(folder_); }
  ~Files() override { std::filesystem::remove_all(folder_); }

  Bytes packet(uint64_t number, uint8_t clock = 200) const {
    Bytes p(shape_.packet_bytes());
    for (size_t i = 0; i < p.size(); ++i)
      p[i] = static_cast<std::byte>(number * 31 + i * 7 + i / 256);
    write_header(shape_, 0, number, p);
    p[1] = clock == 200 ? std::byte{0x80} : std::byte{0};
    return p;
  }
  Bytes payload(uint64_t number) const {
    const Bytes p = packet(number);
    return {p.begin() + shape_.header_bytes(), p.end()};
  }
  std::byte sample(uint64_t number, size_t i) const { return payload(number)[i]; }

  void open(Layout layout, const std::string& name, Rotation rotation = {},
            bool overwrite = false) {
    files_ = std::make_unique<StreamFiles>(
        StreamFilesOptions{.name = FileName{folder_ + "/" + name},
                           .overwrite = overwrite,
                           .rotation = rotation,
                           .most_filled = 64,
                           .tell = [this](const nlohmann::json& event) { told_.push_back(event); }},
        shape_, make_file_layout(layout, shape_, header_));
  }
  // The block that has this number first, without `missing`.
  void add(uint64_t first, const std::set<uint32_t>& missing = {},
           std::optional<int64_t> start = {}) {
    weft_stream_block block{};
    block.magic = WEFT_STREAM_MAGIC;
    block.number = first / kBlock;
    block.packets = kBlock;
    block.packet_bytes = shape_.packet_bytes();
    block.slot_bytes = shape_.packet_bytes() + 16;
    block.block_bytes = uint64_t{kBlock} * block.slot_bytes;
    // What lies in slots of packets that are missing is of the past.
    Bytes data(block.block_bytes, std::byte{0xee});
    for (uint32_t i = 0; i < kBlock; ++i) {
      if (missing.contains(i)) continue;
      const Bytes p = packet(first + i, clock_);
      std::memcpy(data.data() + size_t{i} * block.slot_bytes, p.data(), p.size());
      block.valid[i / 8] = static_cast<uint8_t>(block.valid[i / 8] | 1U << i % 8);
      ++block.received;
    }
    BlockView view{shape_, block, data.data(), start};
    files_->add(view);
  }
  Bytes read(const std::string& name) const {
    std::ifstream file{folder_ + "/" + name, std::ios::binary};
    EXPECT_TRUE(file.good()) << name;
    const std::string text{std::istreambuf_iterator<char>{file}, {}};
    const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
    return {bytes, bytes + text.size()};
  }
  std::set<std::string> names() const {
    std::set<std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator{folder_})
      all.insert(entry.path().filename());
    return all;
  }
  // Of a DADA file's header.
  static std::map<std::string, std::string> keywords(const Bytes& file) {
    std::map<std::string, std::string> all;
    const std::string text{reinterpret_cast<const char*>(file.data()),
                           std::min<size_t>(file.size(), 4096)};
    std::istringstream lines{text.substr(0, text.find('\0'))};
    for (std::string key, value; lines >> key && std::getline(lines >> std::ws, value);)
      all[key] = value;
    return all;
  }
  // Number of the packet that each packet's place in a DADA file has; 0: zeroes.
  std::vector<uint64_t> dada_numbers(const Bytes& file, uint64_t from) const {
    std::vector<uint64_t> found;
    const size_t size = shape_.payload_bytes();
    EXPECT_EQ((file.size() - 4096) % size, 0U);
    for (size_t at = 4096; at + size <= file.size(); at += size) {
      const uint64_t number = from + found.size();
      const Bytes zero(size);
      if (std::memcmp(&file[at], zero.data(), size) == 0) {
        found.push_back(0);
        continue;
      }
      // Time, beamlet, and the four parts of a sample.
      const Bytes original = payload(number);
      Bytes turned(size);
      const uint32_t bytes = sample_bytes(shape_);
      for (uint32_t b = 0; b < shape_.beamlets; ++b) {
        for (uint32_t s = 0; s < shape_.slices; ++s) {
          std::memcpy(&turned[(size_t{s} * shape_.beamlets + b) * bytes],
                      &original[(size_t{b} * shape_.slices + s) * bytes], bytes);
        }
      }
      EXPECT_EQ(std::memcmp(&file[at], turned.data(), size), 0) << number;
      found.push_back(number);
    }
    return found;
  }
  static std::vector<uint64_t> range(uint64_t first, uint64_t count,
                                     const std::set<uint64_t>& zero = {}) {
    std::vector<uint64_t> all;
    for (uint64_t i = 0; i < count; ++i) all.push_back(zero.contains(first + i) ? 0 : first + i);
    return all;
  }

  Shape shape_{.beamlets = 3, .slices = 16, .bits = 16};
  uint8_t clock_ = 200;
  HeaderFile header_;
  std::unique_ptr<StreamFiles> files_;
  std::vector<nlohmann::json> told_;
  const std::string folder_ = ::testing::TempDir() + "weft-files-" + std::to_string(::getpid());
};

TEST_F(Files, DadaIsSamplesWithoutAGapFromTheFirstPacketToTheLast) {
  for (const uint32_t bits : {16U, 8U, 4U}) {
    shape_.bits = bits;
    const std::string name = "a" + std::to_string(bits);
    open(Layout::dada, name);
    add(kFirst, {0, 1, 4});
    add(kFirst + 8);
    add(kFirst + 32, {0, 6, 7});  // two blocks of which nothing came
    EXPECT_TRUE(names().contains(name + ".part"));
    EXPECT_FALSE(names().contains(name));
    files_->end_observation();
    EXPECT_FALSE(names().contains(name + ".part"));
    const Bytes file = read(name);
    std::set<uint64_t> zero{kFirst + 4, kFirst + 32};
    for (uint64_t i = 16; i < 32; ++i) zero.insert(kFirst + i);
    EXPECT_EQ(dada_numbers(file, kFirst + 2), range(kFirst + 2, 36, zero));
    auto k = keywords(file);
    const std::string size = std::to_string(36 * shape_.payload_bytes());
    EXPECT_EQ(k["HEADER"], "DADA");
    EXPECT_EQ(k["DADA_VERSION"], "1.0");
    EXPECT_EQ(k["BW"], "0.5859375");
    EXPECT_EQ(k["#"], "end of header");
    EXPECT_EQ(k["HDR_SIZE"], "4096");
    EXPECT_EQ(k["FILE_SIZE"], size);
    EXPECT_EQ(k["OBS_OFFSET"], "0");
    EXPECT_EQ(k["UTC_START"], "2020-09-13-12:26:40");
    EXPECT_EQ(k["PICOSECONDS"], std::to_string(2 * 81'920'000));
    EXPECT_EQ(k["NBIT"], std::to_string(bits));
    EXPECT_EQ(k["NDIM"] + k["NPOL"] + k["NCHAN"], "223");
    EXPECT_EQ(k["TSAMP"], "5.12");
    EXPECT_EQ(k["RESOLUTION"], std::to_string(3 * bits / 2));
    EXPECT_EQ(k["BYTES_PER_SECOND"], std::to_string(1'171'875 * bits / 4));
    EXPECT_EQ(k["PACKETS_MISSING"], "18");
    ASSERT_EQ(told_.size(), 1U);
    EXPECT_EQ(told_[0]["packets"], 18);
    EXPECT_EQ(told_[0]["missing"], 18);
    EXPECT_EQ(told_[0]["bytes"], file.size());
    told_.clear();
  }
}

TEST_F(Files, DadaOfA160MhzClock) {
  clock_ = 160;
  open(Layout::dada, "a");
  add(kFirst);
  files_->end_observation();
  auto k = keywords(read("a"));
  EXPECT_EQ(k["TSAMP"], "6.4");
  EXPECT_EQ(k["CLOCK"], "160");
  EXPECT_EQ(k["BYTES_PER_SECOND"], std::to_string(156'250 * 3 * 8));
}

TEST_F(Files, DadaTakesWhatTheUserSaysButForWhatTheBytesAre) {
  const std::string path = folder_ + "/sky.hdr";
  std::ofstream{path} << "SOURCE B0329+54\nNBIT 2\nTELESCOPE DE601\nOBS_OFFSET 77\nLONG "
                      << std::string(5'000, 'x') << "\n";
  header_ = HeaderFile{path};
  open(Layout::dada, "a");
  add(kFirst);
  files_->end_observation();
  const Bytes file = read("a");
  EXPECT_EQ(file.size(), 8'192 + 8 * shape_.payload_bytes());
  const std::string text{reinterpret_cast<const char*>(file.data()), 8'192};
  EXPECT_NE(text.find("HDR_SIZE         8192\n"), std::string::npos);
  EXPECT_NE(text.find("SOURCE           B0329+54\n"), std::string::npos);
  EXPECT_NE(text.find("TELESCOPE        DE601\n"), std::string::npos);
  EXPECT_NE(text.find("NBIT             16\n"), std::string::npos);
  EXPECT_NE(text.find("OBS_OFFSET       0\n"), std::string::npos);
}

TEST_F(Files, DadaOfOtherFormatsHasPayloadsAsTheyCame) {
  shape_ = {.format = Format::raw, .payload = 100};
  open(Layout::dada, "a");
  Bytes expected;
  for (uint32_t i = 0; i < kBlock; ++i) {
    const Bytes p = i == 3 ? Bytes(100) : payload(80 + i);
    expected.insert(expected.end(), p.begin(), p.end());
  }
  // packet() writes the clock's bit, which lies in the number here.
  shape_.format = Format::raw;
  weft_stream_block block{};
  block.number = 10;
  block.packets = kBlock;
  block.packet_bytes = block.slot_bytes = 108;
  block.valid[0] = 0xf7;
  block.received = 7;
  block.closed_ns = 1'600'000'000'500'000'000;
  Bytes data(size_t{kBlock} * 108);
  for (uint32_t i = 0; i < kBlock; ++i)
    std::memcpy(&data[size_t{i} * 108 + 8], &expected[size_t{i} * 100], 100);
  BlockView view{shape_, block, data.data()};
  files_->add(view);
  files_->end_observation();
  const Bytes file = read("a");
  EXPECT_EQ(Bytes(file.begin() + 4096, file.end()), expected);
  auto k = keywords(file);
  EXPECT_FALSE(k.contains("NBIT") || k.contains("TSAMP"));
  EXPECT_EQ(k["UTC_START"], "2020-09-13-12:26:40");  // when the block was published
}

TEST_F(Files, FilesFollowEachOtherWithoutAGapBySize) {
  const uint64_t two = 4096 + uint64_t{2} * kBlock * shape_.payload_bytes();
  open(Layout::dada, "{number}.dada", {.bytes = two + 1});
  add(kFirst, {0});
  add(kFirst + 8, {7});
  add(kFirst + 16, {0});  // its first packet stands in the third file's place of it all the same
  add(kFirst + 32);
  files_->end_observation();
  EXPECT_EQ(names(), (std::set<std::string>{"0000.dada", "0001.dada", "0002.dada"}));
  const std::vector<Bytes> files{read("0000.dada"), read("0001.dada"), read("0002.dada")};
  EXPECT_EQ(dada_numbers(files[0], kFirst + 1), range(kFirst + 1, 15, {kFirst + 15}));
  std::set<uint64_t> zero{kFirst + 16};
  for (uint64_t i = 24; i < 32; ++i) zero.insert(kFirst + i);
  EXPECT_EQ(dada_numbers(files[1], kFirst + 16), range(kFirst + 16, 16, zero));
  EXPECT_EQ(dada_numbers(files[2], kFirst + 32), range(kFirst + 32, 8));
  uint64_t offset = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    auto k = keywords(files[i]);
    EXPECT_EQ(k["OBS_OFFSET"], std::to_string(offset));
    EXPECT_EQ(k["FILE_NUMBER"], std::to_string(i));
    EXPECT_EQ(k["PICOSECONDS"], "81920000");
    EXPECT_LE(files[i].size(), two + 1);
    offset += files[i].size() - 4096;
  }
}

TEST_F(Files, ByTimeTheyBeginAtItsMultiples) {
  shape_.slices = 255;  // a block is 10.4448 ms
  const uint64_t first =
      static_cast<uint64_t>(1'600'000'000'000'000'000 / period_of(shape_, {.clock = 200}).ns) /
      kBlock * kBlock;
  open(Layout::packets, "{time}", {.ns = 30'000'000});
  for (uint64_t i = 0; i < 10; ++i) add(first + i * kBlock);
  files_->end_observation();
  std::map<int64_t, std::string> expected;  // the first block of each 30 ms
  for (uint64_t i = 0; i < 10; ++i) {
    const int64_t time =
        static_cast<int64_t>(first + i * kBlock) * period_of(shape_, {.clock = 200}).ns;
    expected.emplace(time / 30'000'000, utc_text(time, 3));
  }
  std::set<std::string> wanted;
  for (const auto& [slot, name] : expected) wanted.insert(name);
  EXPECT_GE(wanted.size(), 4U);
  EXPECT_EQ(names(), wanted);
}

TEST_F(Files, AnOutageThatIsTooLongToBeFilledBeginsAnotherFileOfTheObservation) {
  open(Layout::dada, "a");
  add(kFirst);
  add(kFirst + 8 + 64);
  add(kFirst + 80 + 72, {0});
  files_->end_observation();
  EXPECT_EQ(names(), (std::set<std::string>{"a", "a.0001"}));
  EXPECT_EQ(dada_numbers(read("a"), kFirst).size(), 80U);
  const Bytes second = read("a.0001");
  EXPECT_EQ(dada_numbers(second, kFirst + 153), range(kFirst + 153, 7));
  auto k = keywords(second);
  EXPECT_EQ(k["OBS_OFFSET"], std::to_string(153 * shape_.payload_bytes()));
  EXPECT_EQ(k["PICOSECONDS"], "0");
}

TEST_F(Files, ACountThatBeginsAnewIsAnotherObservation) {
  open(Layout::dada, "a");
  add(kFirst + 80);
  add(kFirst);
  add(kFirst + 8);
  clock_ = 160;
  add(kFirst + 16);
  files_->end_observation();
  EXPECT_EQ(names(), (std::set<std::string>{"a", "a.0001", "a.0002"}));
  EXPECT_EQ(dada_numbers(read("a.0001"), kFirst), range(kFirst, 16));
  EXPECT_EQ(keywords(read("a.0001"))["OBS_OFFSET"], "0");
  EXPECT_EQ(keywords(read("a.0002"))["CLOCK"], "160");
}

TEST_F(Files, NothingBeforeTheStart) {
  open(Layout::dada, "a");
  const int64_t start = static_cast<int64_t>(kFirst + 11) * 81'920 - 1;
  for (uint64_t i = 0; i < 24; i += 8) add(kFirst + i, {}, start);
  files_->end_observation();
  EXPECT_EQ(dada_numbers(read("a"), kFirst + 11), range(kFirst + 11, 13));
}

TEST_F(Files, ARecordingHasThePacketsThatCame) {
  open(Layout::packets, "a");
  add(kFirst, {2, 3});
  add(kFirst + 80);
  files_->end_observation();
  Bytes expected;
  for (const uint64_t i : {0, 1, 4, 5, 6, 7, 80, 81, 82, 83, 84, 85, 86, 87}) {
    const Bytes p = packet(kFirst + i);
    expected.insert(expected.end(), p.begin(), p.end());
  }
  EXPECT_EQ(read("a"), expected);
  EXPECT_EQ(told_[0]["missing"], 74);
}

TEST_F(Files, WhatIsThereIsLeftAlone) {
  const auto write = [&](const std::string& name) {
    std::ofstream{folder_ + "/" + name} << "of last night";
  };
  write("a");
  write("0000.part");
  write("0001");
  open(Layout::packets, "a");
  EXPECT_THROW(add(kFirst), kit::Failure);
  open(Layout::packets, "0000");
  EXPECT_THROW(add(kFirst), kit::Failure);
  open(Layout::packets, "{number}");
  add(kFirst);
  files_->end_observation();
  EXPECT_EQ(names(), (std::set<std::string>{"a", "0000.part", "0001", "0002"}));
  open(Layout::packets, "a", {}, true);
  add(kFirst);
  files_->end_observation();
  EXPECT_EQ(read("a").size(), 8 * shape_.packet_bytes());
}

// A receiver that was forgotten still writes it.
TEST_F(Files, OneIsWrittenByOneReceiver) {
  const std::string path = folder_ + "/a";
  const auto write = [](OutputFile& file, char byte) {
    const std::vector<std::byte> bytes(100, std::byte(byte));
    file.append(bytes);
  };
  OutputFile first{path, true};
  write(first, 'f');
  EXPECT_THROW((OutputFile{path, true}), kit::Failure);
  EXPECT_THROW((OutputFile{path, false}), kit::Failure);
  first.finish(false);
  EXPECT_EQ(read("a"), Bytes(100, std::byte{'f'}));
  // It has its name: the next one may be written beside it, and takes its place.
  OutputFile second{path, true};
  write(second, 's');
  EXPECT_EQ(read("a"), Bytes(100, std::byte{'f'}));
  second.finish(false);
  EXPECT_EQ(read("a"), Bytes(100, std::byte{'s'}));
  // What a receiver left that was killed is nobody's.
  std::ofstream{path + ".part"} << std::string(300, 'k');
  OutputFile third{path, true};
  write(third, 't');
  third.finish(false);
  EXPECT_EQ(read("a"), Bytes(100, std::byte{'t'}));
}

// Each block: cards, padding, and channel by channel.
TEST_F(Files, GuppiIsBlocksOfChannels) {
  for (const uint32_t beamlets : {4U, 3U}) {
    shape_.beamlets = beamlets;
    shape_.slices =
        beamlets == 4 ? 16 : 5;  // 4 x 16 x 8 x 8 is a multiple of 512, and 3 x 5 x 8 x 8 is not
    const std::string name = "a" + std::to_string(beamlets);
    open(Layout::guppi, name);
    add(kFirst, {0, 5});
    add(kFirst + 24);
    files_->end_observation();
    const Bytes file = read(name);
    size_t at = 0;
    for (const uint64_t block : {uint64_t{0}, uint64_t{24}}) {
      std::map<std::string, std::string> cards;
      for (;; at += 80) {
        ASSERT_LE(at + 80, file.size());
        const std::string card{reinterpret_cast<const char*>(&file[at]), 80};
        if (card.starts_with("END ")) break;
        ASSERT_EQ(card.substr(8, 2), "= ") << card;
        const std::string key = card.substr(0, std::min<size_t>(8, card.find(' ')));
        const std::string value = card.substr(10);
        cards[key] = value.substr(value.find_first_not_of(' '),
                                  value.find_last_not_of(' ') + 1 - value.find_first_not_of(' '));
      }
      at += 80;
      EXPECT_EQ(cards["OBSNCHAN"], std::to_string(beamlets));
      EXPECT_EQ(cards["NPOL"] + cards["NBITS"] + cards["OVERLAP"], "4160");
      EXPECT_EQ(cards["PKTIDX"], std::to_string(block));
      EXPECT_EQ(cards["PKTSIZE"], std::to_string(shape_.payload_bytes()));
      EXPECT_EQ(cards["NPKT"], block == 0 ? "6" : "8");
      EXPECT_EQ(cards["DROPBLK"], block == 0 ? "0.250000" : "0.000000");
      // 2 of 8; then 16 more, whole blocks of which nothing came.
      EXPECT_EQ(cards["DROPTOT"], block == 0 ? "0.250000" : "0.562500");
      EXPECT_EQ(cards["STT_IMJD"], beamlets == 4 ? "59105" : "46374");
      EXPECT_EQ(cards["STT_SMJD"], beamlets == 4 ? "44800" : "3200");
      EXPECT_EQ(cards["BACKEND"].substr(0, 6), "'GUPPI");
      const size_t data = size_t{kBlock} * shape_.payload_bytes();
      EXPECT_EQ(cards["BLOCSIZE"], std::to_string(data));
      EXPECT_EQ(cards["DIRECTIO"], beamlets == 4 ? "1" : "0");
      if (beamlets == 4) {
        EXPECT_EQ(at % 512, 0U);
      }
      ASSERT_LE(at + data, file.size());
      const size_t run = size_t{shape_.slices} * 8;
      for (uint32_t channel = 0; channel < beamlets; ++channel) {
        for (uint32_t i = 0; i < kBlock; ++i) {
          const bool missing = block == 0 && (i == 0 || i == 5);
          for (size_t k = 0; k < run; ++k, ++at) {
            const std::byte expected =
                missing ? std::byte{0} : sample(kFirst + block + i, channel * run + k);
            ASSERT_EQ(file[at], expected) << channel << " " << i << " " << k;
          }
        }
      }
    }
    EXPECT_EQ(at, file.size());
  }
}

// FITS: a quote within a text is two, a text has its closing quote within the card, and one that
// looks like a number is none.
TEST_F(Files, GuppiHasTextsAsFitsHasThem) {
  const std::string path = folder_ + "/sky.hdr";
  std::ofstream{path} << "OBSERVER= 'O''Brien'\nSRC_NAME= '0329'\nOBSFREQ 150.5\nRA_STR 0x10\n"
                      << "LONG1 " << std::string(90, 'y') << "\nLONG2 " << std::string(67, 'z')
                      << "'s\n";
  header_ = HeaderFile{path};
  open(Layout::guppi, "a");
  add(kFirst);
  files_->end_observation();
  const Bytes file = read("a");
  const std::string text{reinterpret_cast<const char*>(file.data()), 40 * 80};
  const auto card = [&](const std::string& keyword) {
    const size_t at = text.find(keyword + std::string(8 - keyword.size(), ' ') + "= ");
    return at == std::string::npos || at % 80 != 0 ? "none" : text.substr(at + 10, 70);
  };
  const auto filled = [](const std::string& value) {
    return value + std::string(70 - value.size(), ' ');
  };
  EXPECT_EQ(card("OBSERVER"), filled("'O''Brien'"));
  EXPECT_EQ(card("SRC_NAME"), filled("'0329    '"));
  EXPECT_EQ(card("OBSFREQ"), filled(std::string(15, ' ') + "150.5"));
  EXPECT_EQ(card("RA_STR"), filled("'0x10    '"));
  EXPECT_EQ(card("LONG1"), "'" + std::string(68, 'y') + "'");
  EXPECT_EQ(card("LONG2"), filled("'" + std::string(67, 'z') + "'"));  // no half of two quotes
}

TEST_F(Files, VdifIsAFrameForEachPacketAndSaysWhichAreMissing) {
  for (const uint32_t bits : {16U, 8U, 4U}) {
    shape_.bits = bits;
    const std::string name = "v" + std::to_string(bits);
    open(Layout::vdif, name);
    // Across a second's boundary: 12207.03125 frames are in one.
    const uint64_t first = kFirst + 12'200;
    add(first, {0, 2});
    add(first + 16, {7});
    files_->end_observation();
    const Bytes file = read(name);
    const size_t bytes = bits / 2;            // of a sample of both polarisations
    const size_t size = 32 + 16 * 4 * bytes;  // 3 beamlets become 4
    ASSERT_EQ(file.size(), 22 * size);
    for (uint64_t i = 0; i < 22; ++i) {
      const uint64_t number = first + 1 + i;
      const bool missing = i == 1 || (i >= 7 && i < 15);
      const std::byte* frame = &file[i * size];
      const auto word = [&](size_t k) {
        uint32_t value = 0;
        std::memcpy(&value, frame + 4 * k, 4);
        return value;
      };
      // 2020-07-01 is epoch 41, and 1593561600.
      const auto time = static_cast<int64_t>(number) * 81'920;
      const int64_t second = time / 1'000'000'000;
      EXPECT_EQ(word(0),
                (missing ? 0x80000000U : 0U) | static_cast<uint32_t>(second - 1'593'561'600));
      EXPECT_EQ(word(1), 41U << 24 | static_cast<uint32_t>(time % 1'000'000'000 / 81'920));
      EXPECT_EQ(word(2), 1U << 29 | 3U << 24 | static_cast<uint32_t>(size / 8));
      EXPECT_EQ(word(3), 1U << 31 | (bits - 1) << 26 | 1U);
      for (size_t k = 4; k < 8; ++k) EXPECT_EQ(word(k), 0U);
      for (size_t slice = 0; slice < 16; ++slice) {
        for (size_t beamlet = 0; beamlet < 4; ++beamlet) {
          for (size_t k = 0; k < bytes; ++k) {
            const std::byte high = bits == 4                 ? std::byte{0x88}
                                   : bits == 8 || k % 2 == 1 ? std::byte{0x80}
                                                             : std::byte{0};
            std::byte expected =
                beamlet == 3 ? high : sample(number, (beamlet * 16 + slice) * bytes + k) ^ high;
            if (missing) expected = std::byte{0};
            ASSERT_EQ(frame[32 + (slice * 4 + beamlet) * bytes + k], expected)
                << i << " " << slice << " " << beamlet;
          }
        }
      }
    }
    std::filesystem::remove(folder_ + "/" + name);
  }
}

// Of frames that are VDIF already, with VTP's number before them or without.
TEST_F(Files, VdifOfVdifIsTheFramesThatCameAndMarksThoseThatDidNot) {
  for (const bool vtp : {false, true}) {
    shape_ = {
        .format = Format::vdif, .bits = 2, .payload = 64, .frames_per_second = 24'000, .vtp = vtp};
    const auto frame = [&](uint64_t number) {
      Bytes p(shape_.packet_bytes());
      for (size_t i = 0; i < p.size(); ++i) p[i] = static_cast<std::byte>(number * 31 + i * 7);
      write_header(shape_, 5, number, p);
      const size_t begin = vtp ? 8 : 0;
      p[begin + 11] |= std::byte{3};                   // channels
      p[begin + 17] = static_cast<std::byte>(number);  // extended data of each frame
      return p;
    };
    const std::string name = vtp ? "vtp" : "plain";
    open(Layout::vdif, name);
    // The last 4 of a second, and the first ones of the next; without the second and the sixth.
    const uint64_t first = uint64_t{650'000'000} * 24'000 - 4;
    weft_stream_block block{};
    block.number = first / 4;
    block.packets = 8;
    ASSERT_EQ(first % 8, 4U);
    block.number = first / 8;
    block.packet_bytes = block.slot_bytes = shape_.packet_bytes();
    block.valid[0] = 0b1101'0000;
    Bytes data(size_t{16} * block.slot_bytes);
    for (uint32_t i = 0; i < 16; ++i) {
      const Bytes p = frame(first - 4 + i);
      std::memcpy(&data[size_t{i} * block.slot_bytes], p.data(), p.size());
    }
    BlockView view{shape_, block, data.data()};
    files_->add(view);
    weft_stream_block next = block;
    ++next.number;
    next.valid[0] = 0b0000'1101;
    BlockView next_view{shape_, next, data.data() + size_t{8} * block.slot_bytes};
    files_->add(next_view);
    files_->end_observation();
    const Bytes file = read(name);
    const size_t size = 32 + 64;
    ASSERT_EQ(file.size(), 8 * size);
    for (uint64_t i = 0; i < 8; ++i) {
      const bool missing = i == 1 || i == 5;
      Bytes expected = frame(first + i - (missing ? 1 : 0));
      if (missing) advance(shape_, 1, expected);
      expected.erase(expected.begin(), expected.begin() + (vtp ? 8 : 0));
      if (missing) {
        std::fill(expected.begin() + 32, expected.end(), std::byte{0});
        expected[3] |= std::byte{0x80};
      }
      EXPECT_EQ(Bytes(file.begin() + static_cast<ptrdiff_t>(i * size),
                      file.begin() + static_cast<ptrdiff_t>((i + 1) * size)),
                expected)
          << i;
      // Word 1: the frame within its second.
      EXPECT_EQ(static_cast<unsigned>(file[i * size + 4]) |
                    static_cast<unsigned>(file[i * size + 5]) << 8,
                i < 4 ? 23'996 + i : i - 4);
    }
  }
}

TEST_F(Files, LayoutsThatNeedToKnowTheSamplesAreForRspAlone) {
  const Shape raw{.format = Format::raw, .payload = 100};
  EXPECT_THROW(make_file_layout(Layout::guppi, raw, {}), kit::Failure);
  EXPECT_THROW(make_file_layout(Layout::vdif, raw, {}), kit::Failure);
  EXPECT_NE(make_file_layout(Layout::packets, raw, {}), nullptr);
  EXPECT_THROW(make_file_layout(Layout::guppi, {.format = Format::vdif}, {}), kit::Failure);
}

// Also where the sender ends long before the receiver does.
TEST_F(Files, TheLastFileOfAnObservationIsOnTheDiskBeforeItHasItsName) {
  const std::string last = folder_ + "/0001.dada.part";
  open(Layout::dada, "{number}.dada", {.bytes = 4096 + kBlock * shape_.payload_bytes()});
  g_disk = {};
  add(kFirst);
  add(kFirst + kBlock);
  EXPECT_EQ(told_.size(), 1U) << "rotated";
  EXPECT_TRUE(g_disk.synced.empty()) << "data goes on meanwhile";
  files_->end_observation();
  EXPECT_EQ(told_.size(), 2U);
  EXPECT_EQ(g_disk.synced, (std::vector<std::string>{last, folder_}));
}

// A quota or a server of files may say so as late as this.
TEST_F(Files, WhatTheDiskDidNotTakeIsNoWholeFile) {
  open(Layout::packets, "a");
  g_disk = {.error = EDQUOT};
  add(kFirst);
  EXPECT_THROW(files_->end_observation(), kit::Failure);
  g_disk = {};
  EXPECT_TRUE(told_.empty());
  EXPECT_EQ(names(), (std::set<std::string>{"a.part"}));
}

}  // namespace
}  // namespace weft::stream
