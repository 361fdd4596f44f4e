// The device as all Ids of the process share it: opened at the first need and left open, as
// librdmacm does.
#pragma once

#include <infiniband/verbs.h>

namespace weft::abi {

struct SharedDevice {
  ibv_context* verbs = nullptr;
  ibv_pd* pd = nullptr;  // for those that bring none
  uint8_t max_reads = 0;
};

// nullptr, with errno, when there is none.
const SharedDevice* shared_device();

}  // namespace weft::abi
