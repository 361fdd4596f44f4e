#include "stream/ring_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weft/stream_ring.h>

#include "kit/failure.h"
#include "kit/free_memory.h"

namespace weft::stream {
namespace {

std::string path_of(const std::string& name) {
  return "/dev/shm/" + name;
}

void lock_file(const port::Fd& file, const std::string& name) {
  // The first one for receivers, the other one for consumers.
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0 && weft_stream_lock(file.get(), 0, 0) == 0) {
    return;
  }
  throw kit::Failure{"the ring " + path_of(name) + " is that of a receiver that runs"};
}

std::string in_mebibytes(uint64_t bytes) {
  return std::to_string(bytes >> 20) + " MiB";
}

port::Fd new_file(const std::string& name) {
  if (name.empty()) return port::Fd{::memfd_create("weft-stream", MFD_CLOEXEC)};
  port::Fd file{::open(path_of(name).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
  if (file.valid()) lock_file(file, name);
  return file;
}

}  // namespace

port::Fd locked_ring_file(const std::string& name) {
  port::Fd file{::open(path_of(name).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW)};
  if (!file.valid()) {
    if (errno == ENOENT) return file;
    throw kit::system_failure("the ring " + path_of(name));
  }
  struct stat st {};
  if (::fstat(file.get(), &st) != 0 || st.st_uid != ::geteuid()) {
    throw kit::Failure{path_of(name) + " is a file of somebody else's"};
  }
  lock_file(file, name);
  return file;
}

port::Fd new_ring_file(const std::string& name, uint64_t size, const FileParts* parts) {
  const FileParts all{.first = size};
  const FileParts& p = parts != nullptr ? *parts : all;
  const uint64_t taken = p.first + p.count * p.bytes;
  const std::string what = "a ring of " + in_mebibytes(taken);
  // A file in memory may be as large as all of the memory, and the kernel ends processes then.
  if (const uint64_t free = kit::free_memory(); taken > free) {
    throw kit::Failure{what + " does not fit into the " + in_mebibytes(free) +
                       " of memory that are free (take fewer or smaller blocks)"};
  }
  port::Fd file = new_file(name);
  if (!file.valid()) throw kit::system_failure("the ring " + path_of(name));
  // Memory for it now: a machine without room for it says so here, and not by a signal later.
  int error = ::ftruncate(file.get(), static_cast<off_t>(size)) == 0 ? 0 : errno;
  if (error == 0) error = ::posix_fallocate(file.get(), 0, static_cast<off_t>(p.first));
  for (uint64_t i = 0; error == 0 && p.bytes > 0 && i < p.count; ++i) {
    error = ::posix_fallocate(file.get(), static_cast<off_t>(p.first + i * p.step),
                              static_cast<off_t>(p.bytes));
  }
  if (error != 0) {
    if (!name.empty()) ::unlink(path_of(name).c_str());
    errno = error;
    throw kit::system_failure(what + " (take fewer or smaller blocks, or make /dev/shm larger)");
  }
  return file;
}

void remove_ring_file(const std::string& name, const port::Fd& file) {
  if (name.empty()) return;
  struct stat own {};
  struct stat there {};
  if (::fstat(file.get(), &own) != 0 || ::stat(path_of(name).c_str(), &there) != 0) return;
  if (own.st_ino == there.st_ino && own.st_dev == there.st_dev) ::unlink(path_of(name).c_str());
}

std::byte* map_shared(const port::Fd& file, uint64_t offset, uint64_t size) {
  void* p = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file.get(),
                   static_cast<off_t>(offset));
  if (p == MAP_FAILED) throw kit::system_failure("memory for the ring");
  return static_cast<std::byte*>(p);
}

std::byte* reserve(uint64_t size, uint64_t alignment) {
  void* p = ::mmap(nullptr, size + alignment, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw kit::system_failure("addresses for the ring");
  auto* const begin = static_cast<std::byte*>(p);
  const uint64_t before = (alignment - reinterpret_cast<uintptr_t>(begin) % alignment) % alignment;
  if (before > 0) ::munmap(begin, before);
  if (before < alignment) ::munmap(begin + before + size, alignment - before);
  return begin + before;
}

std::byte* map_shared_aligned(const port::Fd& file, uint64_t offset, uint64_t size,
                              uint64_t alignment) {
  void* p = ::mmap(reserve(size, alignment), size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                   file.get(), static_cast<off_t>(offset));
  if (p == MAP_FAILED) throw kit::system_failure("memory for the ring");
  return static_cast<std::byte*>(p);
}

void populate(std::byte* where, uint64_t size) {
  constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, since Linux 5.14
  if (::madvise(where, size, kPopulateWrite) == 0) return;
  const auto page = static_cast<uint64_t>(::getpagesize());
  for (uint64_t at = 0; at < size; at += page) {
    (void)__atomic_fetch_or(reinterpret_cast<uint8_t*>(where + at), 0, __ATOMIC_RELAXED);
  }
}

bool move_pages(std::byte* from, std::byte* to, uint64_t size) {
  constexpr int kDontUnmap = 4;  // MREMAP_DONTUNMAP
  return ::mremap(from, size, size, MREMAP_MAYMOVE | MREMAP_FIXED | kDontUnmap, to) != MAP_FAILED;
}

void map_shared_at(std::byte* where, const port::Fd& file, uint64_t offset, uint64_t size,
                   int protection) {
  // One step for whoever writes there at this moment: mmap(2) with MAP_FIXED leaves no hole.
  void* p = ::mmap(where, size, protection, MAP_SHARED | MAP_FIXED | MAP_POPULATE, file.get(),
                   static_cast<off_t>(offset));
  if (p == MAP_FAILED) throw kit::system_failure("memory for the ring");
}

void protect(std::byte* where, uint64_t size, int protection) {
  if (::mprotect(where, size, protection) != 0) throw kit::system_failure("memory for the ring");
}

bool map_nowhere(std::byte* where, uint64_t size) {
  return ::mmap(where, size, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED;
}

}  // namespace weft::stream
