// rpoll(3): poll(2) for rsockets and other descriptors together.
#pragma once

#include <poll.h>

#include "abi/rsockets/table.h"

namespace weft::rsockets {

// As poll(2): how many are ready, or -1 with errno. `timeout` in ms.
int poll(const Table& table, pollfd* fds, nfds_t count, int timeout);

}  // namespace weft::rsockets
