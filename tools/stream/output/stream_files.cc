#include "stream/output/stream_files.h"

#include <algorithm>

#include "kit/failure.h"
#include "stream/continuity.h"

namespace weft::stream {
namespace {

constexpr uint64_t kFilledAtOnce = 256;  // packets

}  // namespace

StreamFiles::StreamFiles(StreamFilesOptions options, const Shape& shape,
                         std::unique_ptr<FileLayout> layout)
    : options_(std::move(options)), layout_(std::move(layout)) {
  facts_.shape = shape;
  facts_.most_bytes = options_.rotation.bytes;
}

void StreamFiles::write(const Bytes& bytes) {
  file_->append(bytes);
  bytes_ += bytes.size();
}

// What is missing up to `before`.
void StreamFiles::fill(uint64_t before) {
  while (written_ < before) {
    const uint64_t n = std::min(before - written_, kFilledAtOnce);
    out_.clear();
    layout_->add_missing(facts_, written_, n, out_);
    write(out_);
    written_ += n;
    facts_.missing += n;
  }
}

OutputFile StreamFiles::make_file(const BlockView& block, uint32_t first) {
  for (;;) {
    const std::string name = options_.name.of(block.stream(), number_++, block.time_ns(first));
    // A receiver that is started again goes on behind the files that are there.
    if (options_.name.tells_number() && !options_.overwrite && OutputFile::exists(name)) continue;
    return OutputFile{name, options_.overwrite};
  }
}

// Begins a file with packet `first` of the block.
void StreamFiles::open(const BlockView& block, uint32_t first) {
  begin_ns_ = block.time_ns(first);
  facts_.stream = block.stream();
  facts_.origin = block.origin();
  facts_.period = block.period();
  facts_.first = written_ = block.first() + first;
  facts_.packets = facts_.missing = 0;
  if (!observing_) {
    facts_.observation = facts_.first;
    facts_.observation_ns = begin_ns_;
    observing_ = true;
  }
  file_.emplace(make_file(block, first));
  facts_.name = file_->name();
  out_.clear();
  layout_->begin(facts_, out_);
  header_ = out_.size();
  write(out_);
}

void StreamFiles::close(bool on_disk) {
  if (!file_) return;
  out_.clear();
  layout_->end(facts_, file_->size() - header_, out_);
  if (!out_.empty()) file_->rewrite_begin(out_);
  file_->finish(on_disk);
  options_.tell({{"event", "file"},
                 {"stream", facts_.stream},
                 {"path", file_->name()},
                 {"bytes", file_->size()},
                 {"packets", facts_.packets},
                 {"missing", facts_.missing}});
  file_.reset();
  ++facts_.file;
}

// Where the block does not go on from the one before it.
void StreamFiles::follow(const BlockView& block) {
  const uint64_t first = block.first();
  const bool anew = first < next_ || first - next_ > Continuity::kLongestOutage;
  if (anew || block.origin() != facts_.origin) {
    end_observation();
  }
  if (!file_) return;
  const uint64_t missing = first + block.first_here() - written_;
  if (layout_->fills() && missing > options_.most_filled) close(false);
}

bool StreamFiles::must_rotate(const BlockView& block) const {
  const Rotation& r = options_.rotation;
  if (r.ns != 0 && block.time_ns(0) / r.ns != begin_ns_ / r.ns) return true;
  if (r.bytes == 0 || facts_.packets == 0) return false;
  const uint64_t packets = block.packets() + (layout_->fills() ? block.first() - written_ : 0);
  return file_->size() + layout_->most_bytes(facts_.shape, packets) > r.bytes;
}

uint64_t StreamFiles::add(const BlockView& block) {
  const uint64_t before = bytes_;
  if (block.here() == 0) return 0;
  if (file_) follow(block);
  bool goes_on = false;
  if (file_ && must_rotate(block)) {
    // The next file begins where this one ends.
    if (layout_->fills()) fill(std::max(written_, block.first()));
    close(false);
    goes_on = layout_->fills();
  }
  if (!file_) open(block, goes_on || layout_->whole_blocks() ? 0 : block.first_here());
  const uint64_t first = block.first();
  if (layout_->fills()) fill(std::max(written_, first));
  if (written_ < first) {
    facts_.missing += first - written_;
    written_ = first;
  }
  const auto from = static_cast<uint32_t>(written_ > first ? written_ - first : 0);
  const uint32_t to = layout_->whole_blocks() ? block.packets() : block.end_here();
  out_.clear();
  layout_->add(facts_, block, from, to, out_);
  write(out_);
  facts_.packets += block.here();
  facts_.missing += (first + to - written_) - block.here();
  written_ = first + to;
  next_ = first + block.packets();
  return bytes_ - before;
}

void StreamFiles::end_observation() {
  observing_ = false;
  close(true);
}

}  // namespace weft::stream
