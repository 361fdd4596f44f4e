#include "bench/figures.h"

#include <algorithm>
#include <iterator>

namespace weft::bench {
namespace {

constexpr auto kLarger = FigureKind::Better::larger;
constexpr auto kSmaller = FigureKind::Better::smaller;

// A GB is 10^9 bytes of payload. CPU is that of both sides where no side is named; tx is the side
// that sends the data, rx the one that receives it.
constexpr FigureKind kKinds[] = {
    {"gbps", "Gb/s", kLarger, "payload; of streams that may lose messages what came"},
    {"offered_gbps", "Gb/s", kLarger, "payload that was sent, of streams that may lose messages"},
    {"lost_percent", "%", kSmaller, "share of the bytes or whole messages sent that did not come"},
    {"lost_datagrams_percent", "%", kSmaller, "the same of UC's datagrams"},
    // Of a Write the bytes that the lost datagrams had room for; of what comes whole or not at all
    // the messages that so many hit when each is lost by itself.
    {"missing_of_lost", "", kSmaller, "what UC misses, by what its lost datagrams explain"},
    {"messages_per_s", "1/s", kLarger, "messages"},
    {"beside_gbps", "Gb/s", kLarger, "streams of TCP on the same link, together"},
    {"of_beside", "", kLarger, "gbps by beside_gbps"},
    {"least_of_mean", "", kLarger, "the slowest stream by the mean of its kind"},
    {"tx_s_per_gb", "s/GB", kSmaller, "CPU of the sender"},
    {"rx_s_per_gb", "s/GB", kSmaller, "CPU of the receiver"},
    {"s_per_gb", "s/GB", kSmaller, "CPU"},
    {"tx_system_s_per_gb", "s/GB", kSmaller, "the part of tx_s_per_gb in the kernel"},
    {"rx_system_s_per_gb", "s/GB", kSmaller, "the part of rx_s_per_gb in the kernel"},
    {"tx_library_s_per_gb", "s/GB", kSmaller, "the part of tx_s_per_gb in the library's threads"},
    {"rx_library_s_per_gb", "s/GB", kSmaller, "the part of rx_s_per_gb in the library's threads"},
    {"softirq_s_per_gb", "s/GB", kSmaller, "CPU for network and timers, in no process"},
    {"switches_per_gb", "1/GB", kSmaller, "context switches"},
    {"target_thread_switches", "", kSmaller, "how often the target's own thread was scheduled"},
    {"cpu_us_per_message", "us", kSmaller, "CPU"},
    {"rtt_us", "us", kSmaller, "round trip, median"},
    {"rtt_p99_us", "us", kSmaller, "round trip, 99th percentile"},
    {"rtt_min_us", "us", kSmaller, "round trip, shortest"},
    {"rtt_mean_us", "us", kSmaller, "round trip, mean"},
    {"initiator_cpu_us", "us", kSmaller, "CPU of the initiator for each round trip"},
    {"target_cpu_us", "us", kSmaller, "CPU of the target for each round trip"},
    {"idle_cpu_us_per_s", "us/s", kSmaller, "CPU of the library's threads"},
    {"idle_switches_per_s", "1/s", kSmaller, "context switches"},
    {"user_bytes_per_qp", "bytes", kSmaller, "memory of the process for a queue pair"},
    {"kernel_bytes_per_qp", "bytes", kSmaller, "memory of the kernel for a queue pair"},
    {"bytes_per_qp", "bytes", kSmaller, "both"},
    {"user_bytes_per_peer", "bytes", kSmaller, "memory of the process for a peer"},
    {"kernel_bytes_per_peer", "bytes", kSmaller, "memory of the kernel for a peer"},
    {"sockets", "", kSmaller, "sockets that the peers take"},
    {"connections_per_s", "1/s", kLarger, "queue pairs made, connected, used and destroyed"},
    {"cpu_us_per_connection", "us", kSmaller, "CPU"},
    {"watts", "W", kSmaller, "power of the machine's parts that its meter is of"},
    {"gbps_per_w", "Gb/s/W", kLarger, "the paper's efficiency"},
    {"joules_per_gb", "J/GB", kSmaller, "energy"},
    {"steal_s", "s", kSmaller, "CPU taken by the host meanwhile"},
    {"initiator_peak_bytes", "bytes", kSmaller, "resident memory of the initiator at most"},
    {"target_peak_bytes", "bytes", kSmaller, "resident memory of the target at most"},
};

}  // namespace

std::span<const FigureKind> figure_kinds() {
  return kKinds;
}

const FigureKind* find_figure(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kKinds), std::end(kKinds),
                                         [name](const FigureKind& k) { return k.name == name; });
  return found != std::end(kKinds) ? found : nullptr;
}

std::vector<std::string> figure_names() {
  std::vector<std::string> names;
  for (const FigureKind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

}  // namespace weft::bench
