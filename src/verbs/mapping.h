// Is a piece of this process's memory there, and may it be written to?
#pragma once

#include <cstdint>

namespace weft::verbs {

enum class Mapping : uint8_t { good, missing, read_only };

// Looks at the address space as it is now. Zero bytes are always good. Any thread.
Mapping check_mapping(const void* address, uint64_t length, bool write);

}  // namespace weft::verbs
