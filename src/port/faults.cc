#include "port/faults.h"

#include <atomic>

#include "base/monotonic_clock.h"
#include "config/options.h"

namespace weft::port::faults {
namespace {

std::atomic<stats::DeviceCounters*> g_counters{nullptr};
std::atomic<uint64_t> g_number{0};

}  // namespace

const FaultSpec& of_process() {
  return config::options().fault;
}

uint64_t next_number() {
  return g_number.fetch_add(1, std::memory_order_relaxed);
}

void count_in(stats::DeviceCounters* counters) {
  g_counters.store(counters, std::memory_order_release);
}

const stats::DeviceCounters* counts_in() {
  return g_counters.load(std::memory_order_acquire);
}

void count(stats::InjectedFault what, uint64_t n) {
  stats::DeviceCounters* const counters = g_counters.load(std::memory_order_acquire);
  if (counters != nullptr) counters->fault_injected[static_cast<size_t>(what)].add_shared(n);
}

Time now() {
  return monotonic_now();
}

}  // namespace weft::port::faults
