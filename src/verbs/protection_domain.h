// A protection domain: what may be used together. It cannot be freed while something belongs to it.
#pragma once

#include <atomic>

namespace weft::verbs {

class Context;

class ProtectionDomain {
 public:
  explicit ProtectionDomain(Context& context) : context_(context) {}
  Context& context() const { return context_; }
  void add_ref() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void drop_ref() { refs_.fetch_sub(1, std::memory_order_relaxed); }
  bool in_use() const { return refs_.load(std::memory_order_relaxed) > 0; }

 private:
  Context& context_;
  std::atomic<int> refs_{0};
};

}  // namespace weft::verbs
