// The file in shared memory behind a ring, and views of it. All throw kit::Failure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "port/fd.h"

namespace weft::stream {

// /dev/shm/NAME, locked; nothing when there is none. Refuses one that another process has locked.
port::Fd locked_ring_file(const std::string& name);
// A new file of zeroes, locked: /dev/shm/NAME, or without a name one that has no place.
port::Fd new_ring_file(const std::string& name, uint64_t size);
// Removes /dev/shm/NAME if it is still this file.
void remove_ring_file(const std::string& name, const port::Fd& file);

// Views of it, whose pages are there at once: packets find no page fault.
std::byte* map_shared(const port::Fd& file, uint64_t offset, uint64_t size);
// In place of what is mapped there, which may be in use: PROT_READ, and PROT_WRITE or not.
void map_shared_at(std::byte* where, const port::Fd& file, uint64_t offset, uint64_t size,
                   int protection);
void protect(std::byte* where, uint64_t size, int protection);
// Memory of nobody's, likewise: it can be written, and nobody will read it. Whether there was any.
// A handler of signals may call it.
bool map_nowhere(std::byte* where, uint64_t size);

}  // namespace weft::stream
