// The memory behind ibv_alloc_null_mr: it reads as zeros, and what is written to it is lost. Made
// once for the process, when the first such region is.
//
// Payload is moved between memory and sockets, so there has to be some: zeros that nobody writes
// to, and beside them a sink, the same 2 MiB again and again. Each is as long as the longest
// message.
#pragma once

#include <cstddef>
#include <cstdint>

#include "work/work_request.h"

namespace weft::verbs {

class NullMemory {
 public:
  static constexpr uint64_t kSize = work::kMostMessage;

  // What a region of it has as its base; nullptr where there is no room for it.
  static std::byte* make();
  // Whether this is the base of such a region. Any thread.
  static bool is(const std::byte* base);
  // Where [anywhere, anywhere + length) is, of at most kSize bytes.
  static std::byte* place(bool to_write);
};

}  // namespace weft::verbs
