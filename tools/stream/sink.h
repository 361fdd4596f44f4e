// Where complete blocks go, when it is not another program that takes them out of the ring.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "stream/ring.h"

namespace weft::stream {

struct SinkOptions {
  std::string file;        // a file or a device: blocks with their headers; empty: none
  bool overwrite = false;  // a file that is there already is started anew; else blocks are added
  bool to_stdout = false;  // packets one after the other, zeroes for missing ones
};

class Sink {
 public:
  Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  virtual ~Sink() = default;
  // To be called when nothing more will be published: returns when all is written. Throws
  // bench::Failure when that did not work, then or before.
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
