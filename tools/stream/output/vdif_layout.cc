// VDIF (release 1.1.1): a frame for each packet. Of RSP's packets beamlets are channels, two each,
// for X and Y; VDIF has a power of two of them, and those behind the last beamlet are nought.
// Packets that are missing are frames that say they are invalid.
#include <array>
#include <bit>
#include <chrono>
#include <cstring>

#include "stream/output/file_layout.h"
#include "stream/utc.h"

namespace weft::stream {
namespace {

constexpr size_t kHeader = 32;
constexpr int64_t kSecond = 1'000'000'000;

// Half years since 2000, and when one began: seconds since 1970.
struct Epoch {
  uint32_t number;
  int64_t begin;
};
Epoch epoch_of(int64_t second) {
  using namespace std::chrono;
  const year_month_day day{floor<days>(sys_seconds{seconds{second}})};
  const bool late = day.month() >= July;
  const sys_days begin{day.year() / (late ? July : January) / 1};
  const int years = static_cast<int>(day.year()) - 2000;
  return {.number = static_cast<uint32_t>(2 * years + (late ? 1 : 0)) % 64,
          .begin = sys_seconds{begin}.time_since_epoch().count()};
}

// VDIF's samples are offset binary: nought is the highest bit alone. Of 4 bits, two are in a byte.
uint64_t nought_of(const Shape& shape) {
  switch (shape.bits) {
    case 16:
      return 0x8000'8000'8000'8000;
    case 8:
      return 0x8080'8080;
    default:
      return 0x8888;
  }
}

// Beamlet by beamlet becomes slice by slice, with channels of nought behind the last one.
template <size_t kSample>
void put(const Shape& shape, const std::byte* from, std::byte* to) {
  const uint64_t nought = nought_of(shape);
  const uint32_t beamlets = std::bit_ceil(shape.beamlets);
  for (uint32_t slice = 0; slice < shape.slices; ++slice) {
    for (uint32_t beamlet = 0; beamlet < beamlets; ++beamlet, to += kSample) {
      uint64_t sample = 0;
      if (beamlet < shape.beamlets) {
        std::memcpy(&sample, from + (size_t{beamlet} * shape.slices + slice) * kSample, kSample);
      }
      sample ^= nought;
      std::memcpy(to, &sample, kSample);
    }
  }
}

size_t frame_bytes(const Shape& shape) {
  return kHeader + size_t{shape.slices} * std::bit_ceil(shape.beamlets) * sample_bytes(shape);
}

class VdifLayout final : public FileLayout {
 public:
  uint64_t most_bytes(const Shape& shape, uint64_t packets) const override {
    return packets * frame_bytes(shape);
  }
  void add(const FileFacts& facts, const BlockView& block, uint32_t from, uint32_t to,
           Bytes& out) override {
    for (uint32_t i = from; i < to; ++i) {
      std::byte* frame = add_frame(facts, block.first() + i, block.has(i), out);
      if (block.has(i)) put_samples(facts.shape, block.payload(i).data(), frame + kHeader);
    }
  }
  void add_missing(const FileFacts& facts, uint64_t number, uint64_t packets, Bytes& out) override {
    for (uint64_t i = 0; i < packets; ++i) add_frame(facts, number + i, false, out);
  }

 private:
  // With data of zeroes.
  static std::byte* add_frame(const FileFacts& facts, uint64_t number, bool valid, Bytes& out) {
    const Shape& shape = facts.shape;
    const uint32_t beamlets = std::bit_ceil(shape.beamlets);
    const size_t size = frame_bytes(shape);
    const size_t at = out.size();
    out.resize(at + size);
    const auto passed = static_cast<int64_t>(number - facts.observation);
    const int64_t time = facts.observation_ns + facts.period.times(passed);
    const int64_t second = time / kSecond;
    const Epoch epoch = epoch_of(facts.observation_ns / kSecond);
    const auto since = static_cast<uint32_t>(second - epoch.begin);
    // Of those that begin in this second.
    const auto frame = static_cast<uint32_t>(facts.period.packet_after(time - second * kSecond));
    const auto channels = static_cast<uint32_t>(std::countr_zero(2 * beamlets));
    const std::array<uint32_t, 8> words{
        (valid ? 0 : 1U << 31) | since, epoch.number << 24 | frame,
        1U << 29 | channels << 24 | static_cast<uint32_t>(size / 8),
        1U << 31 | (shape.bits - 1) << 26 | (facts.stream % 1024) << 16 | facts.origin.station};
    std::byte* to = out.data() + at;
    for (const uint32_t word : words) {
      for (unsigned i = 0; i < 4; ++i) *to++ = static_cast<std::byte>(word >> (8 * i));
    }
    return out.data() + at;
  }
  static void put_samples(const Shape& shape, const std::byte* from, std::byte* to) {
    by_sample_bytes(shape, [&](auto size) { put<size>(shape, from, to); });
  }
};

// Frames that are VDIF already: as they came, without what VTP has before them. One that is missing
// has the header of the last one that came, with its own time.
class FramesLayout final : public FileLayout {
 public:
  void add(const FileFacts& facts, const BlockView& block, uint32_t from, uint32_t to,
           Bytes& out) override {
    for (uint32_t i = from; i < to; ++i) {
      const uint64_t number = block.first() + i;
      if (!block.has(i)) {
        add_missing(facts, number, 1, out);
        continue;
      }
      const ConstPacket packet = block.packet(i);
      const ConstPacket frame = packet.subspan(before_frame(facts.shape));
      out.insert(out.end(), frame.begin(), frame.end());
      last_.assign(packet.begin(), packet.begin() + facts.shape.header_bytes());
      last_number_ = number;
    }
  }
  void add_missing(const FileFacts& facts, uint64_t number, uint64_t packets, Bytes& out) override {
    const size_t before = before_frame(facts.shape);
    for (uint64_t i = 0; i < packets; ++i, ++number) {
      // None came, where the file's first block turned out to be damaged.
      if (last_.empty()) {
        last_.resize(facts.shape.header_bytes());
        write_header(facts.shape, facts.stream, number, last_);
        last_number_ = number;
      }
      Bytes header = last_;
      if (number > last_number_) advance(facts.shape, number - last_number_, header);
      header[before + 3] |= std::byte{0x80};  // the highest bit of the first word: invalid
      out.insert(out.end(), header.begin() + static_cast<ptrdiff_t>(before), header.end());
      out.resize(out.size() + facts.shape.payload_bytes());
    }
  }

 private:
  static size_t before_frame(const Shape& shape) { return shape.vtp ? 8 : 0; }

  Bytes last_;  // header
  uint64_t last_number_ = 0;
};

}  // namespace

std::unique_ptr<FileLayout> make_vdif_layout(const Shape& shape) {
  if (shape.format == Format::vdif) return std::make_unique<FramesLayout>();
  return std::make_unique<VdifLayout>();
}

}  // namespace weft::stream
