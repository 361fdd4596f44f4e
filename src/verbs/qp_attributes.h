// The attributes of ibv_modify_qp.
#pragma once

#include "verbs/types.h"

namespace weft::verbs {

class QueuePair;

// Are those that `mask` names possible for this queue pair on its device? Says why not.
Outcome<Ok> check_attributes(const QueuePair& qp, const QpAttributes& asked, uint32_t mask);
// Copies those that `mask` names, but for the state.
void store_attributes(QpAttributes& to, const QpAttributes& asked, uint32_t mask);

}  // namespace weft::verbs
