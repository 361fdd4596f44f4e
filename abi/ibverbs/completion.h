// Work completions as programs see them.
#pragma once

#include "abi/ibverbs/objects.h"

namespace weft::abi {

ibv_wc_status to_status(verbs::Status s);
// Network byte order for an immediate, the number itself for an invalidated rkey.
__be32 immediate_or_rkey(const verbs::Completion& c);
// Where a datagram came from, if that is not the port in `src_qp`; else 0. It travels in
// vendor_err, which means nothing in a completion without error.
uint16_t observed_port(const ibv_wc& wc);
void to_wc(const verbs::Completion& c, ibv_wc& out);

}  // namespace weft::abi
