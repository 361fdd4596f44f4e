// Work completions as programs see them.
#pragma once

#include "abi/ibverbs/objects.h"

namespace weft::abi {

ibv_wc_status to_status(verbs::Status s);
// Network byte order for an immediate, the number itself for an invalidated rkey.
__be32 immediate_or_rkey(const verbs::Completion& c);
void to_wc(const verbs::Completion& c, ibv_wc& out);

}  // namespace weft::abi
