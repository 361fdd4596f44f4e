// Packets of a capture, with the numbers that they have.
#include <algorithm>
#include <map>
#include <vector>

#include "kit/failure.h"
#include "stream/pcap_file.h"
#include "stream/recording/lane_of_packets.h"
#include "stream/sample_time.h"
#include "stream/source.h"
#include "stream/utc.h"

namespace weft::stream {
namespace {

struct Captured {
  ConstPacket packet;
  int64_t time_ns = 0;  // when it was captured
};
using Lane = LaneOfPackets<Captured>;
using Queue = std::deque<Lane::Numbered>;

class PcapSource final : public Source {
 public:
  PcapSource(const SourceOptions& options, const Shape& shape, uint32_t streams)
      : file_(options.pcap),
        shape_(learned(shape, first_packets(open(options.pcap), shape))),
        loop_(options.loop),
        start_(options.start),
        queues_(streams),
        turns_(streams),
        ahead_(streams),
        passes_(streams) {
    read_all(open(options.pcap));
    for (const auto& queue : queues_) {
      if (queue.empty() && last_before_start_) {
        throw kit::Failure{options.pcap + " ends before --start: its last packet is of " +
                           utc_text(*last_before_start_, 6)};
      }
      if (queue.empty()) {
        throw kit::Failure{
            options.pcap + " has packets of this shape for fewer streams" +
            (why_unusable_.empty() ? "" : "; the first that is none: " + why_unusable_)};
      }
      const auto [least, most] =
          std::minmax_element(queue.begin(), queue.end(),
                              [](const auto& a, const auto& b) { return a.number < b.number; });
      const uint64_t span = most->number - least->number + 1;
      note_times(queue);
      // One whose count begins anew within the file does so again in the next pass.
      if (span > Continuity::kLongestOutage) continue;
      pass_ = std::max(pass_,
                       (span + shape.heap_packets - 1) / shape.heap_packets * shape.heap_packets);
    }
  }

  Shape shape() const override { return shape_; }
  bool has_own_numbers() const override { return true; }
  bool has_own_times() const override { return true; }
  std::optional<int64_t> own_time_ns(uint32_t stream) override {
    if (!own_number(stream)) return std::nullopt;
    const Captured& next = queues_[stream][turns_[stream]].packet;
    const auto time = sample_time_ns(shape_, next.packet, ahead_[stream]);
    return time ? *time : next.time_ns + passes_[stream] * pass_ns_;
  }
  std::optional<uint64_t> own_number(uint32_t stream) override {
    const auto& queue = queues_[stream];
    if (turns_[stream] == queue.size()) {
      if (!loop_) return std::nullopt;
      turns_[stream] = 0;
      ahead_[stream] += pass_;
      ++passes_[stream];
    }
    return queue[turns_[stream]].number + ahead_[stream];
  }
  std::optional<uint64_t> lowest_own_number(uint32_t stream) override {
    if (!own_number(stream)) return std::nullopt;
    const auto& queue = queues_[stream];
    return ahead_[stream] +
           lowest_number(turns_[stream], queue.size(), [&](size_t i) { return queue[i].number; });
  }
  bool fill(uint32_t stream, uint64_t, Packet packet) override {
    const ConstPacket from = queues_[stream][turns_[stream]++].packet.packet;
    copy_packet(shape_, from, packet.data());
    if (ahead_[stream] != 0) advance(shape_, ahead_[stream], packet);
    return true;
  }
  uint64_t unusable() const override { return unusable_; }

 private:
  PcapFile open(const std::string& path) const {
    auto capture = PcapFile::open(file_.bytes());
    if (!capture.ok()) throw kit::Failure{path + capture.error()};
    return *capture;
  }
  // Of one port, such as have the size.
  static std::vector<ConstPacket> first_packets(PcapFile capture, const Shape& shape) {
    std::vector<ConstPacket> first;
    std::optional<uint16_t> port;
    while (first.size() < kPacketsToLearn) {
      const auto record = capture.next();
      if (!record) break;
      const auto& datagram = record->datagram;
      if (!datagram || datagram->payload.size() != shape.packet_bytes()) continue;
      if (!port) port = datagram->port;
      if (datagram->port == *port) first.push_back(datagram->payload);
    }
    return first;
  }
  void read_all(PcapFile capture) {
    // By what packets say, or else by destination port, as a receiver's sockets.
    std::map<uint64_t, Lane> lanes;
    while (const auto record = capture.next()) {
      const auto& datagram = record->datagram;
      const Header header = datagram ? read_header(shape_, datagram->payload)
                                     : Header{.verdict = Verdict::wrong_kind};
      if (!header.has_number()) {
        if (datagram && why_unusable_.empty()) why_unusable_ = explain(shape_, datagram->payload);
        ++unusable_;
        continue;
      }
      const Captured captured{.packet = datagram->payload, .time_ns = record->time_ns};
      if (start_ && time_of(captured) < *start_) {
        last_before_start_ = time_of(captured);
        continue;
      }
      lanes[header.stream.value_or(datagram->port)].add(header, captured);
    }
    size_t stream = 0;
    for (auto& [name, lane] : lanes) {
      lane.finish();
      unusable_ += lane.unusable();
      if (lane.packets().empty()) continue;
      if (stream < queues_.size()) {
        queues_[stream++] = std::move(lane.packets());
      } else {
        unusable_ += lane.packets().size();
      }
    }
  }

  // By its own header, or else by the clock of who captured it.
  int64_t time_of(const Captured& captured) const {
    return sample_time_ns(shape_, captured.packet).value_or(captured.time_ns);
  }
  // Where packets tell no time, a pass lasts as long as from the first one to the last one, and
  // once more from one to the next.
  void note_times(const Queue& queue) {
    const auto [first, last] = std::minmax_element(
        queue.begin(), queue.end(),
        [&](const auto& a, const auto& b) { return time_of(a.packet) < time_of(b.packet); });
    const int64_t span = time_of(last->packet) - time_of(first->packet);
    const auto gaps = static_cast<int64_t>(std::max<size_t>(queue.size() - 1, 1));
    pass_ns_ = std::max(pass_ns_, span + span / gaps);
  }

  const MappedFile file_;
  const Shape shape_;
  const bool loop_;
  const std::optional<int64_t> start_;
  std::vector<Queue> queues_;
  std::vector<size_t> turns_;
  // Numbers go on when a file begins again: by those of the longest stream, so that all stay
  // together.
  uint64_t pass_ = 0;
  std::vector<uint64_t> ahead_;
  std::vector<int64_t> passes_;
  int64_t pass_ns_ = 0;
  std::optional<int64_t> last_before_start_;
  uint64_t unusable_ = 0;
  std::string why_unusable_;  // of the first datagram that is
};

}  // namespace

std::unique_ptr<Source> make_pcap_source(const SourceOptions& options, const Shape& shape,
                                         uint32_t streams) {
  return std::make_unique<PcapSource>(options, shape, streams);
}

}  // namespace weft::stream
