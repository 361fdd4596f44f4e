// A queue of at most `kRoom` elements that has the memory for all of them from the start, so that
// nothing is lost for want of memory between two steps of a connection.
#pragma once

#include <array>
#include <cstddef>

namespace weft::sdp {

template <class T, size_t kRoom>
class Ring {
 public:
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool full() const { return size_ == kRoom; }
  // Only when there is an element.
  T& front() { return slots_[first_]; }
  const T& front() const { return slots_[first_]; }
  T& back() { return slots_[place(size_ - 1)]; }
  const T& back() const { return slots_[place(size_ - 1)]; }
  const T& operator[](size_t i) const { return slots_[place(i)]; }
  // Only when not full.
  void push_back(const T& element) {
    slots_[place(size_)] = element;
    ++size_;
  }
  void pop_front() {
    first_ = place(1);
    --size_;
  }

 private:
  size_t place(size_t i) const { return (first_ + i) % kRoom; }

  std::array<T, kRoom> slots_{};
  size_t first_ = 0;
  size_t size_ = 0;
};

}  // namespace weft::sdp
