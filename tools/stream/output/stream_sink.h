// Files of a stream each, in the layouts of other programs.
#pragma once

#include "stream/sink.h"

namespace weft::stream {

std::unique_ptr<Sink> make_stream_sink(const SinkOptions& options, Ring& ring);

}  // namespace weft::stream
