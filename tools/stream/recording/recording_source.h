// Where a sender's packets come from recordings of lanes: see SourceOptions.
#pragma once

#include "stream/source.h"

namespace weft::stream {

// A stream for each of `options.recordings`. Throws kit::Failure.
std::unique_ptr<Source> make_recording_source(const SourceOptions& options, const Shape& shape);

}  // namespace weft::stream
