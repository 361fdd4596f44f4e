#include "drive/loop_bytes.h"

#include <algorithm>
#include <cerrno>

#include "base/guarded.h"

namespace weft::drive {

// As writev(2) does: up to the first byte that cannot be read.
port::ByteStream::Transfer LoopBytes::send(std::span<const IoVec> pieces) const {
  State& s = *state_;
  if (s.ended) return {.error = EPIPE};
  s.bytes.erase(s.bytes.begin(), s.bytes.begin() + static_cast<ptrdiff_t>(s.read));
  s.read = 0;
  const size_t most = std::min(kMost - s.bytes.size(), total(pieces));
  if (most == 0) return {.would_block = true};
  const size_t before = s.bytes.size();
  s.bytes.resize(before + most);
  size_t at = before;
  bool reached = true;
  for (const IoVec& piece : pieces) {
    const size_t n = std::min(piece.iov_len, s.bytes.size() - at);
    reached = copy_guarded(s.bytes.data() + at, piece.iov_base, n);
    if (!reached) break;
    at += n;
  }
  s.bytes.resize(at);
  if (at == before && !reached) return {.error = EFAULT};
  return {.bytes = at - before};
}

port::ByteStream::Transfer LoopBytes::receive(std::span<const IoVec> pieces) const {
  State& s = *state_;
  if (waiting() == 0) return s.ended ? Transfer{.end = true} : Transfer{.would_block = true};
  const size_t before = s.read;
  for (const IoVec& piece : pieces) {
    const size_t n = std::min(piece.iov_len, waiting());
    if (!copy_guarded(piece.iov_base, s.bytes.data() + s.read, n)) {
      return s.read == before ? Transfer{.error = EFAULT} : Transfer{.bytes = s.read - before};
    }
    s.read += n;
  }
  return {.bytes = s.read - before};
}

void LoopBytes::trim() {
  if (waiting() == 0) {
    state_->bytes = {};
    state_->read = 0;
  }
}

}  // namespace weft::drive
