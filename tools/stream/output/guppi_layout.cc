// GUPPI raw: for each block a header of cards, 80 characters each, and the samples of one channel
// after the other. Packets that are missing are zeroes; a block of which nothing came is left out,
// and PKTIDX jumps.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "kit/failure.h"
#include "stream/format/station.h"
#include "stream/output/file_layout.h"
#include "stream/utc.h"

namespace weft::stream {
namespace {

constexpr size_t kCard = 80;
constexpr size_t kDirectIo = 512;
constexpr size_t kMostHeader = 100 * kCard;

constexpr size_t kMostText = kCard - std::string_view{"KEYWORD = ''"}.size();

// As FITS has them: no infinity, nothing of C's.
bool is_number(const std::string& text) {
  if (text.find_first_not_of("+-.0123456789Ee") != std::string::npos) return false;
  char* end = nullptr;
  (void)std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0';
}

// Within a card a quote is two. What is too long is cut, and never between these.
std::string text_of(const std::string& value) {
  std::string text;
  for (const char c : value) {
    const std::string_view next = c == '\'' ? std::string_view{"''"} : std::string_view{&c, 1};
    if (text.size() + next.size() > kMostText) break;
    text += next;
  }
  return text;
}

// A number ends in column 30, a text stands in quotes, as in FITS.
std::string card(const Keyword& k) {
  const std::string text = !k.quoted && is_number(k.value)
                               ? fmt::format("{:<8.8}= {:>20}", k.name, k.value)
                               : fmt::format("{:<8.8}= '{:<8}'", k.name, text_of(k.value));
  return fmt::format("{:<80.80}", text);
}

class GuppiLayout final : public FileLayout {
 public:
  explicit GuppiLayout(const HeaderFile& header) : header_(header) {}

  bool whole_blocks() const override { return true; }
  bool fills() const override { return false; }
  uint64_t most_bytes(const Shape& shape, uint64_t packets) const override {
    return packets * shape.payload_bytes() + kMostHeader;
  }
  void add(const FileFacts& facts, const BlockView& block, uint32_t, uint32_t,
           Bytes& out) override {
    const Shape& shape = facts.shape;
    const size_t data = size_t{block.packets()} * shape.payload_bytes();
    add_header(facts, block, data, out);
    const size_t run = size_t{shape.slices} * sample_bytes(shape);  // of a packet and channel
    const size_t at = out.size();
    out.resize(at + data);
    for (uint32_t i = 0; i < block.packets(); ++i) {
      if (!block.has(i)) continue;
      const std::byte* from = block.payload(i).data();
      std::byte* to = out.data() + at + i * run;
      for (uint32_t channel = 0; channel < shape.beamlets; ++channel) {
        std::memcpy(to, from, run);
        from += run;
        to += run * block.packets();
      }
    }
  }

 private:
  void add_header(const FileFacts& facts, const BlockView& block, size_t data, Bytes& out) {
    const Shape& shape = facts.shape;
    const DayTime start = day_time(facts.observation_ns);
    const double bandwidth = channel_mhz(facts.origin.clock);
    const uint32_t lost = block.packets() - block.here();
    const uint64_t so_far = facts.packets + facts.missing + block.packets();
    Keywords k;
    k.set("BACKEND", "GUPPI");
    k.add(header_);
    k.set("BACKEND", "GUPPI");
    for (const auto& [keyword, value] : {std::pair{"TELESCOP", "LOFAR"},
                                         {"FRONTEND", "LOFAR-RSP"},
                                         {"SRC_NAME", "unknown"},
                                         {"OBSERVER", "unknown"},
                                         {"FD_POLN", "LIN"},
                                         {"OBS_MODE", "RAW"},
                                         {"CAL_MODE", "OFF"},
                                         {"TRK_MODE", "TRACK"},
                                         {"OBSFREQ", "0.0"}}) {
      k.propose(keyword, value);
    }
    k.propose("CHAN_BW", fmt::format("{}", bandwidth));
    k.propose("OBSBW", fmt::format("{}", bandwidth * shape.beamlets));
    k.set("OBSNCHAN", std::to_string(shape.beamlets));
    k.set("NPOL", "4");  // two, each of two parts
    k.set("NBITS", std::to_string(shape.bits));
    k.set("TBIN", fmt::format("{}", static_cast<double>(slice_ns(facts.origin.clock)) / 1e9));
    k.set("OVERLAP", "0");
    k.set("BLOCSIZE", std::to_string(data));
    k.set("STT_IMJD", std::to_string(start.mjd));
    k.set("STT_SMJD", std::to_string(start.second));
    k.set("STT_OFFS", fmt::format("{:.9f}", static_cast<double>(start.ns) * 1e-9));
    k.set("PKTFMT", "1SFA");
    k.set("PKTSIZE", std::to_string(shape.payload_bytes()));
    k.set("PKTIDX", std::to_string(block.first() - facts.observation));
    k.set("PIPERBLK", std::to_string(block.packets()));
    k.set("NPKT", std::to_string(block.here()));
    k.set("NDROP", std::to_string(lost));
    k.set("DROPBLK", fmt::format("{:.6f}", static_cast<double>(lost) / block.packets()));
    k.set("DROPTOT", fmt::format("{:.6f}", static_cast<double>(facts.missing + lost) /
                                               static_cast<double>(so_far)));
    k.set("STREAM", std::to_string(facts.stream));
    k.set("STATION", std::to_string(facts.origin.station));
    // Data lie at multiples of 512 bytes of the file, where blocks have such a size.
    const bool direct = data % kDirectIo == 0;
    k.set("DIRECTIO", direct ? "1" : "0");
    write(k, direct, out);
  }
  // With DIRECTIO cards fill the header up to such a multiple, and not zeroes, so that readers that
  // know nothing of it find the data, too.
  static void write(const Keywords& keywords, bool direct, Bytes& out) {
    std::string text;
    for (const Keyword& k : keywords.all()) text += card(k);
    for (unsigned i = 0; direct && (text.size() + kCard) % kDirectIo != 0; ++i) {
      text += card({.name = fmt::format("SPARE{:02}", i), .value = "0"});
    }
    text += fmt::format("{:<80}", "END");
    const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
    out.insert(out.end(), bytes, bytes + text.size());
  }

  const HeaderFile header_;
};

}  // namespace

std::unique_ptr<FileLayout> make_guppi_layout(const HeaderFile& header) {
  return std::make_unique<GuppiLayout>(header);
}

}  // namespace weft::stream
