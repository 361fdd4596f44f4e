#include "shared/peer_memory.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace weft::shared {
namespace {

// Pieces of a pull: those of the widest segment, the tail behind it, and the witness.
constexpr size_t kMostPieces = PieceList::kMost + 2;

void* pointer(uint64_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): of another process
}

}  // namespace

PeerMemory::Pulled PeerMemory::pull(std::span<const IoVec> to, uint64_t address) const {
  wire::HostOffer::Nonce witness{};
  std::array<IoVec, kMostPieces> local;
  local[0] = {witness.data(), witness.size()};
  const size_t pieces = std::min(to.size(), kMostPieces - 1);
  size_t wanted = 0;
  for (size_t i = 0; i < pieces; ++i) {
    local[i + 1] = to[i];
    wanted += to[i].iov_len;
  }
  // One call has one process: what proves it comes first, and is there also where the rest is not.
  const std::array<IoVec, 2> remote{IoVec{pointer(witness_), witness.size()},
                                    IoVec{pointer(address), wanted}};
  // Not by glibc's function: a sanitizer would take what the program does to its memory meanwhile
  // for a race (base/guarded.h).
  const long n = ::syscall(SYS_process_vm_readv, static_cast<long>(pid_), local.data(), pieces + 1,
                           remote.data(), remote.size(), 0UL);
  if (n < 0) return {.error = errno == EFAULT ? ESRCH : errno};
  if (static_cast<size_t>(n) < witness.size() || witness != nonce_) return {.error = ESRCH};
  const size_t bytes = static_cast<size_t>(n) - witness.size();
  return bytes > 0 || wanted == 0 ? Pulled{.bytes = bytes} : Pulled{.error = EFAULT};
}

bool PeerMemory::can_pull() const {
  return pull({}, witness_).error == 0;
}

}  // namespace weft::shared
