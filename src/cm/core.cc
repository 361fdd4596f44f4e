#include "cm/core.h"

#include "cm/bring_up.h"

namespace weft::cm {

Result<verbs::Adapter*, port::SystemError> adapter() {
  return verbs::Adapter::get([] { return std::unique_ptr<verbs::BringUp>{new BringUpService}; });
}

}  // namespace weft::cm
