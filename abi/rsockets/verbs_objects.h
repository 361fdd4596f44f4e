// Things of verbs with one owner.
#pragma once

#include <infiniband/verbs.h>

#include <memory>

namespace weft::rsockets {

struct FreeVerbs {
  void operator()(ibv_mr* p) const { (void)ibv_dereg_mr(p); }
  void operator()(ibv_cq* p) const { (void)ibv_destroy_cq(p); }
  void operator()(ibv_comp_channel* p) const { (void)ibv_destroy_comp_channel(p); }
};
template <class T>
using Verbs = std::unique_ptr<T, FreeVerbs>;

}  // namespace weft::rsockets
