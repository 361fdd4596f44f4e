// PSRDADA: a header of 4096 bytes in ASCII, a keyword and a value each line, and then the samples
// without a gap, zeroes where packets are missing. RSP's samples are in the order of time, channel,
// polarisation; of other formats, payloads are as they came.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "stream/format/station.h"
#include "stream/output/file_layout.h"
#include "stream/utc.h"

namespace weft::stream {
namespace {

constexpr size_t kHeaderBytes = 4096;  // or a power of two above, where the text is longer

// As PSRDADA writes it: "2026-11-25-09:30:00".
std::string dada_time(int64_t ns) {
  std::string text = utc_text(ns, 0);
  text[10] = '-';
  return text;
}

// The day and its fraction, to 15 digits.
std::string mjd_text(int64_t ns) {
  constexpr int64_t kSecond = 1'000'000'000;
  const DayTime t = day_time(ns);
  const int64_t passed = t.second * kSecond + t.ns;  // x 10^15 / (86400 x 10^9)
  return fmt::format("{}.{:015}", t.mjd, passed * 10'000 / 864);
}

std::string header_text(const Keywords& keywords) {
  std::string text;
  for (const Keyword& k : keywords.all()) text += fmt::format("{:<16} {}\n", k.name, k.value);
  return text + "# end of header\n";  // some readers look for it
}

// Beamlet by beamlet becomes slice by slice.
template <size_t kSample>
void turn(const Shape& shape, const std::byte* from, std::byte* to) {
  for (uint32_t beamlet = 0; beamlet < shape.beamlets; ++beamlet) {
    for (uint32_t slice = 0; slice < shape.slices; ++slice) {
      std::memcpy(to + (size_t{slice} * shape.beamlets + beamlet) * kSample, from, kSample);
      from += kSample;
    }
  }
}

class DadaLayout final : public FileLayout {
 public:
  explicit DadaLayout(const HeaderFile& header) : header_(header) {}

  void begin(const FileFacts& facts, Bytes& out) override {
    const uint64_t most = facts.most_bytes;
    write_header(facts, most, false, out);
  }
  void end(const FileFacts& facts, uint64_t data, Bytes& out) override {
    write_header(facts, data, true, out);
  }
  void add(const FileFacts& facts, const BlockView& block, uint32_t from, uint32_t to,
           Bytes& out) override {
    const size_t size = facts.shape.payload_bytes();
    size_t at = out.size();
    out.resize(at + size * (to - from));
    for (uint32_t i = from; i < to; ++i, at += size) {
      if (block.has(i)) put(facts.shape, block.payload(i), out.data() + at);
    }
  }
  void add_missing(const FileFacts& facts, uint64_t, uint64_t packets, Bytes& out) override {
    out.resize(out.size() + packets * facts.shape.payload_bytes());
  }

 private:
  static void put(const Shape& shape, ConstPacket payload, std::byte* to) {
    if (shape.format != Format::rsp) {
      std::copy(payload.begin(), payload.end(), to);
      return;
    }
    by_sample_bytes(shape, [&](auto size) { turn<size>(shape, payload.data(), to); });
  }

  // What weft knows of RSP's samples.
  static void describe_samples(const FileFacts& facts, Keywords& k) {
    const Shape& shape = facts.shape;
    const uint32_t slice = shape.beamlets * sample_bytes(shape);
    const double slice_us = static_cast<double>(slice_ns(facts.origin.clock)) / 1e3;
    k.set("NBIT", std::to_string(shape.bits));
    k.set("NDIM", "2");
    k.set("NPOL", "2");
    k.set("NCHAN", std::to_string(shape.beamlets));
    k.set("TSAMP", fmt::format("{}", slice_us));
    k.set("RESOLUTION", std::to_string(slice));
    k.set("BYTES_PER_SECOND", fmt::format("{:.0f}", slice * 1e6 / slice_us));
    k.set("ORDER", "TFP");
    k.set("STATION_ID", std::to_string(facts.origin.station));
    k.set("CLOCK", std::to_string(facts.origin.clock));
    k.propose("BW", fmt::format("{}", shape.beamlets * channel_mhz(facts.origin.clock)));
    k.propose("TELESCOPE", "LOFAR");
    k.propose("INSTRUMENT", "LOFAR_RSP");
  }
  // `data`: bytes behind the header, that it has or, while it grows, may have. The header's size is
  // that of the file's first one.
  void write_header(const FileFacts& facts, uint64_t data, bool whole, Bytes& out) {
    const Shape& shape = facts.shape;
    Keywords k;
    k.set("HEADER", "DADA");
    k.set("HDR_VERSION", "1.0");
    k.set("HDR_SIZE", std::to_string(kHeaderBytes));
    k.set("DADA_VERSION", "1.0");
    k.add(header_);
    k.set("HEADER", "DADA");
    k.set("HDR_VERSION", "1.0");
    k.set("FILE_NAME", facts.name);
    k.set("FILE_NUMBER", std::to_string(facts.file));
    k.set("FILE_SIZE", std::to_string(data));
    k.set("UTC_START", dada_time(facts.observation_ns));
    k.set("PICOSECONDS", std::to_string(day_time(facts.observation_ns).ns * 1000));
    k.set("MJD_START", mjd_text(facts.observation_ns));
    k.set("OBS_OFFSET", std::to_string((facts.first - facts.observation) * shape.payload_bytes()));
    k.set("OBS_OVERLAP", "0");
    if (shape.format == Format::rsp) describe_samples(facts, k);
    k.propose("TELESCOPE", "unknown");
    k.propose("INSTRUMENT", "unknown");
    k.propose("SOURCE", "unknown");
    k.set("PACKET_FORMAT", name_of(shape.format));
    k.set("PACKET_BYTES", std::to_string(shape.payload_bytes()));
    k.set("FIRST_PACKET", std::to_string(facts.first));
    k.set("STREAM", std::to_string(facts.stream));
    // Room for what is known at the end.
    k.set("PACKETS_MISSING", whole ? std::to_string(facts.missing) : "unknown");
    std::string text = header_text(k);
    if (!whole) {
      size_ = kHeaderBytes;
      while (size_ < text.size() + kSpare) size_ *= 2;
    }
    k.set("HDR_SIZE", std::to_string(size_));
    text = header_text(k);
    const size_t at = out.size();
    out.resize(at + size_);
    std::memcpy(out.data() + at, text.data(), std::min(text.size(), size_));
  }

  static constexpr size_t kSpare = 64;  // numbers that are longer at the end
  const HeaderFile header_;
  size_t size_ = kHeaderBytes;
};

}  // namespace

std::unique_ptr<FileLayout> make_dada_layout(const HeaderFile& header) {
  return std::make_unique<DadaLayout>(header);
}

}  // namespace weft::stream
