#include "sdp/rdma/resources.h"

#include <sys/mman.h>

#include <cerrno>
#include <utility>

namespace weft::sdp {

bool Buffers::allocate(ibv_pd* pd, uint32_t count, uint32_t size) {
  const size_t bytes = static_cast<size_t>(count) * size;
  void* p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return false;
  memory_ = static_cast<std::byte*>(p);
  count_ = count;
  size_ = size;
  // A child of fork() has no use for them.
  (void)::madvise(p, bytes, MADV_DONTFORK);
  const int access = IBV_ACCESS_LOCAL_WRITE;
  mr_.reset(ibv_reg_mr(pd, p, bytes, access));
  if (!mr_) {
    const int error = errno;
    (void)::munmap(std::exchange(memory_, nullptr), bytes);
    count_ = size_ = 0;
    errno = error;
  }
  return allocated();
}

Buffers::~Buffers() {
  mr_.reset();
  if (memory_ != nullptr) ::munmap(memory_, static_cast<size_t>(count_) * size_);
}

}  // namespace weft::sdp
