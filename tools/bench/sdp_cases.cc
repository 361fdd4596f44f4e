// The cases of sockets by SDP: streams over some connections, each with a thread on either side,
// and round trips; the same by each way.
#include <fmt/format.h>

#include <array>

#include "bench/cases.h"
#include "bench/sdp_modes.h"

namespace weft::bench {
namespace {

constexpr std::array<uint64_t, 9> kRoundTrips{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536};

// Adds the case once for each way, with the first as the baseline of the others.
void add_ways(std::vector<Spec>& all, Spec spec, const CaseChoice& choice) {
  const std::string rest = spec.name;
  for (const SdpMode& mode : sdp_modes()) {
    // Between namespaces nothing is shared, and the adapter goes over TCP in any case.
    if (choice.apart && mode.same_host) continue;
    spec.name = mode.name + rest;
    spec.sockets = mode.name;
    spec.same_host = mode.same_host;
    all.push_back(spec);
    if (spec.baseline.empty()) spec.baseline = spec.name;
  }
}

}  // namespace

std::vector<Spec> sdp_cases(const CaseChoice& choice) {
  std::vector<Spec> all;
  for (const uint32_t connections : choice.connections) {
    for (const uint64_t size : choice.sizes) {
      add_ways(all,
               {.name = fmt::format("/{}/{}", size_name(size), connections),
                .operation = connections == 1 ? Operation::tcp_stream : Operation::tcp_threads,
                .size = size,
                .crc = false,
                .connections = connections,
                .busy = connections},
               choice);
    }
  }
  for (const uint64_t size : kRoundTrips) {
    add_ways(all,
             {.name = fmt::format("-ping-pong/{}", size_name(size)),
              .group = Group::latency,
              .operation = Operation::tcp_ping_pong,
              .size = size,
              .crc = false},
             choice);
  }
  return all;
}

}  // namespace weft::bench
