// What the two sides saw in one repetition of a case, and the figures that follow from it.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/method.h"
#include "bench/phase_meter.h"
#include "bench/spec.h"

namespace weft::bench {

// One side's account. The initiator posts or sends first; the target answers or stands still.
struct SideResult {
  uint64_t messages = 0;  // one way; the initiator alone counts them
  double seconds = 0;     // from the first post to the last completion
  double cpu_s = 0;       // user_s and system_s
  double user_s = 0;
  double system_s = 0;
  double library_cpu_s = 0;
  double switches = 0;
  double peak_bytes = 0;                // of resident memory, from the start on; 0: not told
  bool intact = true;                   // what arrived at this side is what was sent
  std::map<std::string, double> extra;  // figures that only some operations have
  std::string congestion;               // TCP congestion control, of raw TCP alone
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SideResult, messages, seconds, cpu_s, user_s, system_s,
                                   library_cpu_s, switches, peak_bytes, intact, extra, congestion)

// In `extra` of the initiator where streams share a link (Spec::flows): the sum of them, that of
// their neighbours, and of them the slowest one by their mean.
inline constexpr const char* kOwnGbps = "own_gbps";
inline constexpr const char* kBesideGbps = "beside_gbps";
inline constexpr const char* kLeastOfMean = "least_of_mean";

struct Measurement {
  std::string error;  // a sentence; empty when it went well
  SideResult initiator;
  SideResult target;
  PhaseOnMachine machine;
};

using Figures = std::map<std::string, double>;

// By the operation and the group:
//   gbps                 10^9 bits of payload a second
//   messages_per_s
//   tx_s_per_gb, rx_s_per_gb, s_per_gb   CPU seconds of the side that sends the data, of the one
//   that
//                        receives it, and of both, for each 10^9 bytes of payload
//   tx_system_s_per_gb, rx_system_s_per_gb     the part of it in the kernel
//   tx_library_s_per_gb, rx_library_s_per_gb   the part of it in threads that the library started
//   softirq_s_per_gb     what the CPUs of the machine did for network and timers, in no process
//   switches_per_gb      context switches of both sides
//   offered_gbps, lost_percent   of streams that may lose messages: what was sent, and the share of
//                        its bytes that did not come (of whole messages, where the program is told
//                        of them)
//   lost_datagrams_percent   of UC: share of the datagrams that the sender's library sent and the
//                        receiver's did not get
//   missing_of_lost      of UC Writes and Sends: what is missing, by what those datagrams explain.
//                        Of a Write the bytes that they had room for; of what comes whole or not
//                        at all the messages that so many hit when each is lost by itself
//   target_thread_switches   how often the target's own thread was scheduled while it ran
//   cpu_us_per_message   CPU of both sides, microseconds
//   rtt_us, rtt_p99_us, rtt_min_us, rtt_mean_us   round trip; rtt_us is the median
//   initiator_cpu_us, target_cpu_us               CPU of a side for each round trip
//   idle_cpu_us_per_s    CPU of the library's threads of both sides, microseconds a second
//   user_bytes_per_qp, kernel_bytes_per_qp, bytes_per_qp
//   watts, gbps_per_w, joules_per_gb   power of the machine's parts that its meter is of (both
//   sides
//                        are on it), the paper's efficiency, and energy; where it can be read
//   steal_s              taken by the host meanwhile
//   initiator_peak_bytes, target_peak_bytes    resident memory of a side
// Empty for a measurement that failed.
Figures figures_of(const Spec& spec, const Measurement& m);

// A case with its repetitions.
struct CaseResult {
  Spec spec;
  std::vector<Measurement> repetitions;

  // `figure` by repetition.
  Series series(const std::string& figure) const;
};

// The case of this name, or nullptr.
const CaseResult* find_case(const std::vector<CaseResult>& cases, const std::string& name);

}  // namespace weft::bench
