#include "bench/work.h"

#include <algorithm>
#include <numeric>

#include "bench/method.h"

namespace weft::bench {

std::unique_ptr<Work> make_work(const Order& order) {
  if (may_lose(order.spec)) return make_lossy_stream(order);
  switch (order.spec.operation) {
    case Operation::tcp_stream:
      return order.spec.connections > 1 ? make_tcp_many(order) : make_tcp_stream(order);
    case Operation::tcp_threads:
      return make_tcp_threads(order);
    case Operation::tcp_fpdus:
      return make_tcp_fpdus(order);
    case Operation::tcp_ping_pong:
      return make_tcp_ping_pong(order);
    case Operation::unix_stream:
      return make_unix_stream(order);
    case Operation::unix_ping_pong:
      return make_unix_ping_pong(order);
    case Operation::line_ping_pong:
    case Operation::futex_ping_pong:
      return make_line_ping_pong(order);
    case Operation::pull:
      return make_pull(order);
    case Operation::udp_ping_pong:
      return make_udp_ping_pong(order);
    case Operation::write_ping_pong:
    case Operation::send_ping_pong:
      return make_verbs_ping_pong(order);
    case Operation::chunk:
      return make_verbs_chunks(order);
    case Operation::tcp_chunk:
      return make_tcp_chunks(order);
    case Operation::idle:
      return make_idle(order);
    case Operation::memory:
      return make_memory(order);
    case Operation::peers:
      return make_verbs_peers(order);
    case Operation::setup:
      return make_verbs_setup(order);
    case Operation::write:
    case Operation::read:
    case Operation::send:
    case Operation::write_immediate:
    case Operation::udp_stream:
      break;
  }
  return order.spec.connections > 1 ? make_verbs_many(order) : make_verbs_stream(order);
}

uint64_t warm_up_messages(const Spec& spec) {
  constexpr uint64_t kPingPongs = 1000;
  // Where packets are lost, or the rate is given, so much would take long.
  const bool slow = spec.gbps > 0 || spec.loss > 0 || spec.delay_ms > 0 || spec.link_mbps > 0 ||
                    !spec.fault.empty();
  const uint64_t bytes = slow ? uint64_t{1} << 20 : uint64_t{64} << 20;
  if (is_ping_pong(spec.operation)) return kPingPongs;
  if (spec.operation == Operation::memory) return 0;
  if (spec.operation == Operation::setup) return spec.connections;
  if (spec.operation == Operation::peers) return std::max<uint64_t>(2000, 4 * spec.connections);
  // Of many streams on one link: it is up, and the others wait.
  if (spec.flows > 0) return 2;
  const uint64_t wanted = std::clamp<uint64_t>(bytes / spec.size, 16, 20'000);
  return (wanted + spec.list - 1) / spec.list * spec.list;
}

std::map<std::string, double> RoundTrips::figures() {
  if (us_.empty()) return {};
  std::sort(us_.begin(), us_.end());
  return {{"rtt_us", percentile(us_, 0.5)},
          {"rtt_p99_us", percentile(us_, 0.99)},
          {"rtt_min_us", us_.front()},
          {"rtt_mean_us",
           std::accumulate(us_.begin(), us_.end(), 0.0) / static_cast<double>(us_.size())}};
}

}  // namespace weft::bench
