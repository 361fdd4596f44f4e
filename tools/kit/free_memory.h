// Memory that may be taken without anybody having to be ended for it.
#pragma once

#include <cstdint>
#include <string>

namespace weft::kit {

// Bytes: MemAvailable of /proc/meminfo, or less where a control group of this process, or one above
// it, has a limit (memory.max of version 2). All that there are when the kernel does not say.
// `root` is in front of the kernel's folders.
uint64_t free_memory(const std::string& root = {});

}  // namespace weft::kit
