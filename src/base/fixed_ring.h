// A queue of bounded length. Its memory grows with use, so that a connection at rest has next to
// none. Not thread-safe.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace weft {

template <class T>
class FixedRing {
 public:
  explicit FixedRing(size_t capacity = 0) : capacity_(capacity) {}
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  bool empty() const { return size_ == 0; }
  bool full() const { return size_ >= capacity_; }
  T& front() { return slots_[first_]; }
  const T& front() const { return slots_[first_]; }
  T& back() { return (*this)[size_ - 1]; }
  T& operator[](size_t i) { return slots_[(first_ + i) & (slots_.size() - 1)]; }
  // Callers ask full() first.
  T& push_back(T v) {
    if (size_ == slots_.size()) grow();
    ++size_;
    return back() = std::move(v);
  }
  void pop_front() {
    slots_[first_] = T{};
    first_ = (first_ + 1) & (slots_.size() - 1);
    --size_;
  }
  // Gives back its memory where nothing is in it.
  void trim() {
    if (empty()) slots_ = {};
  }

 private:
  static constexpr size_t kFirst = 4;

  void grow() {
    std::vector<T> more(slots_.empty() ? kFirst : 2 * slots_.size());
    for (size_t i = 0; i < size_; ++i) more[i] = std::move((*this)[i]);
    slots_.swap(more);
    first_ = 0;
  }

  size_t capacity_;
  std::vector<T> slots_;  // a power of two of them
  size_t first_ = 0;
  size_t size_ = 0;
};

}  // namespace weft
