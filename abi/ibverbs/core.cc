#include "abi/ibverbs/core.h"

#include "abi/ibverbs/attributes.h"
#include "abi/ibverbs/objects.h"

namespace weft::abi {
namespace {

class ProcessCore final : public Core {
 public:
  cm::Service& connections() override { return cm::service(); }
  verbs::QueuePair* pair_of(ibv_qp* qp) override { return object(qp).core.get(); }
  verbs::Context& context_of(ibv_context* context) override { return object(context).core; }
  bool alive(ibv_context* context) override { return object(context).alive(); }
  void to_qp_attr(const verbs::QpAttributes& from, ibv_qp_attr& to) override {
    abi::to_qp_attr(from, to);
  }
  ibv_ah_attr to_ah_attr(const verbs::AddressVector& from) override {
    return abi::to_ah_attr(from);
  }
};

}  // namespace
}  // namespace weft::abi

void* weft_core_v1() {
  static weft::abi::ProcessCore core;
  return &core;
}
