// What has been begun is taken back where what follows throws, or is left.
#pragma once

#include <utility>

namespace weft {

template <class F>
class Undo {
 public:
  explicit Undo(F undo) : undo_(std::move(undo)) {}
  ~Undo() {
    if (!done_) undo_();
  }
  Undo(const Undo&) = delete;
  Undo& operator=(const Undo&) = delete;
  // It stays.
  void done() { done_ = true; }

 private:
  F undo_;
  bool done_ = false;
};

}  // namespace weft
