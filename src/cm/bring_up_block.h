// The private data of the IB-style bring-up (spec/addressing 5.1), and the refusal with it.
#pragma once

#include <vector>

#include "cm/start_request.h"
#include "stats/reasons.h"
#include "wire/wfrc.h"

namespace weft::cm {

std::vector<std::byte> encode(const wire::Wfrc& block);

// Counts why, and answers `request` with `code`. The start is gone after this. Engine holder.
void refuse(engine::Token& token, StartRequest& start, const wire::Wfrc& request,
            wire::Wfrc::Code code, stats::BringUpRefusal why);

}  // namespace weft::cm
