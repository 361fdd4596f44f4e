// What the channels of a socket may keep besides what each of them may keep at any time
// (spec/wdp-rd 4.5). On a long path much is under way, and has to be kept at one end or the other;
// of a thousand peers few are so far away and so busy.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "wdp/rd_limits.h"

namespace weft::wdp {

// Of one socket. Not thread-safe.
class RdBudget {
 public:
  explicit RdBudget(size_t bytes = kSocketExtra) : free_(bytes) {}
  size_t free() const { return free_; }

 private:
  friend class RdExtra;
  size_t free_;
};

// One part of it, for one purpose of a channel or connection. Goes back with its holder, which may
// outlive the socket.
class RdExtra {
 public:
  RdExtra() = default;  // never has any
  explicit RdExtra(std::shared_ptr<RdBudget> budget) : budget_(std::move(budget)) {}
  RdExtra(RdExtra&& other) noexcept
      : budget_(std::move(other.budget_)), bytes_(std::exchange(other.bytes_, 0)) {}
  RdExtra& operator=(RdExtra&&) = delete;
  ~RdExtra() { release(); }

  size_t bytes() const { return bytes_; }
  // No more than it leaves for all others: whoever comes later finds something, too. Takes nothing
  // back.
  void grow_to(size_t wanted) {
    if (budget_ == nullptr || wanted <= bytes_) return;
    const size_t most = std::min(wanted, (budget_->free_ + bytes_) / 2);
    if (most <= bytes_) return;
    budget_->free_ -= most - bytes_;
    bytes_ = most;
  }
  void release() {
    if (budget_ != nullptr) budget_->free_ += bytes_;
    bytes_ = 0;
  }

 private:
  std::shared_ptr<RdBudget> budget_;
  size_t bytes_ = 0;
};

}  // namespace weft::wdp
