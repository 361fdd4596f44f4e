// Queries that programs reach through the verbs_context. `size`: bytes that the program's struct
// has.
#pragma once

#include "abi/ibverbs/objects.h"
#include "device/device.h"

namespace weft::abi {

// Errors: EINVAL (input mask, a struct smaller than ibv_device_attr).
int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* out, size_t size);
// Errors: EINVAL (port).
int query_port(ibv_context* context, uint8_t port, ibv_port_attr* out, size_t size);

// By the identity: RoCE has IP addresses as GIDs, iWARP and InfiniBand have plain ones.
ibv_gid_type gid_type(const device::Device& device);

}  // namespace weft::abi
