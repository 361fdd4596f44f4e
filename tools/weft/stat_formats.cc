// The counters of processes as text, JSON, Prometheus' text and Markdown.

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <vector>

#include "weft/stat.h"

namespace weft::tools {
namespace {

using observe::Snapshot;
using stats::Row;
using stats::Scope;
using Values = std::span<const uint64_t>;

std::string qpn_text(uint32_t qpn) {
  return fmt::format("{:#08x}", qpn);
}

std::string started_text(int64_t ns) {
  const std::time_t seconds = ns / 1'000'000'000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(seconds));
}

const char* plural(size_t n) {
  return n == 1 ? "" : "s";
}

// "received 1/1/00, tagged buffer: ..."
std::string terminate_text(uint32_t packed) {
  const auto t = stats::LastTerminate::unpack(packed);
  return fmt::format("{}, {}", t.received ? "received" : "sent",
                     wire::term_error(wire::index_of(t.error)).sentence);
}

nlohmann::json terminate_json(uint32_t packed) {
  if (packed == 0) return nullptr;
  const auto t = stats::LastTerminate::unpack(packed);
  return {{"received", t.received},
          {"error", wire::term_error(wire::index_of(t.error)).name},
          {"layer", static_cast<int>(t.error.layer)},
          {"etype", t.error.etype},
          {"code", t.error.code}};
}

void add_values(std::string& text, const char* indent, Values values, bool zeros) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] == 0 && !zeros) continue;
    const Row& row = stats::table()[i];
    text += fmt::format("{}{:<42} {:>20} {}\n", indent, row.name(), values[i], row.unit());
  }
}

const char* carrier_text(stats::Carrier carrier) {
  switch (carrier) {
    case stats::Carrier::memory:
      return " by memory";
    case stats::Carrier::datagrams:
      return " by UDP";
    case stats::Carrier::usual:
      break;
  }
  return "";
}
std::string peer_text(const std::optional<stats::Peer>& peer) {
  if (!peer) return "";
  return fmt::format(", peer {} port {}{}", peer->address.to_string(), peer->port,
                     carrier_text(peer->carrier));
}
nlohmann::json peer_json(const std::optional<stats::Peer>& peer) {
  if (!peer) return nullptr;
  return {{"address", peer->address.to_string()},
          {"port", peer->port},
          {"same_host", peer->carrier == stats::Carrier::memory},
          {"by_udp", peer->carrier == stats::Carrier::datagrams}};
}

// Of a counter that only grows. Where it is smaller now, it is another one's that began at 0.
uint64_t moved(Values before, Values now, size_t i) {
  const uint64_t old = i < before.size() && before[i] <= now[i] ? before[i] : 0;
  return now[i] - old;
}

// "838.9 MB/s", "12.5 messages/s"
std::string rate_text(double per_second, const Row& row) {
  const std::string unit = row.unit();
  if (unit != "bytes") return fmt::format("{:.1f} {}/s", per_second, unit);
  const char* const prefixes[] = {"", "k", "M", "G"};
  size_t prefix = 0;
  while (per_second >= 1000 && prefix < 3) {
    per_second /= 1000;
    ++prefix;
  }
  return fmt::format("{:.1f} {}B/s", per_second, prefixes[prefix]);
}

nlohmann::json rates_json(Values before, Values now, double seconds) {
  auto rates = nlohmann::json::object();
  for (size_t i = 0; i < now.size(); ++i) {
    const uint64_t more = moved(before, now, i);
    if (more > 0) rates[stats::table()[i].name()] = static_cast<double>(more) / seconds;
  }
  return rates;
}

// The same process as it was at an earlier look, or null. Another user's process writes its own
// memory, so that neither its start nor its number of engines need stay as they were.
const Snapshot* same_process(std::span<const CountingProcess> before, const CountingProcess& now) {
  const auto old = std::find_if(before.begin(), before.end(), [&](const CountingProcess& b) {
    return b.pid == now.pid && b.counters.started_ns == now.counters.started_ns &&
           b.counters.engines.size() == now.counters.engines.size();
  });
  return old == before.end() ? nullptr : &old->counters;
}
Values values_of(const Snapshot& s, uint32_t qpn) {
  const auto found = std::find_if(s.queue_pairs.begin(), s.queue_pairs.end(),
                                  [&](const auto& q) { return q.qpn == qpn; });
  return found == s.queue_pairs.end() ? Values{} : Values{found->values};
}

nlohmann::json values_json(Values values, bool zeros) {
  auto all = nlohmann::json::object();
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] != 0 || zeros) all[stats::table()[i].name()] = values[i];
  }
  return all;
}

std::string heading(const CountingProcess& p) {
  return fmt::format("{} {}, since {}, {} engine{}, {} queue pair{}\n", p.pid, p.program,
                     started_text(p.counters.started_ns), p.counters.engines.size(),
                     plural(p.counters.engines.size()), p.counters.queue_pairs.size(),
                     plural(p.counters.queue_pairs.size()));
}

struct Sample {
  std::string labels;
  Values values;
};

// All of one scope: "pid="1",program="x",engine="0"".
std::vector<Sample> samples(std::span<const CountingProcess> processes, Scope scope) {
  std::vector<Sample> all;
  for (const CountingProcess& p : processes) {
    const std::string labels =
        fmt::format("pid=\"{}\",program=\"{}\"", p.pid, label_text(p.program));
    const Snapshot& s = p.counters;
    switch (scope) {
      case Scope::device:
        all.push_back({labels, s.device});
        break;
      case Scope::engine:
        for (size_t e = 0; e < s.engines.size(); ++e) {
          all.push_back({fmt::format("{},engine=\"{}\"", labels, e), s.engines[e]});
        }
        break;
      case Scope::queue_pair:
        for (const Snapshot::QueuePair& qp : s.queue_pairs) {
          all.push_back(
              {fmt::format("{},engine=\"{}\",qpn=\"{}\"", labels, qp.engine, qpn_text(qp.qpn)),
               qp.values});
        }
        break;
    }
  }
  return all;
}

std::string prometheus_family(const std::string& metric, std::span<const Row> rows, size_t first,
                              const std::vector<Sample>& from, bool zeros) {
  std::string lines;
  for (const Sample& s : from) {
    for (size_t i = 0; i < rows.size(); ++i) {
      const uint64_t value = s.values[first + i];
      if (value == 0 && !zeros) continue;
      const std::string kind =
          rows[i].kind.empty() ? "" : fmt::format(",kind=\"{}\"", rows[i].kind);
      lines += fmt::format("{}{{{}{}}} {}\n", metric, s.labels, kind, value);
    }
  }
  if (lines.empty()) return lines;
  return fmt::format("# HELP {} {}\n# TYPE {} counter\n", metric, rows[0].about, metric) + lines;
}

void add_changes(std::string& text, const std::string& what, Values before, Values now,
                 double seconds) {
  std::string lines;
  for (size_t i = 0; i < now.size(); ++i) {
    const uint64_t more = moved(before, now, i);
    if (more == 0) continue;
    const Row& row = stats::table()[i];
    lines +=
        fmt::format("    {:<42} {:>20} {:>16}  {}\n", row.name(), now[i], fmt::format("+{}", more),
                    rate_text(static_cast<double>(more) / seconds, row));
  }
  if (!lines.empty()) text += "  " + what + "\n" + lines;
}

const char* name_of(Scope scope) {
  switch (scope) {
    case Scope::queue_pair:
      return "queue pair";
    case Scope::engine:
      return "engine";
    case Scope::device:
      break;
  }
  return "device";
}

}  // namespace

std::string label_text(const std::string& value) {
  std::string text;
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    if (c == '\n') {
      text += "\\n";
    } else {
      text += c;
    }
  }
  return text;
}

std::string counters_as_text(std::span<const CountingProcess> processes, bool zeros) {
  std::string text;
  for (const CountingProcess& p : processes) {
    const Snapshot& s = p.counters;
    text += heading(p) + "  device\n";
    add_values(text, "    ", s.device, zeros);
    // One engine alone counts what the device does.
    for (size_t e = 0; s.engines.size() > 1 && e < s.engines.size(); ++e) {
      text += fmt::format("  engine {}\n", e);
      add_values(text, "    ", s.engines[e], zeros);
    }
    for (const Snapshot::QueuePair& qp : s.queue_pairs) {
      text += fmt::format("  queue pair {} (engine {}){}\n", qpn_text(qp.qpn), qp.engine,
                          peer_text(qp.peer));
      add_values(text, "    ", qp.values, zeros);
      if (qp.last_terminate == 0) continue;
      text += fmt::format("    last Terminate: {}\n", terminate_text(qp.last_terminate));
    }
  }
  return text;
}

nlohmann::json counters_as_json(std::span<const CountingProcess> processes, bool zeros,
                                const LookBefore& before) {
  auto list = nlohmann::json::array();
  for (const CountingProcess& p : processes) {
    const Snapshot& s = p.counters;
    const Snapshot* const was = same_process(before.processes, p);
    nlohmann::json json = {{"pid", p.pid},
                           {"program", p.program},
                           {"started", started_text(s.started_ns)},
                           {"device", values_json(s.device, zeros)},
                           {"engines", nlohmann::json::array()},
                           {"queue_pairs", nlohmann::json::array()}};
    if (was != nullptr) {
      json["seconds"] = before.seconds;
      json["device_per_second"] = rates_json(was->device, s.device, before.seconds);
    }
    for (size_t e = 0; e < s.engines.size(); ++e) {
      nlohmann::json engine = {{"engine", e}, {"counters", values_json(s.engines[e], zeros)}};
      if (was != nullptr) {
        engine["per_second"] = rates_json(was->engines[e], s.engines[e], before.seconds);
      }
      json["engines"].push_back(std::move(engine));
    }
    for (const Snapshot::QueuePair& qp : s.queue_pairs) {
      nlohmann::json pair = {{"qpn", qpn_text(qp.qpn)},
                             {"engine", qp.engine},
                             {"peer", peer_json(qp.peer)},
                             {"last_terminate", terminate_json(qp.last_terminate)},
                             {"counters", values_json(qp.values, zeros)}};
      if (was != nullptr) {
        pair["per_second"] = rates_json(values_of(*was, qp.qpn), qp.values, before.seconds);
      }
      json["queue_pairs"].push_back(std::move(pair));
    }
    list.push_back(std::move(json));
  }
  return {{"processes", list}};
}

std::string counters_as_prometheus(std::span<const CountingProcess> processes, bool zeros) {
  std::string text;
  const std::span<const Row> rows = stats::table();
  const std::pair<Scope, const char*> scopes[] = {
      {Scope::device, "device"}, {Scope::engine, "engine"}, {Scope::queue_pair, "qp"}};
  for (const auto& [scope, prefix] : scopes) {
    const std::vector<Sample> from = samples(processes, scope);
    const size_t end = stats::row_count(scope);
    for (size_t first = 0; first < end;) {
      size_t next = first + 1;
      while (next < end && rows[next].family == rows[first].family) ++next;
      text += prometheus_family(fmt::format("weft_{}_{}_total", prefix, rows[first].family),
                                rows.subspan(first, next - first), first, from, zeros);
      first = next;
    }
  }
  return text;
}

std::string changes_as_text(const LookBefore& before, std::span<const CountingProcess> now) {
  std::string text;
  for (const CountingProcess& p : now) {
    const Snapshot* const was = same_process(before.processes, p);
    if (was == nullptr) continue;
    const Snapshot& is = p.counters;
    const double seconds = before.seconds;
    std::string lines;
    add_changes(lines, "device", was->device, is.device, seconds);
    for (size_t e = 0; is.engines.size() > 1 && e < is.engines.size(); ++e) {
      add_changes(lines, fmt::format("engine {}", e), was->engines[e], is.engines[e], seconds);
    }
    for (const Snapshot::QueuePair& qp : is.queue_pairs) {
      add_changes(lines, "queue pair " + qpn_text(qp.qpn) + peer_text(qp.peer),
                  values_of(*was, qp.qpn), qp.values, seconds);
    }
    text += heading(p) + lines;
  }
  return text;
}

std::string counters_as_markdown() {
  std::string text =
      "# Counters\n\n"
      "<!-- Written by scripts/gen-docs from `weft stat --markdown`; edit src/stats/table.cc. "
      "-->\n\n"
      "Each process that runs on weft counts what its device, its engines and its queue pairs do. "
      "Counters begin at 0 with the process and\n"
      "only grow; what a queue pair counted stays in the sums when it is gone. Names keep their "
      "meaning from version to version.\n\n"
      "    weft stat                      # all processes of this user; root sees everybody's\n"
      "    weft stat 4711 ib_write_bw     # by number, by name\n"
      "    weft stat --watch              # what moved, by how much, and how much a second\n"
      "    weft stat --watch 10 4711      # the same, each 10 seconds, of one process\n"
      "    weft stat --json --all         # for programs; --all has counters that stand at 0, too\n"
      "    weft stat --prometheus         # text format of Prometheus: `weft_device_NAME_total`, "
      "`weft_engine_...`, `weft_qp_...`\n\n"
      "Exit status: 0 when a process was found, 1 when none was, 2 for wrong options. Behind a "
      "point stands the kind; for Prometheus it is the\n"
      "label `kind`. What stands below for a queue pair is also known of its engine, and what "
      "stands for an engine also of the device, each as\n"
      "a sum. A queue pair shows its last Terminate besides, and the address and port of its peer "
      "while it is connected (TCP's port for RC, UDP's for UC; UD has no peer), and `by memory` "
      "where the two ends share memory ([spec/same-host.md](spec/same-host.md)), `by UDP` where RC "
      "goes by datagrams ([spec/wdp-rd.md](spec/wdp-rd.md)).\n\n"
      "`--watch` looks again and again, each second unless told otherwise, until the last process "
      "is gone or a signal comes (status 0). The first look prints all, those after it what moved: "
      "the value, what came to it, and that divided by the time between the two looks. With "
      "`--json` each look is a line. In it a process has `seconds`, the time since the look "
      "before, "
      "and `device_per_second`; engines and queue pairs have `per_second`. These hold the counters "
      "that moved, in the unit of the counter a second. `peer` is `{\"address\", \"port\", "
      "\"same_host\", \"by_udp\"}` or null.\n\n"
      "The numbers are in a memory file of the process (`/memfd:weft-counters` among its "
      "descriptors). Whoever may look into the process as a\n"
      "debugger may read them, also across PID namespaces; nothing is left of them when it ends, "
      "however it does. A child of fork(2) counts for\n"
      "itself from 0. `WEFT_COUNTERS=off` hides them, and so do programs that forbid debuggers "
      "(prctl(2), PR_SET_DUMPABLE); both count all the\n"
      "same. What the numbers of one engine and its queue pairs say was true at one moment.\n";
  for (const Scope scope : {Scope::queue_pair, Scope::engine, Scope::device}) {
    text += fmt::format(
        "\n## Of a{} {}\n\n| counter | unit | what one more of it means |\n|---|---|---|\n",
        scope == Scope::engine ? "n" : "", name_of(scope));
    for (const Row& row : stats::table()) {
      if (row.scope != scope) continue;
      text += fmt::format("| `{}` | {} | {} |\n", row.name(), row.unit(), row.sentence);
    }
  }
  return text;
}

}  // namespace weft::tools
