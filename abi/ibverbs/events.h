// What objects do about their events when they go away.
#pragma once

#include "abi/ibverbs/objects.h"

namespace weft::abi {

// Waits until the program has acknowledged what it was given. It may acknowledge more than that:
// fio counts completions instead of events (spec/abi 4.3).
void wait_for_acknowledgements(pthread_mutex_t& mutex, pthread_cond_t& changed,
                               const uint32_t& acknowledged, uint32_t delivered);

// Drops the events about `object` that the program has not fetched; from now on none is about it.
void forget_events(verbs::Context& context, const void* object);

}  // namespace weft::abi
