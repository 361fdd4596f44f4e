// The file in shared memory behind a ring, and views of it. All throw kit::Failure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "port/fd.h"

namespace weft::stream {

// /dev/shm/NAME, locked; nothing when there is none. Refuses one that another process has locked.
port::Fd locked_ring_file(const std::string& name);
// Parts of a file, at equal distances.
struct FileParts {
  uint64_t first = 0;
  uint64_t count = 1;
  uint64_t bytes = 0;  // of each
  uint64_t step = 0;   // from one to the next
};
// A new file of zeroes, locked: /dev/shm/NAME, or without a name one that has no place. All of it
// has memory, or these parts alone and what is before the first.
port::Fd new_ring_file(const std::string& name, uint64_t size, const FileParts* parts = nullptr);
// Removes /dev/shm/NAME if it is still this file.
void remove_ring_file(const std::string& name, const port::Fd& file);

// Views of it, whose pages are there at once: packets find no page fault.
std::byte* map_shared(const port::Fd& file, uint64_t offset, uint64_t size);
// The same, from a multiple of `alignment` on, and with those pages alone that populate() asks for.
std::byte* map_shared_aligned(const port::Fd& file, uint64_t offset, uint64_t size,
                              uint64_t alignment);
void populate(std::byte* where, uint64_t size);
// Addresses for which there is no memory.
std::byte* reserve(uint64_t size, uint64_t alignment);
// What is mapped at `from` is at `to` from now on, in place of what was there, and page tables move
// as a whole if both are aligned to what one covers. At `from` the same file is mapped, without a
// page. False, and nothing has changed, where the kernel cannot.
bool move_pages(std::byte* from, std::byte* to, uint64_t size);
// In place of what is mapped there, which may be in use: PROT_READ, and PROT_WRITE or not.
void map_shared_at(std::byte* where, const port::Fd& file, uint64_t offset, uint64_t size,
                   int protection);
void protect(std::byte* where, uint64_t size, int protection);
// Memory of nobody's, likewise: it can be written, and nobody will read it. Whether there was any.
// A handler of signals may call it.
bool map_nowhere(std::byte* where, uint64_t size);

}  // namespace weft::stream
