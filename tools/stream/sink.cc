#include "stream/sink.h"

#include <unistd.h>

#include "stream/output/block_sink.h"
#include "stream/output/block_writer.h"
#include "stream/output/stream_sink.h"
#include "stream/thread_sink.h"

namespace weft::stream {
namespace {

// Packets in their order, in one thread: there is one place where they go.
class StdoutSink final : public ThreadSink {
 public:
  explicit StdoutSink(Ring& ring) : ThreadSink(ring, 1), zeroes_(ring.header().packet_bytes) {
    start();
  }
  ~StdoutSink() override { stop(); }

 private:
  uint64_t size_of(const Job& job) override {
    return uint64_t{job.block->packets} * job.block->packet_bytes;
  }
  void write(Job& job) override {
    const weft_stream_block& block = *job.block;
    pieces_.clear();
    for (uint32_t i = 0; i < block.packets; ++i) {
      const bool here = (block.valid[i / 8] >> (i % 8) & 1) != 0;
      const std::byte* packet = here ? job.data + uint64_t{i} * block.slot_bytes : zeroes_.data();
      pieces_.push_back(piece(packet, block.packet_bytes));
    }
    write_all(STDOUT_FILENO, pieces_, -1);
  }

  const std::vector<std::byte> zeroes_;
  std::vector<iovec> pieces_;
};

}  // namespace

std::unique_ptr<Sink> make_sink(const SinkOptions& options, Ring& ring) {
  if (!options.file.empty()) {
    return options.layout == Layout::blocks ? make_block_sink(options, ring)
                                            : make_stream_sink(options, ring);
  }
  if (options.to_stdout) return std::make_unique<StdoutSink>(ring);
  return nullptr;
}

}  // namespace weft::stream
