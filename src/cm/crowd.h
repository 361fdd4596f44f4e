// Which of the callers that wait has to go when there are too many.
#pragma once

#include <algorithm>
#include <span>

#include "base/gid.h"

namespace weft::cm {

// The oldest of the host that has the most, so that no host takes the places of the others
// (RFC 5042 section 6.4.1). `hosts` has one of each, oldest first, and is not empty.
inline size_t oldest_of_the_most(std::span<const Gid> hosts) {
  size_t found = 0;
  ptrdiff_t most = 0;
  for (size_t i = 0; i < hosts.size(); ++i) {
    const ptrdiff_t n = std::count(hosts.begin(), hosts.end(), hosts[i]);
    if (n > most) {
      most = n;
      found = i;
    }
  }
  return found;
}

}  // namespace weft::cm
