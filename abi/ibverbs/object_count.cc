#include "abi/ibverbs/object_count.h"

#include <new>

#include "abi/ibverbs/errors.h"

namespace weft::abi {

void Counted::refuse() const {
  (void)abi::refuse(ENOMEM,
                    "the device has no room for one more object: its %s is %u, and this program "
                    "has as many. Destroy what is not used, or open the device once more",
                    of_.limit_, of_.most_);
  throw std::bad_alloc{};
}

}  // namespace weft::abi
