// Options of rdma_set_option(3) that are weft's own (spec/abi 4.4). Another librdmacm answers
// ENOSYS, and a program goes on without.
#pragma once

#include "base/keepalive.h"

namespace weft {

// "weft": no level of rdma-core's.
inline constexpr int kWeftOptionLevel = 0x77656674;
// An int, 1 or 0: whether a connect asks again for a while where nobody listens. Without the option
// it does.
inline constexpr int kOptionAsksAgain = 0;
// An int, 1 or 0, before the id is bound: a listener serves RC alone, and leaves the UDP port of
// its number to others. Without the option it takes that port, too, for UC.
inline constexpr int kOptionOnlyRc = 1;
// A Keepalive, before or during a connection of RC over TCP: when it gives up a silent peer. A
// listener's is not its children's. Without the option it is Keepalive{}.
inline constexpr int kOptionKeepalive = 2;

}  // namespace weft
