#include "bench/measurement.h"

#include <algorithm>
#include <cmath>

namespace weft::bench {
namespace {

std::optional<double> extra_of(const SideResult& side, const char* name) {
  const auto found = side.extra.find(name);
  return found != side.extra.end() ? std::optional{found->second} : std::nullopt;
}

// Is anything missing that the lost datagrams do not explain?
void add_loss(Figures& figures, const Spec& spec, const SideResult& sender, const SideResult& taker,
              double messages) {
  const auto sent = extra_of(sender, "datagrams_sent");
  const auto came = extra_of(taker, "datagrams_received");
  const auto whole = extra_of(taker, "received_messages");
  if (spec.operation == Operation::read || !sent || !came || !whole || *sent == 0) return;
  const double lost = std::max(0.0, *sent - *came);
  figures["lost_datagrams_percent"] = 100 * lost / *sent;
  const auto size = static_cast<double>(spec.size);
  const double each = std::max(1.0, std::round(*sent / messages));  // datagrams of a message
  if (spec.operation == Operation::write) {
    // One that carried as much as this would need one datagram less for a message.
    const double most = each > 1 ? size / (each - 1) : size;
    const double missing = std::max(0.0, messages * size - taker.extra.at("received_bytes"));
    figures["missing_of_lost"] = missing / (std::max(1.0, lost) * most);
    return;
  }
  const double hit = messages * (1 - std::pow(1 - lost / *sent, each));
  figures["missing_of_lost"] = std::max(0.0, messages - *whole) / std::max(1.0, hit);
}

// What counts is what came; the sender's work counts for what it sent.
Figures lossy_figures(const SideResult& taker, double sent, double seconds, double tx, double rx,
                      const SideResult& target) {
  const auto bytes = taker.extra.find("received_bytes");
  if (bytes == taker.extra.end()) return {};
  const double received = bytes->second * 1e-9;
  Figures figures{{"gbps", received * 8 / seconds},
                  {"offered_gbps", sent * 8 / seconds},
                  {"lost_percent", 100 * std::max(0.0, 1 - received / sent)},
                  {"tx_s_per_gb", tx / sent}};
  if (received > 0) {
    figures["rx_s_per_gb"] = rx / received;
    figures["s_per_gb"] = tx / sent + rx / received;
  }
  const auto switches = target.extra.find("own_switches");
  if (switches != target.extra.end()) figures["target_thread_switches"] = switches->second;
  return figures;
}

// Where the CPU of streams went, beyond user code of the caller's thread. Only for those whose
// bytes all come.
void add_parts(Figures& figures, const SideResult& tx, const SideResult& rx, double gigabytes) {
  figures["tx_system_s_per_gb"] = tx.system_s / gigabytes;
  figures["rx_system_s_per_gb"] = rx.system_s / gigabytes;
  figures["tx_library_s_per_gb"] = tx.library_cpu_s / gigabytes;
  figures["rx_library_s_per_gb"] = rx.library_cpu_s / gigabytes;
}

void add_machine(Figures& figures, const Measurement& m) {
  if (m.initiator.peak_bytes > 0) figures["initiator_peak_bytes"] = m.initiator.peak_bytes;
  if (m.target.peak_bytes > 0) figures["target_peak_bytes"] = m.target.peak_bytes;
  if (m.machine.steal_s) figures["steal_s"] = *m.machine.steal_s;
  if (m.machine.watts) figures["watts"] = *m.machine.watts;
  const auto gbps = figures.find("gbps");
  if (gbps == figures.end() || gbps->second <= 0) return;
  const double gigabytes = gbps->second / 8 * m.initiator.seconds;
  if (m.machine.softirq_s) figures["softirq_s_per_gb"] = *m.machine.softirq_s / gigabytes;
  if (!m.machine.watts) return;
  figures["gbps_per_w"] = gbps->second / *m.machine.watts;
  figures["joules_per_gb"] = 8 * *m.machine.watts / gbps->second;
}

Figures stream_figures(const Spec& spec, const Measurement& m) {
  const SideResult& i = m.initiator;
  const SideResult& t = m.target;
  const auto messages = static_cast<double>(i.messages);
  const double gigabytes = messages * static_cast<double>(spec.size) * 1e-9;
  if (gigabytes == 0 || i.seconds == 0) return {};
  const bool initiator_sends = !is_fetched(spec.operation);
  const double tx = initiator_sends ? i.cpu_s : t.cpu_s;
  const double rx = initiator_sends ? t.cpu_s : i.cpu_s;
  if (may_lose(spec)) {
    Figures lossy = lossy_figures(initiator_sends ? t : i, gigabytes, i.seconds, tx, rx, t);
    if (!lossy.empty()) add_loss(lossy, spec, i, t, messages);
    return lossy;
  }
  Figures figures{{"gbps", gigabytes * 8 / i.seconds},
                  {"messages_per_s", messages / i.seconds},
                  {"tx_s_per_gb", tx / gigabytes},
                  {"rx_s_per_gb", rx / gigabytes},
                  {"s_per_gb", (tx + rx) / gigabytes},
                  {"switches_per_gb", (i.switches + t.switches) / gigabytes},
                  {"cpu_us_per_message", (tx + rx) * 1e6 / messages}};
  add_parts(figures, initiator_sends ? i : t, initiator_sends ? t : i, gigabytes);
  if (const auto beside = extra_of(i, kBesideGbps); beside && *beside > 0) {
    figures["gbps"] = *extra_of(i, kOwnGbps);
    figures["beside_gbps"] = *beside;
    figures["of_beside"] = figures["gbps"] / *beside;
    figures["least_of_mean"] = *extra_of(i, kLeastOfMean);
  }
  return figures;
}

Figures ping_pong_figures(const Measurement& m) {
  const auto round_trips = static_cast<double>(m.initiator.messages);
  if (round_trips == 0) return {};
  Figures figures(m.initiator.extra.begin(), m.initiator.extra.end());
  figures["initiator_cpu_us"] = m.initiator.cpu_s * 1e6 / round_trips;
  figures["target_cpu_us"] = m.target.cpu_s * 1e6 / round_trips;
  return figures;
}

Figures idle_figures(const Measurement& m) {
  if (m.initiator.seconds == 0) return {};
  return {
      {"idle_cpu_us_per_s",
       (m.initiator.library_cpu_s + m.target.library_cpu_s) * 1e6 / m.initiator.seconds},
      {"idle_switches_per_s", (m.initiator.switches + m.target.switches) / m.initiator.seconds}};
}

// Each end sees its own memory; the costlier one counts.
Figures memory_figures(const Measurement& m) {
  Figures figures;
  for (const char* name : {"user_bytes_per_qp", "kernel_bytes_per_qp"}) {
    const auto a = m.initiator.extra.find(name);
    const auto b = m.target.extra.find(name);
    if (a == m.initiator.extra.end() || b == m.target.extra.end()) return {};
    figures[name] = std::max(a->second, b->second);
  }
  figures["bytes_per_qp"] = figures["user_bytes_per_qp"] + figures["kernel_bytes_per_qp"];
  return figures;
}

// What a peer costs the one who has many.
Figures peers_figures(const Measurement& m) {
  if (m.initiator.seconds == 0) return {};
  const auto messages = static_cast<double>(m.initiator.messages);
  Figures figures{{"messages_per_s", messages / m.initiator.seconds},
                  {"cpu_us_per_message", (m.initiator.cpu_s + m.target.cpu_s) * 1e6 / messages}};
  for (const char* name : {"user_bytes_per_peer", "kernel_bytes_per_peer", "sockets"}) {
    if (const auto value = extra_of(m.initiator, name)) figures[name] = *value;
  }
  if (const auto came = extra_of(m.target, "received")) {
    figures["lost_percent"] = 100 * std::max(0.0, 1 - *came / messages);
  }
  return figures;
}

Figures setup_figures(const Measurement& m) {
  if (m.initiator.seconds == 0) return {};
  const auto connections = static_cast<double>(m.initiator.messages);
  return {{"connections_per_s", connections / m.initiator.seconds},
          {"cpu_us_per_connection", (m.initiator.cpu_s + m.target.cpu_s) * 1e6 / connections}};
}

Figures case_figures(const Spec& spec, const Measurement& m) {
  if (is_ping_pong(spec.operation)) return ping_pong_figures(m);
  switch (spec.operation) {
    case Operation::idle:
      return idle_figures(m);
    case Operation::memory:
      return memory_figures(m);
    case Operation::peers:
      return peers_figures(m);
    case Operation::setup:
      return setup_figures(m);
    default:
      return stream_figures(spec, m);
  }
}

}  // namespace

Figures figures_of(const Spec& spec, const Measurement& m) {
  if (!m.error.empty()) return {};
  Figures figures = case_figures(spec, m);
  if (!figures.empty()) add_machine(figures, m);
  return figures;
}

Series CaseResult::series(const std::string& figure) const {
  Series series;
  for (const Measurement& m : repetitions) {
    const Figures figures = figures_of(spec, m);
    const auto found = figures.find(figure);
    series.push_back(found != figures.end() ? std::optional{found->second} : std::nullopt);
  }
  return series;
}

const CaseResult* find_case(const std::vector<CaseResult>& cases, const std::string& name) {
  const auto found = std::find_if(cases.begin(), cases.end(),
                                  [&](const CaseResult& c) { return c.spec.name == name; });
  return found != cases.end() ? &*found : nullptr;
}

}  // namespace weft::bench
