// Faults on purpose (option fault, docs/faults.md): what the ports of this process have in common.
// FaultyDatagrams and FaultyStream do the work; without the option there are none of them, and a
// socket asks no more than whether it has one.
#pragma once

#include "base/fault_spec.h"
#include "base/time.h"
#include "stats/blocks.h"

namespace weft::port::faults {

// What this process is to do: nothing in most.
const FaultSpec& of_process();

// For a generator of random numbers of its own: sockets are numbered as they are made. Any thread.
uint64_t next_number();

// Where injected faults are counted from now on: the counters of the process (observe/). nullptr:
// nowhere. Any thread, but not while a socket is at work.
void count_in(stats::DeviceCounters* counters);
const stats::DeviceCounters* counts_in();
void count(stats::InjectedFault what, uint64_t n = 1);

// The clock that engines have.
Time now();

}  // namespace weft::port::faults
