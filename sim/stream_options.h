// How a StreamLink treats the bytes. Both directions alike.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.h"

namespace weft::sim {

// How written bytes are cut into the pieces that arrive, each at a time of its own.
enum class Segmentation : uint8_t {
  whole,     // what one write() took arrives in one piece
  bytewise,  // each byte alone
  random,    // 1 byte to 64 KiB, small as likely as large; often glued to what was written before
  mss,       // StreamOptions::mss bytes, the rest of a write() alone
};

struct StreamOptions {
  Duration delay = std::chrono::microseconds{25};  // one way, least
  Duration jitter{0};  // added to each segment, 0 to this much; order is kept
  Segmentation segmentation = Segmentation::whole;
  size_t mss = 1448;
  // Most bytes that one side has written and the other one has not read (as far as the writer
  // knows, one delay later).
  size_t window = 1 << 20;
  // Chance that a write() takes only a part of what there is room for.
  double short_write = 0;
};

// What a cut looks like.
enum class Cut : uint8_t {
  fin,      // a clean end in the wrong place: the reader sees FIN, what the writer still writes
            // vanishes
  reset,    // both ends are reset, the writer one delay after the reader
  silence,  // nothing arrives any more in either direction, and nobody says so
};

}  // namespace weft::sim
