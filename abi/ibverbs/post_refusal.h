// Sentences for requests that a queue pair does not take: which limit they break, with both
// numbers.
#pragma once

#include "abi/ibverbs/objects.h"

namespace weft::abi {

// ENOMEM of a full queue, which is no mistake and has no sentence; else EINVAL.
int refuse_send(const ibv_qp& qp, const verbs::PostFault& fault);
int refuse_receive(const ibv_qp& qp, const verbs::PostFault& fault);

}  // namespace weft::abi
