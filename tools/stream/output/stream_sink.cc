#include "stream/output/stream_sink.h"

#include <memory>
#include <vector>

#include "stream/output/stream_files.h"
#include "stream/thread_sink.h"

namespace weft::stream {
namespace {

// One thread: blocks of a stream follow each other in a file.
class StreamSink final : public ThreadSink {
 public:
  StreamSink(const SinkOptions& options, Ring& ring)
      : ThreadSink(ring, 1), start_(options.start), shape_(ring.spec().shape) {
    OutputFile::check_names(FileName{options.file}, ring.spec().streams, options.overwrite);
    const HeaderFile header = options.header.empty() ? HeaderFile{} : HeaderFile{options.header};
    const StreamFilesOptions files{
        .name = FileName{options.file},
        .overwrite = options.overwrite,
        .rotation = options.rotation,
        .most_filled = uint64_t{ring.spec().blocks} * ring.spec().packets_per_block,
        .tell = options.tell};
    for (uint32_t i = 0; i < ring.spec().streams; ++i) {
      files_.push_back(std::make_unique<StreamFiles>(
          files, shape_, make_file_layout(options.layout, shape_, header)));
    }
    ThreadSink::start();
  }
  ~StreamSink() override { stop(); }

 private:
  uint64_t size_of(const Job&) override { return 0; }  // nobody knows yet
  void write(Job& job) override {
    const BlockView view{shape_, *job.block, job.data, start_};
    job.bytes = files_[job.stream]->add(view);
  }
  void over(uint32_t stream) override { files_[stream]->end_observation(); }
  void flush() override {
    for (const auto& files : files_) files->end_observation();
  }

  const std::optional<int64_t> start_;
  const Shape shape_;
  std::vector<std::unique_ptr<StreamFiles>> files_;
};

}  // namespace

std::unique_ptr<Sink> make_stream_sink(const SinkOptions& options, Ring& ring) {
  return std::make_unique<StreamSink>(options, ring);
}

}  // namespace weft::stream
