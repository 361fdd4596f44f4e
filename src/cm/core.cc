#include "cm/core.h"

#include "cm/bring_up.h"

namespace weft::cm {

verbs::Adapter* adapter() {
  return verbs::Adapter::get([] { return std::unique_ptr<verbs::BringUp>{new BringUpService}; });
}

}  // namespace weft::cm
