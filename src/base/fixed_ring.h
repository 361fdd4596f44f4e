// A queue of bounded length. Its memory grows with use, so that a connection at rest has next to
// none; and it is small itself, for each connection has several. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace weft {

template <class T>
class FixedRing {
 public:
  explicit FixedRing(uint32_t capacity = 0) : capacity_(capacity) {}
  FixedRing(const FixedRing&) = delete;
  FixedRing& operator=(const FixedRing&) = delete;
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  bool empty() const { return size_ == 0; }
  bool full() const { return size_ >= capacity_; }
  T& front() { return slots_[first_]; }
  const T& front() const { return slots_[first_]; }
  T& back() { return (*this)[size_ - 1]; }
  T& operator[](size_t i) { return slots_[(first_ + i) & (slot_count_ - 1)]; }
  // Callers ask full() first.
  T& push_back(T v) {
    if (size_ == slot_count_) grow();
    ++size_;
    return back() = std::move(v);
  }
  void pop_front() {
    slots_[first_] = T{};
    first_ = (first_ + 1) & (slot_count_ - 1);
    --size_;
  }
  void pop_back() {
    back() = T{};
    --size_;
  }
  // Destroys what is in it, and gives back its memory.
  void clear() {
    slots_.reset();
    slot_count_ = first_ = size_ = 0;
  }
  bool has_memory() const { return slots_ != nullptr; }
  // Gives back its memory where nothing is in it.
  void trim() {
    if (empty()) clear();
  }

 private:
  static constexpr uint32_t kFirst = 4;

  void grow() {
    const uint32_t count = slot_count_ == 0 ? kFirst : 2 * slot_count_;
    auto more = std::make_unique<T[]>(count);
    for (uint32_t i = 0; i < size_; ++i) more[i] = std::move((*this)[i]);
    slots_ = std::move(more);
    slot_count_ = count;
    first_ = 0;
  }

  std::unique_ptr<T[]> slots_;
  uint32_t slot_count_ = 0;  // a power of two, or none
  uint32_t capacity_;
  uint32_t first_ = 0;
  uint32_t size_ = 0;
};

}  // namespace weft
