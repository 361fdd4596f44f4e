// Tests the path to a peer at which another doctor listens (listener.h).
#pragma once

#include "doctor/path_facts.h"
#include "port/address.h"

namespace weft::doctor {

// Takes some seconds; longer if packets vanish. Throws kit::Failure, with the reason, if no doctor
// answers; whatever fails later stands in `failed`.
PathFacts probe_path(const port::Address& to, const std::string& interface);

}  // namespace weft::doctor
