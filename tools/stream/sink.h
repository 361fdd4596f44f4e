// Where complete blocks go, when it is not another program that takes them out of the ring.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "stream/output/output_options.h"
#include "stream/ring.h"

namespace weft::stream {

struct SinkOptions {
  std::string file;  // a file or a device, or a name of files (FileName); empty: none
  Layout layout = Layout::blocks;
  bool overwrite = false;  // a file that is there already is started anew; else blocks are added
  Rotation rotation;
  std::string header;            // a file of keywords for DADA and GUPPI; empty: none
  std::optional<int64_t> start;  // what was taken before is not written: ns since 1970
  // Is told of each file that is whole; by any thread.
  std::function<void(const nlohmann::json&)> tell;
  bool to_stdout = false;  // packets one after the other, zeroes for missing ones
};

class Sink {
 public:
  Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  virtual ~Sink() = default;
  // The sender of a stream has ended, and all that it sent is published: by the thread that
  // publishes.
  virtual void end_stream(uint32_t /*stream*/) {}
  // To be called when nothing more will be published: returns when all is written. Throws
  // kit::Failure when that did not work, then or before.
  virtual void finish() = 0;
  virtual bool failed() const = 0;
  virtual uint64_t bytes() const = 0;
  // Behind the last packet of a stream that a receiver before this one left there.
  virtual std::optional<uint64_t> end_before(uint32_t /*stream*/) const { return {}; }
  // Whether what is written goes past the page cache; nothing where that is no question.
  virtual std::optional<bool> direct() const { return {}; }
};

// Takes all streams of the ring, in threads of its own. Nothing when the options ask for none.
std::unique_ptr<Sink> make_sink(const SinkOptions& options, Ring& ring);

}  // namespace weft::stream
