// Packets of a capture, with the numbers that they have.
#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "bench/failure.h"
#include "stream/continuity.h"
#include "stream/pcap_file.h"
#include "stream/source.h"

namespace weft::stream {
namespace {

// Numbers of a receiver's ring, as `weft stream recv` has it where nobody asked for another one.
constexpr uint64_t kUsualRing = 16 * 256;

// The packets of one destination port that belong to its stream: without those whose numbers come
// from nowhere, and those of other senders.
class Lane {
 public:
  void add(const Header& header, ConstPacket packet) {
    const auto next = next_ ? std::optional{*next_} : std::nullopt;
    const Continuity::Judgement judgement = continuity_.judge(header, next);
    switch (judgement.answer) {
      case Continuity::Answer::foreign:
        ++unusable_;
        break;
      case Continuity::Answer::goes_on:
        take(header.number, packet);
        break;
      case Continuity::Answer::wait:
        hold(judgement.held, packet);
        break;
      case Continuity::Answer::believed:
        hold(judgement.held, packet);
        believe(judgement);
        break;
    }
    unusable_ += continuity_.take_given_up();
  }
  void finish() {
    // Nobody forges packets of a file: what most agree about at its end is as good.
    const auto last = next_ ? std::optional{next_.value() + Continuity::kLongestOutage} : next_;
    if (const auto judgement = continuity_.settle(next_, last)) believe(*judgement);
    unusable_ += continuity_.take_given_up();
  }
  std::vector<ConstPacket>& packets() { return packets_; }
  uint64_t unusable() const { return unusable_; }

 private:
  void hold(HeldPacket name, ConstPacket packet) { held_[name] = packet; }
  void believe(const Continuity::Judgement& judgement) {
    if (judgement.anew) next_.reset();
    for (const Continuity::Taken& t : continuity_.taken()) take(t.number, held_[t.held]);
  }
  void take(uint64_t number, ConstPacket packet) {
    packets_.push_back(packet);
    next_ = std::max(next_.value_or(0), number + 1);
  }

  Continuity continuity_{kUsualRing};
  std::array<ConstPacket, Continuity::kMostHeld> held_{};
  std::optional<uint64_t> next_;
  std::vector<ConstPacket> packets_;
  uint64_t unusable_ = 0;
};

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
        throw bench::Failure{
            options.pcap + " has packets of this shape for fewer streams" +
            (why_unusable_.empty() ? "" : "; the first that is none: " + why_unusable_)};
      }
      const auto [least, most] =
          std::minmax_element(queue.begin(), queue.end(), [&](ConstPacket a, ConstPacket b) {
            return *stream::number_of(shape_, a) < *stream::number_of(shape_, b);
          });
      const uint64_t span = *number_of(shape_, *most) - *number_of(shape_, *least) + 1;
      // One whose count begins anew within the file does so again in the next pass.
      if (span > Continuity::kLongestOutage) continue;
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
    std::map<uint16_t, Lane> lanes;  // by destination port, as a receiver's sockets
    while (const auto record = capture.next()) {
      const auto& datagram = record->datagram;
      const Header header = datagram ? read_header(shape_, datagram->payload)
                                     : Header{.verdict = Verdict::wrong_kind};
      const bool other_clock = shape_.clock != 0 && header.origin.clock != shape_.clock;
      if (!header.has_number() || other_clock) {
        if (datagram && why_unusable_.empty()) {
          why_unusable_ =
              other_clock ? "another clock (--clock)" : explain(shape_, datagram->payload);
        }
        ++unusable_;
        continue;
      }
      lanes[datagram->port].add(header, datagram->payload);
    }
    size_t stream = 0;
    for (auto& [port, lane] : lanes) {
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
  std::string why_unusable_;  // of the first datagram that is
};

}  // namespace

std::unique_ptr<Source> make_pcap_source(const SourceOptions& options, const Shape& shape,
                                         uint32_t streams) {
  return std::make_unique<PcapSource>(options, shape, streams);
}

}  // namespace weft::stream
