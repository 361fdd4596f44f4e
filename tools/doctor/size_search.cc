#include "doctor/size_search.h"

#include <algorithm>

namespace weft::doctor {

SizeSearch::SizeSearch(uint32_t passes, uint32_t most, unsigned tries, uint32_t burst)
    : passes_(passes), most_(std::max(passes, most)), tries_(tries), burst_(burst) {}

void SizeSearch::choose() {
  bursts_ = 0;
  sizes_.clear();
  const uint32_t span = most_ - passes_;
  const uint32_t count = std::min(span, std::clamp(burst_ / most_, 2U, kSizes));
  for (uint32_t i = count; i > 0; --i) {
    sizes_.push_back(passes_ + static_cast<uint32_t>(uint64_t{span} * i / count));
  }
}

const std::vector<uint32_t>& SizeSearch::next() {
  std::erase_if(sizes_, [&](uint32_t size) { return size <= passes_ || size > most_; });
  if (!sizes_.empty() && bursts_ >= tries_) {
    most_ = sizes_.back() - 1;
    sizes_.clear();
  }
  if (sizes_.empty()) choose();
  return sizes_;
}

void SizeSearch::arrived(uint32_t size) {
  passes_ = std::clamp(size, passes_, most_);
}

void SizeSearch::refused(uint32_t size) {
  if (size > passes_) most_ = std::min(most_, size - 1);
}

}  // namespace weft::doctor
