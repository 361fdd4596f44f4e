// Files of blocks as `weft stream recv --file` writes them.
#pragma once

#include <weft/stream_ring.h>

#include <cstdint>
#include <map>
#include <string>

namespace weft::stream {

// Where the last whole block of a regular file ends, so that more can follow; 0: it has none, and
// nothing else either. Throws kit::Failure when what it ends with is no block of this shape: the
// number of packets, their sizes, and the bytes of a block are compared. What is before the last
// block is not looked at.
uint64_t end_of_blocks(const std::string& path, const weft_stream_ring& shape);

// For each stream the number behind the last packet of its last block before `end`, which is what
// end_of_blocks() says. Streams that are in none of as many blocks as all their rings have are left
// out: a file may have days of blocks.
std::map<uint32_t, uint64_t> ends_of_streams(const std::string& path, const weft_stream_ring& shape,
                                             uint64_t end);

}  // namespace weft::stream
