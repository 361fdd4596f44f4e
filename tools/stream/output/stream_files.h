// The files of one stream: what goes into which, and when one is whole.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "stream/output/file_layout.h"
#include "stream/output/output_file.h"

namespace weft::stream {

struct StreamFilesOptions {
  FileName name{""};
  bool overwrite = false;
  Rotation rotation;
  // Packets that may be missing in a row and be filled; behind more another file begins.
  uint64_t most_filled = 4096;
  // Is told of each file that is whole.
  std::function<void(const nlohmann::json&)> tell;
};

// One thread at a time. All throw kit::Failure.
class StreamFiles {
 public:
  StreamFiles(StreamFilesOptions options, const Shape& shape, std::unique_ptr<FileLayout> layout);

  // Blocks come in the order in which they were published. How many bytes were written.
  uint64_t add(const BlockView& block);
  // The observation is over: its last file is whole, and the disk has it. What comes is another
  // one.
  void end_observation();

 private:
  void follow(const BlockView& block);
  bool must_rotate(const BlockView& block) const;
  void open(const BlockView& block, uint32_t first);
  void close(bool on_disk);
  void fill(uint64_t before);
  void write(const Bytes& bytes);
  OutputFile make_file(const BlockView& block, uint32_t first);

  const StreamFilesOptions options_;
  const std::unique_ptr<FileLayout> layout_;
  FileFacts facts_;
  std::optional<OutputFile> file_;
  bool observing_ = false;
  uint64_t next_ = 0;     // number behind the last packet of the last block
  uint64_t written_ = 0;  // number behind the last packet that is in the file
  uint64_t header_ = 0;   // bytes of it
  int64_t begin_ns_ = 0;  // of the file
  uint64_t number_ = 0;   // of the next file's name
  uint64_t bytes_ = 0;
  Bytes out_;
};

}  // namespace weft::stream
