#include "trace/frame_cutter.h"

#include <algorithm>

#include "base/guarded.h"
#include "wire/fpdu.h"
#include "wire/mpa_start.h"

namespace weft::trace {

using wire::MpaStart;

Bytes FrameCutter::Input::next(size_t most) {
  while (!pieces_.empty() && offset_ == pieces_.front().iov_len) {
    pieces_ = pieces_.subspan(1);
    offset_ = 0;
  }
  if (pieces_.empty()) {
    left_ = 0;
    return {};
  }
  const size_t n = std::min({most, left_, pieces_.front().iov_len - offset_});
  const Bytes run{static_cast<const std::byte*>(pieces_.front().iov_base) + offset_, n};
  offset_ += n;
  left_ -= n;
  return run;
}

size_t FrameCutter::size_at() const {
  return at_start_ ? MpaStart::kSize : wire::kFpduLengthSize;
}

// False: this is no MPA stream.
bool FrameCutter::read_size() {
  if (!at_start_) {
    expected_ = wire::fpdu_size(load_be<uint16_t>(head_.data()));
    return true;
  }
  auto start = MpaStart::parse(MpaStart::Kind::request, head_.data());
  if (!start.ok()) start = MpaStart::parse(MpaStart::Kind::reply, head_.data());
  if (!start.ok()) return false;
  asks_for_markers_ = start->markers;
  expected_ = MpaStart::kSize + start->private_data_length;
  return true;
}

bool FrameCutter::take(Input& input) {
  while (!input.empty()) {
    const bool in_head = !opaque_ && expected_ == 0;
    const size_t wanted = opaque_ ? input.left() : in_head ? size_at() - seen_ : expected_ - seen_;
    const Bytes run = input.next(wanted);
    const size_t room = in_head ? run.size() : keep_ - std::min(keep_, head_.size());
    const Bytes copied = run.first(std::min(run.size(), room));
    // The program may have unmapped it meanwhile: zeros stand for it then.
    head_.resize(head_.size() + copied.size());
    (void)copy_guarded(head_.data() + head_.size() - copied.size(), copied.data(), copied.size());
    seen_ += run.size();
    if (in_head && seen_ == size_at() && !read_size()) give_up();
    if (opaque_ ? input.empty() : seen_ == expected_) return true;
  }
  return false;
}

void FrameCutter::next() {
  head_.clear();
  seen_ = 0;
  expected_ = 0;
  at_start_ = false;
}

}  // namespace weft::trace
