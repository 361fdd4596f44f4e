// Blocks as they lie in the ring, each behind its header, in files that all streams share.
#pragma once

#include "stream/sink.h"

namespace weft::stream {

std::unique_ptr<Sink> make_block_sink(const SinkOptions& options, Ring& ring);

}  // namespace weft::stream
