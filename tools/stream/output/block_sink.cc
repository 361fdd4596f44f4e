#include "stream/output/block_sink.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "kit/failure.h"
#include "stream/block_file.h"
#include "stream/output/block_view.h"
#include "stream/output/block_writer.h"
#include "stream/output/output_file.h"
#include "stream/output/rotation_clock.h"
#include "stream/thread_sink.h"

namespace weft::stream {
namespace {

// One file, and the blocks whose positions lie in it.
class File {
 public:
  // Takes its name when it is whole.
  File(OutputFile output, uint64_t position)
      : output_(std::move(output)),
        position_(position),
        writer_(output_->fd(), output_->name(), 0) {}
  // Is there already, or is a device.
  File(port::Fd fd, const std::string& path, uint64_t begin)
      : fd_(std::move(fd)), writer_(fd_, path, begin) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  BlockWriter& writer() { return writer_; }
  uint64_t place(uint64_t position) const { return position - position_; }
  uint64_t bytes() const { return bytes_; }

  void add(const weft_stream_block& block, uint64_t bytes) {
    ++pending_;
    bytes_ += bytes;
    packets_ += block.received;
    missing_ += block.packets - block.received;
  }
  void settle_one() { --pending_; }
  bool settled() const { return pending_ == 0; }
  // Nothing more comes, and all is written.
  void finish(const std::function<void(const nlohmann::json&)>& tell, bool on_disk) {
    if (!output_) return;
    if (!writer_.cut()) throw kit::system_failure(output_->name());
    output_->finish(on_disk);
    tell({{"event", "file"},
          {"path", output_->name()},
          {"bytes", bytes_},
          {"packets", packets_},
          {"missing", missing_}});
  }

 private:
  std::optional<OutputFile> output_;
  port::Fd fd_;
  uint64_t position_ = 0;
  uint64_t bytes_ = 0;
  uint64_t pending_ = 0;  // blocks that are being written
  uint64_t packets_ = 0;
  uint64_t missing_ = 0;
  BlockWriter writer_;
};

// A disk is never without work while there are blocks.
class BlockSink final : public ThreadSink {
 public:
  BlockSink(const SinkOptions& options, Ring& ring)
      : ThreadSink(ring, kWriters),
        options_(options),
        shape_(ring.spec().shape),
        flows_(ring.spec().streams) {
    if (rotates()) {
      OutputFile::check_names(names_, 1, options.overwrite);
      if (options.rotation.ns != 0) clock_.emplace(options.rotation.ns, ring.spec().streams);
    } else {
      open_to_add(ring);
    }
    start();
  }
  ~BlockSink() override { stop(); }
  std::optional<bool> direct() const override {
    const std::lock_guard lock{mutex_};
    return direct_;
  }
  std::optional<uint64_t> end_before(uint32_t stream) const override {
    const auto found = ends_before_.find(stream);
    return found == ends_before_.end() ? std::nullopt : std::optional{found->second};
  }

 private:
  static constexpr unsigned kWriters = 3;

  bool rotates() const { return options_.rotation.any(); }
  void open_to_add(Ring& ring) {
    const std::string& path = options_.file;
    port::Fd fd{::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644)};
    struct stat st {};
    if (!fd.valid() || ::fstat(fd.get(), &st) != 0) throw kit::system_failure(path);
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      throw kit::Failure{path + " is written by another receiver"};
    }
    uint64_t begin = 0;
    // A device is written from its first byte on.
    if (S_ISREG(st.st_mode) && !options_.overwrite) {
      begin = end_of_blocks(path, ring.header());
      ends_before_ = ends_of_streams(path, ring.header(), begin);
    }
    files_[0] = std::make_unique<File>(std::move(fd), path, begin);
    direct_ = files_[0]->writer().direct();
  }

  uint64_t size_of(const Job& job) override {
    const BlockView view{shape_, *job.block, job.data};
    const uint64_t bytes = sizeof *job.block + job.block->block_bytes;
    const std::lock_guard lock{mutex_};
    if (options_.start && view.time_ns(view.packets() - 1) < *options_.start) return 0;
    const bool turns = clock_ && clock_->turns(job.stream, view.time_ns(0));
    if (rotates() && (files_.empty() || turns || is_full(bytes))) begin_file(job, view);
    files_.rbegin()->second->add(*job.block, bytes);
    flows_[job.stream] = true;
    return bytes;
  }
  // With so many bytes more.
  bool is_full(uint64_t bytes) const {
    const uint64_t have = files_.rbegin()->second->bytes();
    const uint64_t most = options_.rotation.bytes;
    return most != 0 && have > 0 && have + bytes > most;
  }
  void begin_file(const Job& job, const BlockView& view) {
    std::string name;
    do {
      name = names_.of(0, number_++, view.time_ns(0));
    } while (names_.tells_number() && !options_.overwrite && OutputFile::exists(name));
    const auto before = files_.empty() ? files_.end() : std::prev(files_.end());
    files_[job.position] =
        std::make_unique<File>(OutputFile{name, options_.overwrite}, job.position);
    direct_ = files_.rbegin()->second->writer().direct();
    if (before != files_.end() && before->second->settled()) end_file(before, false);
  }
  void end_file(std::map<uint64_t, std::unique_ptr<File>>::iterator file, bool on_disk) {
    file->second->finish(options_.tell, on_disk);
    files_.erase(file);
  }

  File& file_of(const Job& job) {
    const std::lock_guard lock{mutex_};
    return *std::prev(files_.upper_bound(job.position))->second;
  }
  void write(Job& job) override {
    if (job.bytes == 0) return;
    File& file = file_of(job);
    file.writer().write(*job.block, job.data, file.place(job.position));
  }
  void settle(const Job& job) override {
    if (job.bytes == 0) return;
    File& file = file_of(job);
    const std::lock_guard lock{mutex_};
    file.settle_one();
    const auto found = std::prev(files_.upper_bound(job.position));
    if (file.settled() && std::next(found) != files_.end()) end_file(found, false);
  }
  // When that was the last stream, what comes begins another file.
  void over(uint32_t stream) override {
    const std::lock_guard lock{mutex_};
    flows_[stream] = false;
    if (clock_) clock_->over(stream);
    const bool all_ended = std::find(flows_.begin(), flows_.end(), true) == flows_.end();
    if (rotates() && all_ended && !files_.empty()) end_file(std::prev(files_.end()), true);
  }
  void flush() override {
    for (const auto& [position, file] : files_) {
      file->writer().flush();
      file->finish(options_.tell, true);
    }
    files_.clear();
  }

  const SinkOptions options_;
  const Shape shape_;
  const FileName names_{options_.file};
  std::map<uint32_t, uint64_t> ends_before_;

  mutable std::mutex mutex_;  // of what follows
  std::optional<bool> direct_;
  std::map<uint64_t, std::unique_ptr<File>> files_;  // by the position of their first block
  std::optional<RotationClock> clock_;
  uint64_t number_ = 0;
  std::vector<bool> flows_;  // streams that have blocks in the last file, whose senders go on
};

}  // namespace

std::unique_ptr<Sink> make_block_sink(const SinkOptions& options, Ring& ring) {
  return std::make_unique<BlockSink>(options, ring);
}

}  // namespace weft::stream
