#include "bench/targets.h"

namespace weft::bench {
namespace {

struct Rule {
  Suite suite;
  const char* path;  // of the networks, or nullptr for every one
  Target target;
  const char* figure;
  const char* of;  // name of the case
  const char* to;  // name of the case that it is divided by, or nullptr
  double scale = 1;
};

constexpr Rule kRules[] = {
    {Suite::rc,
     nullptr,
     {"write_1m_bandwidth", "Write 1 MB, CRC off / raw TCP 1 MB, bandwidth", "", false, 0.90, 0.98},
     "gbps",
     "write/1M/no-crc",
     "tcp/1M"},
    {Suite::rc,
     nullptr,
     {"write_64k_bandwidth", "Write 64 KB, CRC on / raw TCP 64 KB, bandwidth", "", false, 0.90,
      1.05},
     "gbps",
     "write/64K/crc",
     "tcp/64K"},
    {Suite::rc,
     nullptr,
     {"write_cpu", "Write 1 MB, CRC on / raw TCP 1 MB, CPU of both sides per byte", "", true, 1.45,
      1.30},
     "s_per_gb",
     "write/1M/crc",
     "tcp/1M"},
    {Suite::rc,
     nullptr,
     {"crc_bandwidth", "Write 1 MB, CRC on / CRC off, bandwidth", "", false, 0.80, 0.88},
     "gbps",
     "write/1M/crc",
     "write/1M/no-crc"},
    {Suite::rc,
     nullptr,
     {"send_round_trip", "Send 64 B polling / raw TCP spinning, round trip", "", true, 1.20, 1.08},
     "rtt_us",
     "send-ping-pong/64/poll",
     "tcp-ping-pong/64/spin"},
    {Suite::rc,
     nullptr,
     {"write_round_trip", "Write 64 B with immediate, polling / raw TCP spinning, round trip", "",
      true, 1.20, 1.08},
     "rtt_us",
     "write-ping-pong/64/poll",
     "tcp-ping-pong/64/spin"},
    {Suite::rc,
     nullptr,
     {"write_rate", "Writes of 64 B by post list, CRC on", "M/s", false, 8, 15},
     "messages_per_s",
     "write-list/64/crc",
     nullptr,
     1e-6},
    {Suite::rc,
     nullptr,
     {"idle_cpu", "CPU of an idle connection, both ends", "us/s", true, 0, std::nullopt},
     "idle_cpu_us_per_s",
     "idle",
     nullptr},
    {Suite::rc,
     nullptr,
     {"idle_memory", "Memory of an idle queue pair, user and kernel", "B", true, 8192, 5120},
     "bytes_per_qp",
     "memory",
     nullptr},
    {Suite::rc,
     "loopback",
     {"write_4k_bandwidth", "Write 4 KB one by one, CRC on / raw TCP with a send each, bandwidth",
      "", false, 1.2, 2},
     "gbps",
     "write/4K/crc",
     "tcp/4K"},
    {Suite::rc,
     "veth",
     {"write_64k_no_crc_of_bare", "Write 64 KB, CRC off / bare loop that sends the same FPDUs", "",
      false, 0.8, 0.95},
     "gbps",
     "write/64K/no-crc",
     "bare/64K/no-crc"},
    {Suite::rc,
     "veth",
     {"write_64k_crc_of_bare", "Write 64 KB, CRC on / bare loop that sends the same FPDUs", "",
      false, 0.8, 0.95},
     "gbps",
     "write/64K/crc",
     "bare/64K/crc"},
    {Suite::rc,
     "veth",
     {"write_1m_no_crc_of_bare", "Write 1 MB, CRC off / bare loop that sends the same FPDUs", "",
      false, 0.8, 0.95},
     "gbps",
     "write/1M/no-crc",
     "bare/1M/no-crc"},
    {Suite::rc,
     "veth",
     {"write_1m_crc_of_bare", "Write 1 MB, CRC on / bare loop that sends the same FPDUs", "", false,
      0.8, 0.95},
     "gbps",
     "write/1M/crc",
     "bare/1M/crc"},
    {Suite::many,
     nullptr,
     {"many_bandwidth", "8 queue pairs, Write 64 KB, CRC on / 8 TCP sockets, bandwidth", "", false,
      1.2, 2},
     "gbps",
     "write/64K/8/crc",
     "tcp/64K/8"},
    {Suite::many,
     nullptr,
     {"idle_beside_busy", "10 busy queue pairs of 1000 / 10 of 10, CPU of both sides per byte", "",
      true, 1.05, 1},
     "s_per_gb",
     "write/64K/10-of-1000/crc",
     "write/64K/10/crc"},
    {Suite::uc,
     "veth",
     {"uc_bandwidth", "UC Write 1 MB / UDP datagrams of 8 KB, goodput", "", false, 4, 6},
     "gbps",
     "write/1M/flood",
     "udp/8K/flood"},
    {Suite::uc,
     "veth",
     {"uc_window_bandwidth", "the same with a window of 1 MB", "", false, 4, 6},
     "gbps",
     "write/1M/window",
     "udp/8K/window"},
    {Suite::uc,
     "veth",
     {"uc_receiver_cpu", "UC Write 1 MB / UDP datagrams of 8 KB, CPU of the receiver per byte", "",
      true, 0.45, 0.35},
     "rx_s_per_gb",
     "write/1M/flood",
     "udp/8K/flood"},
    {Suite::uc,
     "loopback",
     {"uc_receiver_cpu", "UC Write 1 MB / UDP datagrams of 64 KB, CPU of the receiver per byte", "",
      true, 1.6, 1.35},
     "rx_s_per_gb",
     "write/1M/window",
     "udp/65000/window"},
    {Suite::uc,
     nullptr,
     {"uc_thread", "Times that the receiving program's thread ran during UC Writes", "", true, 4,
      std::nullopt},
     "target_thread_switches",
     "write/1M/flood",
     nullptr},
    {Suite::uc,
     nullptr,
     {"uc_thread_inside", "the same, of a thread that waits in ibv_get_cq_event", "", true, 16,
      std::nullopt},
     "target_thread_switches",
     "write/1M/flood/get-cq-event",
     nullptr},
    {Suite::ud,
     nullptr,
     {"ud_round_trip", "UD 64 B polling / raw UDP spinning, round trip", "", true, 1.25, 1.10},
     "rtt_us",
     "ud-ping-pong/64/poll",
     "udp-ping-pong/64/poll"},
    {Suite::rd,
     nullptr,
     {"rd_bandwidth", "RC over UDP / UC, Write 1 MB, CRC off, bandwidth", "", false, 0.9,
      std::nullopt},
     "gbps",
     "rc-udp/1M",
     "uc/1M"},
    {Suite::rd,
     nullptr,
     {"rd_loss_bandwidth", "RC over UDP, Write 1 MB, 1 % of the datagrams lost / none", "", false,
      0.7, std::nullopt},
     "gbps",
     "rc-udp/1M/loss-1%",
     "rc-udp/1M"},
    {Suite::rd,
     nullptr,
     {"rd_rate", "Writes of 64 B by post list, RC over UDP / RC over TCP", "", false, 0.8,
      std::nullopt},
     "messages_per_s",
     "rc-udp-list/64",
     "rc-tcp-list/64"},
    {Suite::rd,
     nullptr,
     {"rd_round_trip", "64 B polling, RC over UDP / UD, round trip", "", true, 1.15, std::nullopt},
     "rtt_us",
     "rc-udp-ping-pong/64",
     "ud-ping-pong/64"},
    {Suite::rd,
     nullptr,
     {"rd_ud_round_trip", "64 B polling, reliable UD / UD, round trip", "", true, 1.15,
      std::nullopt},
     "rtt_us",
     "ud-ping-pong/64/reliable",
     "ud-ping-pong/64"},
    {Suite::rd,
     nullptr,
     {"rd_pair_bandwidth", "RD / UC, Write 1 MB, CRC off, bandwidth", "", false, 0.9, std::nullopt},
     "gbps",
     "rd/1M",
     "uc/1M"},
    {Suite::rd,
     nullptr,
     {"rd_pair_rate", "Writes of 64 B by post list, RD / RC over TCP", "", false, 0.8,
      std::nullopt},
     "messages_per_s",
     "rd-list/64",
     "rc-tcp-list/64"},
    {Suite::rd,
     nullptr,
     {"rd_pair_round_trip", "64 B polling, RD / UD, round trip", "", true, 1.15, std::nullopt},
     "rtt_us",
     "rd-ping-pong/64",
     "ud-ping-pong/64"},
    {Suite::sdp,
     "loopback",
     {"sdp_round_trip", "SDP 64 B / TCP, round trip", "", true, 0.5, std::nullopt},
     "rtt_us",
     "sdp-ping-pong/64",
     "tcp-ping-pong/64"},
    {Suite::sdp,
     "veth",
     {"sdp_wire_round_trip", "SDP 64 B / TCP, round trip", "", true, 1.1, std::nullopt},
     "rtt_us",
     "sdp-wire-ping-pong/64",
     "tcp-ping-pong/64"},
};

// Of the loss suite: of all cases of this operation the worst one counts.
struct LossRule {
  Operation operation;
  Target target;
  const char* figure;
};

constexpr LossRule kLossRules[] = {
    {Operation::write,
     {"uc_write_loss",
      "UC Write: bytes that are missing / bytes that the lost datagrams had room for", "", true, 1,
      std::nullopt},
     "missing_of_lost"},
    {Operation::write_immediate,
     {"uc_write_immediate_loss",
      "UC Write with immediate: messages missing / those that lost datagrams hit", "", true, 1.1,
      std::nullopt},
     "missing_of_lost"},
    {Operation::send,
     {"uc_send_loss", "UC Send: messages missing / those that lost datagrams hit", "", true, 1.1,
      std::nullopt},
     "missing_of_lost"},
    {Operation::read,
     {"uc_read_loss", "UC Read: bytes that are missing", "%", true, 0, std::nullopt},
     "lost_percent"},
};

std::optional<Spread> worst(const std::vector<CaseResult>& cases, const LossRule& rule) {
  std::optional<Spread> found;
  for (const CaseResult& c : cases) {
    if (c.spec.service != Service::uc || c.spec.operation != rule.operation) continue;
    const auto spread = spread_of(c.series(rule.figure));
    if (spread && (!found || spread->median > found->median)) found = spread;
  }
  return found;
}

bool reaches(const Target& target, double value, double limit) {
  return target.at_most ? value <= limit : value >= limit;
}

Series scaled(Series series, double scale) {
  for (auto& value : series) {
    if (value) *value *= scale;
  }
  return series;
}

}  // namespace

std::optional<bool> Standing::met() const {
  if (!value) return std::nullopt;
  return reaches(target, value->median, target.required);
}

std::optional<bool> Standing::reaches_aim() const {
  if (!value || !target.aim) return std::nullopt;
  return reaches(target, value->median, *target.aim);
}

std::vector<Standing> standings(const std::vector<CaseResult>& cases, Suite suite,
                                std::string_view path) {
  std::vector<Standing> result;
  for (const Rule& rule : kRules) {
    if (rule.suite != suite || (rule.path != nullptr && rule.path != path)) continue;
    Standing standing{.target = rule.target, .value = std::nullopt};
    const CaseResult* of = find_case(cases, rule.of);
    const CaseResult* to = rule.to != nullptr ? find_case(cases, rule.to) : nullptr;
    if (of != nullptr && (rule.to == nullptr || to != nullptr)) {
      Series series = scaled(of->series(rule.figure), rule.scale);
      if (to != nullptr) series = ratios(series, to->series(rule.figure));
      standing.value = spread_of(series);
    }
    result.push_back(standing);
  }
  if (suite != Suite::loss) return result;
  for (const LossRule& rule : kLossRules) {
    result.push_back({.target = rule.target, .value = worst(cases, rule)});
  }
  return result;
}

}  // namespace weft::bench
