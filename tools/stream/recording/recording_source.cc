// Packets of recordings: a file for each stream, packets of one size one after the other, headers
// and all.
#include "stream/recording/recording_source.h"

#include <sys/stat.h>

#include <algorithm>

#include "cli/stop.h"
#include "kit/failure.h"
#include "stream/recording/byte_input.h"
#include "stream/recording/lane_of_packets.h"
#include "stream/recording/read_ahead.h"
#include "stream/sample_time.h"
#include "stream/utc.h"

namespace weft::stream {
namespace {

// Packets that may have overtaken each other, so that a file is in order only about.
constexpr uint64_t kDisorder = 4096;
// Packets without a time that a search steps over.
constexpr uint64_t kUntimed = 64;

using Bytes = std::vector<std::byte>;

bool is_regular(const std::string& path) {
  struct stat st {};
  return ::stat(path.c_str(), &st) == 0 && S_ISREG(st.st_mode);
}

// Byte of a file that is not compressed from which on packets of `start` and later can be found:
// by halves, as if it were in order, and some packets before that.
uint64_t offset_of(const std::string& path, const Shape& shape, int64_t start) {
  struct stat st {};
  if (::stat(path.c_str(), &st) != 0) throw kit::system_failure(path);
  const uint64_t count = static_cast<uint64_t>(st.st_size) / shape.packet_bytes();
  Bytes packet(shape.packet_bytes());
  const auto begins_before = [&](uint64_t i) {
    const uint64_t end = std::min(count, i + kUntimed);
    for (; i < end; ++i) {
      const auto input = open_input(path, i * packet.size());
      if (input->read(packet) < packet.size()) return false;
      if (const auto time = sample_time_ns(shape, packet)) return *time < start;
    }
    return false;
  };
  uint64_t low = 0;
  uint64_t high = count;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (begins_before(middle)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return (low - std::min(low, kDisorder)) * packet.size();
}

using Lane = LaneOfPackets<Bytes>;

// One pass through a file.
class Pass {
 public:
  Pass(const std::string& path, const Shape& shape, std::optional<int64_t> start)
      : shape_(shape), start_(start), bytes_(open_input(path, begin_of(path, shape, start))) {}

  // The next packet of the stream, or nothing. Throws kit::Failure where the file cannot be read.
  Lane::Numbered* front() {
    while (lane_.packets().empty() && !ended_) read_one();
    return lane_.packets().empty() ? nullptr : &lane_.packets().front();
  }
  void pop() { lane_.packets().pop_front(); }
  // Of front() and those behind it, as far as they have been read.
  uint64_t lowest_number() {
    const auto& packets = lane_.packets();
    return stream::lowest_number(0, packets.size(), [&](size_t i) { return packets[i].number; });
  }
  // Of its packets, with nothing left open once there is a front().
  const Shape& shape() const { return shape_; }
  uint64_t unusable() const { return unusable_ + lane_.unusable(); }
  const std::string& why_unusable() const { return why_unusable_; }
  std::optional<int64_t> last_time() const { return last_time_; }

 private:
  static uint64_t begin_of(const std::string& path, const Shape& shape,
                           std::optional<int64_t> start) {
    return start && !is_compressed(path) && is_regular(path) ? offset_of(path, shape, *start) : 0;
  }
  void read_one() {
    Bytes packet(shape_.packet_bytes());
    size_t size = 0;
    try {
      size = bytes_.read(packet);
    } catch (const kit::Failure&) {
      end();
      throw;
    }
    if (size < packet.size()) {
      if (size > 0) refuse("the file ends within a packet");
      end();
      return;
    }
    if (shape_.is_open()) {
      unread_.push_back(std::move(packet));
      if (unread_.size() == kPacketsToLearn) learn();
    } else {
      sort_in(std::move(packet));
    }
  }
  void learn() {
    shape_ = learned(shape_, std::vector<ConstPacket>(unread_.begin(), unread_.end()));
    for (Bytes& packet : std::exchange(unread_, {})) sort_in(std::move(packet));
  }
  void sort_in(Bytes packet) {
    const Header header = read_header(shape_, packet);
    if (!header.has_number()) {
      refuse(explain(shape_, packet));
    } else if (!is_before_start(packet)) {
      lane_.add(header, std::move(packet));
    }
  }
  bool is_before_start(ConstPacket packet) {
    if (!start_) return false;
    last_time_ = sample_time_ns(shape_, packet);
    return *last_time_ < *start_;
  }
  void refuse(const std::string& why) {
    if (why_unusable_.empty()) why_unusable_ = why;
    ++unusable_;
  }
  void end() {
    if (shape_.is_open()) learn();
    lane_.finish();
    ended_ = true;
  }

  Shape shape_;
  const std::optional<int64_t> start_;
  ReadAhead bytes_;
  std::vector<Bytes> unread_;  // packets that wait for learn()
  Lane lane_;
  bool ended_ = false;
  uint64_t unusable_ = 0;
  std::string why_unusable_;
  std::optional<int64_t> last_time_;
};

class RecordingSource final : public Source {
 public:
  RecordingSource(const SourceOptions& options, const Shape& shape)
      : options_(options), shape_(shape), files_(options.recordings.size()) {
    // What the first file's packets show is so in all.
    for (size_t i = 0; i < files_.size(); ++i) {
      const std::string& path = options_.recordings[i];
      if (options_.loop && !is_regular(path)) {
        throw kit::Failure{path + " is no regular file: --loop cannot begin it again"};
      }
      files_[i].pass = open(path);
      if (files_[i].pass->front() == nullptr) throw kit::Failure{path + why_empty(*files_[i].pass)};
      shape_ = files_[i].pass->shape();
    }
    if (options_.loop) measure_passes();
  }

  Shape shape() const override { return shape_; }
  bool has_own_numbers() const override { return true; }
  bool has_own_times() const override { return tells_time(shape_); }
  std::optional<uint64_t> own_number(uint32_t stream) override {
    const Lane::Numbered* found = next(stream);
    if (found == nullptr) return std::nullopt;
    return found->number + files_[stream].ahead;
  }
  std::optional<uint64_t> lowest_own_number(uint32_t stream) override {
    if (next(stream) == nullptr) return std::nullopt;
    return files_[stream].pass->lowest_number() + files_[stream].ahead;
  }
  std::optional<int64_t> own_time_ns(uint32_t stream) override {
    const Lane::Numbered* found = next(stream);
    if (found == nullptr) return std::nullopt;
    return sample_time_ns(shape_, found->packet, files_[stream].ahead);
  }
  bool fill(uint32_t stream, uint64_t, Packet packet) override {
    const Lane::Numbered* from = next(stream);
    if (from == nullptr) return false;
    std::copy(from->packet.begin(), from->packet.end(), packet.begin());
    if (files_[stream].ahead != 0) advance(shape_, files_[stream].ahead, packet);
    files_[stream].pass->pop();
    return true;
  }
  uint64_t unusable() const override {
    uint64_t sum = 0;
    for (const File& file : files_) sum += file.unusable + file.pass->unusable();
    return sum;
  }
  std::string error() const override { return error_; }

 private:
  struct File {
    std::unique_ptr<Pass> pass;
    uint64_t ahead = 0;     // of the numbers in the file
    uint64_t unusable = 0;  // of passes before this one
    bool broken = false;
  };

  std::unique_ptr<Pass> open(const std::string& path) const {
    return std::make_unique<Pass>(path, shape_, options_.start);
  }
  std::string why_empty(const Pass& pass) const {
    if (cli::stop_asked()) return ": a signal came before its first packet";
    if (const auto last = pass.last_time()) {
      return " ends before --start: its last packet is of " + utc_text(*last, 6);
    }
    return " has no packets of this shape" +
           (pass.why_unusable().empty() ? "" : "; the first that is none: " + pass.why_unusable());
  }
  // Where a file begins again, numbers go on by those of the longest stream, so that all stay
  // together. One whose count begins anew within the file does so again in the next pass.
  void measure_passes() {
    for (const std::string& path : options_.recordings) {
      const auto pass = open(path);
      uint64_t least = kMostNumber;
      uint64_t most = 0;
      for (const auto* next = pass->front(); next != nullptr; next = pass->front()) {
        least = std::min(least, next->number);
        most = std::max(most, next->number);
        pass->pop();
      }
      const uint64_t span = most - least + 1;
      if (most < least || span > Continuity::kLongestOutage) continue;
      const uint64_t heap = shape_.heap_packets;
      pass_ = std::max(pass_, (span + heap - 1) / heap * heap);
    }
  }
  const Lane::Numbered* next(uint32_t stream) {
    File& file = files_[stream];
    if (file.broken) return nullptr;
    try {
      const Lane::Numbered* packet = file.pass->front();
      if (packet != nullptr || !options_.loop) return packet;
      file.unusable += file.pass->unusable();
      file.pass = open(options_.recordings[stream]);
      file.ahead += pass_;
      return file.pass->front();
    } catch (const kit::Failure& failure) {
      file.broken = true;
      if (error_.empty()) error_ = failure.what();
      return nullptr;
    }
  }

  const SourceOptions options_;
  Shape shape_;
  std::vector<File> files_;
  uint64_t pass_ = 0;
  std::string error_;
};

}  // namespace

std::unique_ptr<Source> make_recording_source(const SourceOptions& options, const Shape& shape) {
  return std::make_unique<RecordingSource>(options, shape);
}

}  // namespace weft::stream
