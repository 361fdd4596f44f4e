#include "stream/output/block_view.h"

namespace weft::stream {

BlockView::BlockView(const Shape& shape, const weft_stream_block& block, const std::byte* data,
                     std::optional<int64_t> start_ns)
    : shape_(shape), block_(block), data_(data), time_ns_(block.closed_ns) {
  const uint32_t i = first_here();
  if (i == packets()) return;
  const Header header = read_header(shape_, packet(i));
  origin_ = header.origin;
  if (const auto time = sample_time_ns(shape_, packet(i))) {
    period_ = period_of(shape_, origin_);
    time_ns_ = *time - period_.times(i);
  }
  if (!start_ns) return;
  while (begin_ < packets() && time_ns(begin_) < *start_ns) ++begin_;
}

uint32_t BlockView::first_here() const {
  uint32_t i = 0;
  while (i < packets() && !has(i)) ++i;
  return i;
}

uint32_t BlockView::end_here() const {
  uint32_t i = packets();
  while (i > 0 && !has(i - 1)) --i;
  return i;
}

uint32_t BlockView::here() const {
  uint32_t n = 0;
  for (uint32_t i = 0; i < packets(); ++i) n += has(i) ? 1 : 0;
  return n;
}

}  // namespace weft::stream
