// A doubly linked list through its elements: no allocation, removal from the middle in constant
// time. An element is in at most one list per Tag. The list does not own its elements.
#pragma once

#include <cstddef>

namespace weft {

template <class Tag>
class ListHook {
 public:
  ListHook() = default;
  ListHook(const ListHook&) = delete;
  ListHook& operator=(const ListHook&) = delete;
  ~ListHook() { unlink(); }
  bool linked() const { return next_ != nullptr; }
  void unlink() {
    if (next_ == nullptr) return;
    prev_->next_ = next_;
    next_->prev_ = prev_;
    next_ = prev_ = nullptr;
  }

 private:
  template <class T, class U>
  friend class IntrusiveList;
  ListHook* next_ = nullptr;
  ListHook* prev_ = nullptr;
};

template <class T, class Tag>
class IntrusiveList {
 public:
  using Hook = ListHook<Tag>;
  IntrusiveList() { head_.next_ = head_.prev_ = &head_; }
  IntrusiveList(const IntrusiveList&) = delete;
  IntrusiveList& operator=(const IntrusiveList&) = delete;
  ~IntrusiveList() {
    while (!empty()) front().Hook::unlink();
    head_.next_ = head_.prev_ = nullptr;
  }

  bool empty() const { return head_.next_ == &head_; }
  bool has_other_than(const T& e) const {
    const Hook* h = &e;
    return !empty() && (head_.next_ != h || head_.prev_ != h);
  }
  T& front() { return static_cast<T&>(*head_.next_); }
  // No effect when `e` is already in a list of this Tag.
  void push_back(T& e) {
    Hook& h = e;
    if (h.linked()) return;
    h.prev_ = head_.prev_;
    h.next_ = &head_;
    head_.prev_->next_ = &h;
    head_.prev_ = &h;
  }
  T* pop_front() {
    if (empty()) return nullptr;
    T& e = front();
    e.Hook::unlink();
    return &e;
  }
  // Calls f(element) for each; f may remove the element it is given, and no other.
  template <class F>
  void for_each(F&& f) {
    for (Hook* h = head_.next_; h != &head_;) {
      Hook* following = h->next_;
      f(static_cast<T&>(*h));
      h = following;
    }
  }

 private:
  Hook head_;
};

}  // namespace weft
