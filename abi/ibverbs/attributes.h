// Attributes of queue pairs and addresses, between Debian's structs and the core's.
#pragma once

#include "abi/ibverbs/objects.h"

namespace weft::abi {

Gid to_gid(const ibv_gid& gid);
verbs::AddressVector to_vector(const ibv_ah_attr& attr);
ibv_ah_attr to_ah_attr(const verbs::AddressVector& vector);

// False when a value that `mask` names does not exist in the enum it is of. What exists is the
// core's to judge.
bool to_attributes(const ibv_qp_attr& attr, uint32_t mask, verbs::QpAttributes& out);
void to_qp_attr(const verbs::QpAttributes& attributes, ibv_qp_attr& out);

ibv_qp_cap to_cap(const verbs::QpLimits& limits);
verbs::QpLimits to_limits(const ibv_qp_cap& cap);

}  // namespace weft::abi
