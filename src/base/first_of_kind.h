// What a program is told once for each kind.
#pragma once

#include <mutex>
#include <new>
#include <set>
#include <string>
#include <string_view>

namespace weft {

// Never destroyed in what it keeps: exit handlers of programs are told things, too. Any thread.
class FirstOfKind {
 public:
  // Is this the first time for `kind`? No, where that cannot be found out: without memory, while
  // another thread asks, and for ever in a child of fork(2) where another thread was asking.
  bool operator()(std::string_view kind) try {
    const std::unique_lock guard{lock_, std::try_to_lock};
    if (!guard.owns_lock()) return false;
    if (seen_ == nullptr) seen_ = new std::set<std::string, std::less<>>;
    return !seen_->contains(kind) && seen_->emplace(kind).second;
  } catch (const std::bad_alloc&) {
    return false;
  }

 private:
  std::mutex lock_;
  std::set<std::string, std::less<>>* seen_ = nullptr;
};

}  // namespace weft
