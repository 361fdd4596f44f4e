#include "sdp/sockets/zero_copy.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdio>

namespace weft::sdp {
namespace {

// Of a program that never asks. Then what was not copied counts as copied, which promises less.
constexpr size_t kMost = 256;

File reader_of(int writer) {
  // Without memory: a report that was taken would be lost.
  std::array<char, 32> path{};
  (void)std::snprintf(path.data(), path.size(), "/proc/self/fd/%d", writer);
  return out_of_the_way(File{::open(path.data(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)});
}

}  // namespace

// Where the pipe cannot be opened again (no /proc, another user by now) reports are there for who
// asks, and are not shown.
void ZeroCopy::enable(bool on) {
  enabled_ = on;
  std::array<int, 2> ends{};
  if (!on || writer_ || ::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return;
  writer_ = out_of_the_way(File{ends[1]});
  reader_ = File{ends[0]};
  reader_ = reader_of(writer_.get());
  if (!reader_) return writer_.reset();
  shown_at_ = writer_.get();
  ++g_count;
}

void ZeroCopy::sent(bool copied) {
  const uint32_t number = next_++;
  const bool goes_on =
      !reports_.empty() && (reports_.back().copied == copied || reports_.size() >= kMost);
  if (goes_on) {
    reports_.back().last = number;
    reports_.back().copied |= copied;
  } else {
    reports_.push_back({number, number, copied});
  }
  show(true);
}

std::optional<ZeroCopy::Report> ZeroCopy::take() {
  if (reports_.empty()) return std::nullopt;
  const Report report = reports_.front();
  reports_.pop_front();
  if (reports_.empty()) show(false);
  return report;
}

void ZeroCopy::show(bool reports) {
  if (!writer_ || reports == !reader_) return;
  reader_ = reports ? File{} : reader_of(writer_.get());
}

void ZeroCopy::close() {
  if (shown_at_.exchange(-1) >= 0) --g_count;
  writer_.reset();
  reader_.reset();
}

}  // namespace weft::sdp
