// Packets of a capture, with the numbers that they have.
#include <algorithm>
#include <map>
#include <vector>

#include "bench/failure.h"
#include "stream/pcap_file.h"
#include "stream/source.h"

namespace weft::stream {
namespace {

class PcapSource final : public Source {
 public:
  PcapSource(const SourceOptions& options, const Shape& shape, uint32_t streams)
      : shape_(shape),
        loop_(options.loop),
        file_(options.pcap),
        queues_(streams),
        turns_(streams),
        ahead_(streams) {
    auto capture = PcapFile::open(file_.bytes());
    if (!capture.ok()) throw bench::Failure{options.pcap + capture.error()};
    read_all(*capture);
    for (const auto& queue : queues_) {
      if (queue.empty()) {
        throw bench::Failure{options.pcap + " has packets of this shape for fewer streams"};
      }
      const auto [least, most] =
          std::minmax_element(queue.begin(), queue.end(), [&](ConstPacket a, ConstPacket b) {
            return *stream::number_of(shape_, a) < *stream::number_of(shape_, b);
          });
      const uint64_t span = *number_of(shape_, *most) - *number_of(shape_, *least) + 1;
      pass_ = std::max(pass_,
                       (span + shape.heap_packets - 1) / shape.heap_packets * shape.heap_packets);
    }
  }

  bool has_own_numbers() const override { return true; }
  std::optional<uint64_t> own_number(uint32_t stream) override {
    const auto& queue = queues_[stream];
    if (turns_[stream] == queue.size()) {
      if (!loop_) return std::nullopt;
      turns_[stream] = 0;
      ahead_[stream] += pass_;
    }
    return *number_of(shape_, queue[turns_[stream]]) + ahead_[stream];
  }
  bool fill(uint32_t stream, uint64_t, Packet packet) override {
    const ConstPacket from = queues_[stream][turns_[stream]++];
    std::copy(from.begin(), from.end(), packet.begin());
    if (ahead_[stream] != 0) advance(shape_, ahead_[stream], packet);
    return true;
  }
  uint64_t unusable() const override { return unusable_; }

 private:
  void read_all(PcapFile& capture) {
    std::map<uint16_t, size_t> streams;  // by destination port
    while (const auto record = capture.next()) {
      const auto& datagram = record->datagram;
      if (!datagram || !stream::number_of(shape_, datagram->payload)) {
        ++unusable_;
        continue;
      }
      const size_t stream = streams.try_emplace(datagram->port, streams.size()).first->second;
      if (stream < queues_.size()) {
        queues_[stream].push_back(datagram->payload);
      } else {
        ++unusable_;
      }
    }
  }

  const Shape shape_;
  const bool loop_;
  const MappedFile file_;
  std::vector<std::vector<ConstPacket>> queues_;
  std::vector<size_t> turns_;
  // Numbers go on when a file begins again: by those of the longest stream, so that all stay
  // together.
  uint64_t pass_ = 0;
  std::vector<uint64_t> ahead_;
  uint64_t unusable_ = 0;
};

}  // namespace

std::unique_ptr<Source> make_pcap_source(const SourceOptions& options, const Shape& shape,
                                         uint32_t streams) {
  return std::make_unique<PcapSource>(options, shape, streams);
}

}  // namespace weft::stream
