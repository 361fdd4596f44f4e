// Want of memory on purpose, for all of this program: its operator new is in acceptor_test.cc.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace weft::cm {

// No block of more bytes is to be had; 0: none at all.
inline std::atomic<size_t> most_memory{SIZE_MAX};

}  // namespace weft::cm
