// A queue of bounded length in one allocation. Not thread-safe.
#pragma once

#include <cstddef>
#include <vector>

namespace weft {

template <class T>
class FixedRing {
 public:
  explicit FixedRing(size_t capacity = 0) : slots_(capacity) {}
  // Drops what is in it.
  void reset(size_t capacity) {
    slots_.assign(capacity, T{});
    first_ = size_ = 0;
  }
  size_t size() const { return size_; }
  size_t capacity() const { return slots_.size(); }
  bool empty() const { return size_ == 0; }
  bool full() const { return size_ == slots_.size(); }
  T& front() { return slots_[first_]; }
  T& back() { return (*this)[size_ - 1]; }
  T& operator[](size_t i) { return slots_[(first_ + i) % slots_.size()]; }
  // Only when not full().
  T& push_back(T v) {
    ++size_;
    return back() = std::move(v);
  }
  void pop_front() {
    slots_[first_] = T{};
    first_ = (first_ + 1) % slots_.size();
    --size_;
  }

 private:
  std::vector<T> slots_;
  size_t first_ = 0;
  size_t size_ = 0;
};

}  // namespace weft
