// The way of librdmacm.so.1 to the core, which lives in libibverbs.so.1: one symbol, and virtual
// functions from there on. Both libraries come from one build.
#pragma once

#include <infiniband/verbs.h>

#include "cm/service.h"

namespace weft::abi {

class Core {
 public:
  virtual cm::Service& connections() = 0;
  // What is behind the structs.
  virtual verbs::QueuePair* pair_of(ibv_qp* qp) = 0;
  virtual verbs::Context& context_of(ibv_context* context) = 0;
  // AbiContext::alive().
  virtual bool alive(ibv_context* context) = 0;
  virtual void to_qp_attr(const verbs::QpAttributes& from, ibv_qp_attr& to) = 0;
  virtual ibv_ah_attr to_ah_attr(const verbs::AddressVector& from) = 0;

 protected:
  ~Core() = default;
};

}  // namespace weft::abi

// Gives a weft::abi::Core*.
extern "C" void* weft_core_v1();
