#include "stream/ring_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weft/stream_ring.h>

#include "kit/failure.h"

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

port::Fd new_ring_file(const std::string& name, uint64_t size) {
  port::Fd file = new_file(name);
  if (!file.valid()) throw kit::system_failure("the ring " + path_of(name));
  // All of it now: a machine without room for it says so here, and not by a signal later.
  if (const int error = ::posix_fallocate(file.get(), 0, static_cast<off_t>(size)); error != 0) {
    if (!name.empty()) ::unlink(path_of(name).c_str());
    errno = error;
    throw kit::system_failure("a ring of " + std::to_string(size >> 20) +
                              " MiB (take fewer or smaller blocks, or make /dev/shm larger)");
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
