// What a connection has of an adapter: things of verbs with one owner, and registered memory.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstdint>
#include <memory>

#include "base/bytes.h"

namespace weft::sdp {

struct FreeVerbs {
  void operator()(ibv_pd* p) const { (void)ibv_dealloc_pd(p); }
  void operator()(ibv_mr* p) const { (void)ibv_dereg_mr(p); }
  void operator()(ibv_comp_channel* p) const { (void)ibv_destroy_comp_channel(p); }
};
template <class T>
using Verbs = std::unique_ptr<T, FreeVerbs>;

// Buffers of one size in one registered piece of memory. Pages that no message reaches are never
// touched, so idle connections cost little.
class Buffers {
 public:
  Buffers() = default;
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  ~Buffers();

  // False with errno if there is no memory, or the adapter refuses it.
  bool allocate(ibv_pd* pd, uint32_t count, uint32_t size);
  bool allocated() const { return mr_ != nullptr; }
  uint32_t size() const { return size_; }
  uint32_t count() const { return count_; }
  std::byte* at(uint32_t index) const { return memory_ + static_cast<size_t>(index) * size_; }
  uint32_t key() const { return mr_->lkey; }

 private:
  std::byte* memory_ = nullptr;
  uint32_t count_ = 0;
  uint32_t size_ = 0;
  Verbs<ibv_mr> mr_;
};

}  // namespace weft::sdp
