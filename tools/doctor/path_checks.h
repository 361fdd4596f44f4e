// Judges the facts about the path to a peer: what would stop a connection to this peer. Pure.
#pragma once

#include <vector>

#include "doctor/finding.h"
#include "doctor/path_facts.h"

namespace weft::doctor {

// All of them. If the tests ended early, a finding names what was not tested.
std::vector<Finding> check_path(const PathFacts& facts);

// No doctor answers at the peer, for the reason `why`: nothing of the path was tested.
Finding path_not_tested(const std::string& peer, uint16_t port, const std::string& why);

}  // namespace weft::doctor
