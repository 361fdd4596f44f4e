// What a path can be like, for the campaign.
#pragma once

#include <span>

#include "tests/support/uc_traffic.h"

namespace weft::test {

struct Profile {
  const char* name;
  UcPairOptions (*pair)(uint64_t seed);
  UcTrafficOptions (*traffic)(uint64_t seed);
  // Losses know nothing of each other: next to no Read may fail over them (spec/wdp-uc 5.5).
  bool reads_finish = false;
  // The sessions come about by a handshake over the same path.
  bool handshake = false;
};

std::span<const Profile> profiles();

// The faults of `spec` in place of those that a profile has, and what may come of them.
void put_under(const FaultSpec& spec, UcPairOptions& pair, UcTrafficOptions& traffic);

}  // namespace weft::test
