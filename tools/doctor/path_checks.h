// Judging what an examination found: what would stop a connection to this peer. Pure.
#pragma once

#include <vector>

#include "doctor/finding.h"
#include "doctor/path_facts.h"

namespace weft::doctor {

// All of them. Where the examination ended early, a finding names what was not tested.
std::vector<Finding> check_path(const PathFacts& facts);

// No doctor answers at the peer, for the reason `why`: nothing of the way was tested.
Finding path_not_tested(const std::string& peer, uint16_t port, const std::string& why);

}  // namespace weft::doctor
