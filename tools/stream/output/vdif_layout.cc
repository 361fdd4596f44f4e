// VDIF (release 1.1.1): a frame for each packet. Of RSP's packets beamlets are channels, two each,
// for X and Y; VDIF has a power of two of them, and those behind the last beamlet are nought.
// Packets that are missing are frames that say they are invalid.
#include <algorithm>
#include <bit>
#include <cstring>

#include "stream/format/vdif_header.h"
#include "stream/output/file_layout.h"

namespace weft::stream {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr uint64_t kOurVersion = 1;

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
  return vdif::kHeader + size_t{shape.slices} * std::bit_ceil(shape.beamlets) * sample_bytes(shape);
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
      if (block.has(i)) put_samples(facts.shape, block.payload(i).data(), frame + vdif::kHeader);
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
    // The same for all of an observation.
    const int64_t began = std::max(facts.observation_ns / kSecond - vdif::kBegins, int64_t{0});
    const uint64_t epoch = vdif::epoch_at(static_cast<uint64_t>(began));
    std::byte* const frame = out.data() + at;
    vdif::kInvalid.put(frame, valid ? 0 : 1);
    vdif::kSecond.put(frame, static_cast<uint64_t>(second - vdif::kBegins) - vdif::kEpochs[epoch]);
    vdif::kEpoch.put(frame, epoch);
    // Of those that begin in this second.
    vdif::kFrame.put(frame,
                     static_cast<uint64_t>(facts.period.packet_after(time - second * kSecond)));
    vdif::kVersion.put(frame, kOurVersion);
    vdif::kChannels.put(frame, static_cast<uint64_t>(std::countr_zero(2 * beamlets)));
    vdif::kLength.put(frame, size / vdif::kLengthUnit);
    vdif::kComplex.put(frame, 1);
    vdif::kBits.put(frame, shape.bits - 1);
    vdif::kThread.put(frame, facts.stream);
    vdif::kStation.put(frame, facts.origin.station);
    return frame;
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
      // None has come yet.
      if (last_.empty()) {
        last_.resize(facts.shape.header_bytes());
        write_header(facts.shape, facts.stream, number, last_);
        last_number_ = number;
      }
      Bytes header = last_;
      if (number > last_number_) advance(facts.shape, number - last_number_, header);
      vdif::kInvalid.put(header.data() + before, 1);
      out.insert(out.end(), header.begin() + static_cast<ptrdiff_t>(before), header.end());
      out.resize(out.size() + facts.shape.payload_bytes());
    }
  }

 private:
  static size_t before_frame(const Shape& shape) { return shape.vtp ? vdif::kSequence.end() : 0; }

  Bytes last_;  // header
  uint64_t last_number_ = 0;
};

}  // namespace

std::unique_ptr<FileLayout> make_vdif_layout(const Shape& shape) {
  if (shape.format == Format::vdif) return std::make_unique<FramesLayout>();
  return std::make_unique<VdifLayout>();
}

}  // namespace weft::stream
