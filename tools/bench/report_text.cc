#include <fmt/format.h>

#include <algorithm>

#include "bench/report.h"

namespace weft::bench {
namespace {

constexpr const char* kNothing = "-";

// Three digits that count: 0.123, 1.23, 12.3, 123, 1234.
std::string number(double value) {
  const double size = value < 0 ? -value : value;
  if (size >= 100) return fmt::format("{:.0f}", value);
  if (size >= 10) return fmt::format("{:.1f}", value);
  if (size >= 1 || size == 0) return fmt::format("{:.2f}", value);
  return fmt::format("{:.3f}", value);
}

std::string median_of(const Series& series, double scale = 1) {
  const auto spread = spread_of(series);
  return spread ? number(spread->median * scale) : kNothing;
}

std::string range_of(const Series& series, double scale = 1) {
  const auto spread = spread_of(series);
  if (!spread) return kNothing;
  return fmt::format("{}..{}", number(spread->min * scale), number(spread->max * scale));
}

std::string of_baseline(const CaseResult& result, const std::vector<CaseResult>& cases,
                        const char* figure) {
  const CaseResult* baseline = find_case(cases, result.spec.baseline);
  if (baseline == nullptr) return kNothing;
  return median_of(ratios(result.series(figure), baseline->series(figure)));
}

using Row = std::vector<std::string>;

// The first column to the left, the others to the right, each as wide as its widest cell.
std::string table(const std::vector<Row>& rows) {
  std::vector<size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += i == 0 ? fmt::format("  {:<{}}", row[i], widths[i])
                     : fmt::format("  {:>{}}", row[i], widths[i]);
    }
    text += line + "\n";
  }
  return text;
}

// A headed table of the cases of a group; nothing when there are none.
template <class MakeRow>
std::string group_table(const Run& run, Group group, Row head, MakeRow&& make_row) {
  std::vector<Row> rows{std::move(head)};
  for (const CaseResult& result : run.cases) {
    if (result.spec.group == group) rows.push_back(make_row(result));
  }
  return rows.size() > 1 ? "\n" + table(rows) : std::string{};
}

std::string goodputs(const Run& run) {
  return group_table(
      run, Group::bandwidth,
      {"goodput", "Gb/s", "min..max", "of base", "lost %", "tx s/GB", "rx s/GB", "of base"},
      [&](const CaseResult& c) {
        return Row{c.spec.name,
                   median_of(c.series("gbps")),
                   range_of(c.series("gbps")),
                   of_baseline(c, run.cases, "gbps"),
                   median_of(c.series("lost_percent")),
                   median_of(c.series("tx_s_per_gb")),
                   median_of(c.series("rx_s_per_gb")),
                   of_baseline(c, run.cases, "rx_s_per_gb")};
      });
}

// A table of its own, for machines that have a meter.
std::string efficiencies(const Run& run) {
  if (!run.energy) return {};
  return group_table(run, Group::bandwidth,
                     {"energy", "W", "Gb/s per W", "min..max", "of base", "J/GB"},
                     [&](const CaseResult& c) {
                       return Row{c.spec.name,
                                  median_of(c.series("watts")),
                                  median_of(c.series("gbps_per_w")),
                                  range_of(c.series("gbps_per_w")),
                                  of_baseline(c, run.cases, "gbps_per_w"),
                                  median_of(c.series("joules_per_gb"))};
                     });
}

// MB/s and us/KB, as the paper on zero copy has them: 10^6 and 1024 bytes.
std::string socket_streams(const Run& run) {
  constexpr double kMegabytes = 125;        // of a gigabit
  constexpr double kUsPerKilobyte = 1.024;  // of a second for a gigabyte
  return group_table(
      run, Group::bandwidth,
      {"stream", "MB/s", "min..max", "of TCP", "tx s/GB", "rx s/GB", "us/KB", "of TCP"},
      [&](const CaseResult& c) {
        return Row{c.spec.name,
                   median_of(c.series("gbps"), kMegabytes),
                   range_of(c.series("gbps"), kMegabytes),
                   of_baseline(c, run.cases, "gbps"),
                   median_of(c.series("tx_s_per_gb")),
                   median_of(c.series("rx_s_per_gb")),
                   median_of(c.series("s_per_gb"), kUsPerKilobyte),
                   of_baseline(c, run.cases, "s_per_gb")};
      });
}

// Some lose messages, some do not; CPU is compared for both sides.
std::string mixed_streams(const Run& run) {
  return group_table(
      run, Group::bandwidth,
      {"stream", "Gb/s", "min..max", "of base", "lost %", "tx s/GB", "rx s/GB", "sum", "of base"},
      [&](const CaseResult& c) {
        return Row{c.spec.name,
                   median_of(c.series("gbps")),
                   range_of(c.series("gbps")),
                   of_baseline(c, run.cases, "gbps"),
                   median_of(c.series("lost_percent")),
                   median_of(c.series("tx_s_per_gb")),
                   median_of(c.series("rx_s_per_gb")),
                   median_of(c.series("s_per_gb")),
                   of_baseline(c, run.cases, "s_per_gb")};
      });
}

std::string neighbours(const Run& run) {
  return group_table(
      run, Group::bandwidth,
      {"streams beside TCP", "Gb/s", "TCP's", "of TCP's", "min..max", "slowest of mean"},
      [](const CaseResult& c) {
        return Row{c.spec.name,
                   median_of(c.series("gbps")),
                   median_of(c.series("beside_gbps")),
                   median_of(c.series("of_beside")),
                   range_of(c.series("of_beside")),
                   median_of(c.series("least_of_mean"))};
      });
}

std::string bandwidths(const Run& run) {
  if (!run.cases.empty() && run.cases.front().spec.flows > 0) return neighbours(run);
  if (run.suite == Suite::sdp) return socket_streams(run);
  if (run.suite == Suite::rd) return mixed_streams(run);
  if (run.suite != Suite::rc && run.suite != Suite::many && run.suite != Suite::chunk) {
    return goodputs(run);
  }
  return group_table(
      run, Group::bandwidth,
      {"bandwidth", "Gb/s", "min..max", "of TCP", "tx s/GB", "rx s/GB", "sum", "of TCP"},
      [&](const CaseResult& c) {
        return Row{c.spec.name,
                   median_of(c.series("gbps")),
                   range_of(c.series("gbps")),
                   of_baseline(c, run.cases, "gbps"),
                   median_of(c.series("tx_s_per_gb")),
                   median_of(c.series("rx_s_per_gb")),
                   median_of(c.series("s_per_gb")),
                   of_baseline(c, run.cases, "s_per_gb")};
      });
}

std::string peers(const Run& run) {
  return group_table(run, Group::rate,
                     {"to many peers", "M/s", "min..max", "CPU us each", "lost %",
                      "user bytes of a peer", "kernel's", "sockets"},
                     [](const CaseResult& c) {
                       return Row{c.spec.name,
                                  median_of(c.series("messages_per_s"), 1e-6),
                                  range_of(c.series("messages_per_s"), 1e-6),
                                  median_of(c.series("cpu_us_per_message")),
                                  median_of(c.series("lost_percent")),
                                  median_of(c.series("user_bytes_per_peer")),
                                  median_of(c.series("kernel_bytes_per_peer")),
                                  median_of(c.series("sockets"))};
                     });
}

std::string set_ups(const Run& run) {
  return group_table(run, Group::rate,
                     {"set-up", "thousand/s", "min..max", "of TCP", "CPU us each", "of TCP"},
                     [&](const CaseResult& c) {
                       return Row{c.spec.name,
                                  median_of(c.series("connections_per_s"), 1e-3),
                                  range_of(c.series("connections_per_s"), 1e-3),
                                  of_baseline(c, run.cases, "connections_per_s"),
                                  median_of(c.series("cpu_us_per_connection")),
                                  of_baseline(c, run.cases, "cpu_us_per_connection")};
                     });
}

std::string rates(const Run& run) {
  const auto is = [&](Operation o) {
    return !run.cases.empty() && run.cases.front().spec.operation == o;
  };
  if (is(Operation::peers)) return peers(run);
  if (is(Operation::setup)) return set_ups(run);
  return group_table(run, Group::rate, {"message rate", "M/s", "min..max", "CPU us each"},
                     [](const CaseResult& c) {
                       return Row{c.spec.name, median_of(c.series("messages_per_s"), 1e-6),
                                  range_of(c.series("messages_per_s"), 1e-6),
                                  median_of(c.series("cpu_us_per_message"))};
                     });
}

const char* base_of_latencies(Suite suite) {
  return suite == Suite::uc || suite == Suite::ud || suite == Suite::rd ? "of UDP" : "of TCP";
}

std::string latencies(const Run& run) {
  return group_table(run, Group::latency,
                     {"round trip", "p50 us", "min..max", base_of_latencies(run.suite), "p99 us",
                      "CPU us, initiator", "target"},
                     [&](const CaseResult& c) {
                       return Row{c.spec.name,
                                  median_of(c.series("rtt_us")),
                                  range_of(c.series("rtt_us")),
                                  of_baseline(c, run.cases, "rtt_us"),
                                  median_of(c.series("rtt_p99_us")),
                                  median_of(c.series("initiator_cpu_us")),
                                  median_of(c.series("target_cpu_us"))};
                     });
}

std::string rest(const Run& run) {
  std::vector<Row> rows{{"at rest", "median", "min..max"}};
  const auto add = [&](const char* name, const char* label, const char* figure) {
    const CaseResult* c = find_case(run.cases, name);
    if (c == nullptr) return;
    rows.push_back({label, median_of(c->series(figure)), range_of(c->series(figure))});
  };
  add("idle", "idle: CPU of the library, both ends, us/s", "idle_cpu_us_per_s");
  add("memory", "memory: user bytes of a queue pair", "user_bytes_per_qp");
  add("memory", "memory: kernel bytes of a queue pair", "kernel_bytes_per_qp");
  return rows.size() > 1 ? "\n" + table(rows) : std::string{};
}

std::string verdict(const Standing& standing) {
  const auto met = standing.met();
  if (!standing.value) return "not measured";
  if (!met) return kNothing;
  if (standing.reaches_aim().value_or(false)) return "yes, and the aim";
  return *met ? "yes" : "no";
}

std::string targets(const Run& run) {
  std::vector<Row> rows{{"target", "value", "min..max", "required", "aim", "met"}};
  for (const Standing& s : standings(run.cases, run.suite, run.path)) {
    const char* sign = s.target.at_most ? "<=" : ">=";
    const std::string unit = *s.target.unit != '\0' ? fmt::format(" {}", s.target.unit) : "";
    rows.push_back(
        {s.target.sentence, s.value ? number(s.value->median) + unit : kNothing,
         s.value ? fmt::format("{}..{}", number(s.value->min), number(s.value->max)) : kNothing,
         fmt::format("{} {}", sign, number(s.target.required)),
         s.target.aim ? number(*s.target.aim) : kNothing, verdict(s)});
  }
  return rows.size() > 1 ? "\n" + table(rows) : std::string{};
}

// The one that the baselines really ran with, for a host may refuse the wanted one.
std::string congestion_of(const Run& run) {
  for (const CaseResult& c : run.cases) {
    for (const Measurement& m : c.repetitions) {
      if (!m.initiator.congestion.empty()) return m.initiator.congestion;
    }
  }
  return kNothing;
}

const char* placement(const Run& run) {
  if (!run.pinned) return "not pinned";
  return run.one_core ? "together on one CPU" : "pinned to a CPU each";
}

std::string heading(const Run& run) {
  const Machine& m = run.machine;
  std::string text = fmt::format(
      "weft bench {}: {}, {} repetitions of {} s by turns, sides {}{}\n"
      "  library    {}\n"
      "  machine    {}, {} CPUs, Linux {}\n"
      "  load       {:.2f} before, {:.2f} after\n",
      name_of(run.suite), run.path, run.repetitions, number(run.seconds), placement(run),
      run.first ? ", before all other processes" : "", run.library, m.cpu, m.cpus, m.kernel,
      m.load_before, m.load_after);
  if (run.suite != Suite::uc && run.suite != Suite::ud) {
    text += fmt::format("  raw TCP    {}; the host's default is {}\n", congestion_of(run),
                        m.congestion);
  }
  text += "  energy     " +
          (run.energy
               ? fmt::format("{} by {}, of both sides together", run.energy->of, run.energy->source)
               : fmt::format("unmeasured: {}; {}", run.energy.error().reason,
                             run.energy.error().remedy)) +
          "\n";
  for (const auto& [name, value] : m.options) text += fmt::format("  {}={}\n", name, value);
  return text;
}

}  // namespace

std::string as_text(const Run& run) {
  std::string text = heading(run) + bandwidths(run) + efficiencies(run) + rates(run) +
                     latencies(run) + rest(run) + targets(run);
  const auto failed = failures(run.cases);
  if (!failed.empty()) text += "\n";
  if (run.ended_early) text += "\nA signal ended this run early: repetitions are missing.\n";
  for (const std::string& sentence : failed) text += sentence + "\n";
  return text;
}

std::vector<std::string> failures(const std::vector<CaseResult>& cases) {
  std::vector<std::string> sentences;
  for (const CaseResult& c : cases) {
    for (size_t i = 0; i < c.repetitions.size(); ++i) {
      if (c.repetitions[i].error.empty()) continue;
      sentences.push_back(
          fmt::format("failed: {}, repetition {}: {}", c.spec.name, i + 1, c.repetitions[i].error));
    }
  }
  return sentences;
}

}  // namespace weft::bench
