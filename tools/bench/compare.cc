#include "bench/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "bench/figures.h"
#include "bench/result_lines.h"
#include "kit/failure.h"

namespace weft::bench {
namespace {

// What is a part of the key where it is not as usual. The name of a case has its size and
// operation.
const nlohmann::json& usual_parameters() {
  static const nlohmann::json kUsual = {
      {"mtu", nullptr},
      {"offloads", "unchanged"},
      {"gbps", 0},
      {"loss", 0},
      {"fault", ""},
      {"piece", 0},
      {"wait", "event"},
      {"one_core", false},
      {"pinned", true},
      {"priority", false},
      {"mbps", nullptr},
      {"packet_bytes", nullptr},
      {"packets_per_write", 1},
      {"same_host", false},
  };
  return kUsual;
}

std::string key_of(const nlohmann::json& line) {
  std::string key =
      fmt::format("{} {} {}", line.at("path").get<std::string>(),
                  line.at("suite").get<std::string>(), line.at("case").get<std::string>());
  const nlohmann::json& parameters = line.at("parameters");
  for (const auto& [name, usual] : usual_parameters().items()) {
    const auto found = parameters.find(name);
    if (found == parameters.end() || *found == usual) continue;
    key +=
        fmt::format(" {}={}", name, found->is_string() ? found->get<std::string>() : found->dump());
  }
  return key;
}

std::string machine_of(const nlohmann::json& machine) {
  return fmt::format("{}, {} CPUs, Linux {}", machine.at("cpu").get<std::string>(),
                     machine.at("cpus").get<unsigned>(), machine.at("kernel").get<std::string>());
}

void add_line(Kept& kept, const nlohmann::json& line) {
  kept.machines.insert(machine_of(line.at("machine")));
  kept.versions.insert(line.at("version").get<std::string>());
  KeptCase& c = kept.cases[key_of(line)];
  if (line.contains("error")) {
    ++c.failed;
    return;
  }
  for (const auto& [name, value] : line.at("figures").items()) {
    if (value.is_number()) c.figures[name].emplace_back(value.get<double>());
  }
}

bool larger_is_better(const std::string& figure) {
  const FigureKind* kind = find_figure(figure);
  if (kind == nullptr) throw kit::Failure{fmt::format("there is no figure '{}'", figure)};
  return kind->better == FigureKind::Better::larger;
}

Verdict verdict_of(const Comparison& c, double least) {
  if (c.a_count < 2 || c.b_count < 2) return Verdict::unknown;
  const bool above = c.b.min > c.a.max;
  const bool below = c.b.max < c.a.min;
  if (!above && !below) return Verdict::same;
  if (std::abs(c.b.median - c.a.median) < least * std::abs(c.a.median)) return Verdict::same;
  return above == larger_is_better(c.figure) ? Verdict::better : Verdict::worse;
}

std::string spread_text(const Spread& s) {
  return fmt::format("{:.4g} ({:.4g}..{:.4g})", s.median, s.min, s.max);
}

nlohmann::json spread_json(const Spread& s, size_t count) {
  return {{"median", s.median}, {"min", s.min}, {"max", s.max}, {"repetitions", count}};
}

bool has_figure(const Kept& kept, const std::string& figure) {
  return std::any_of(kept.cases.begin(), kept.cases.end(), [&figure](const auto& entry) {
    return entry.second.figures.contains(figure);
  });
}

// Of a writer that was killed: it begins as a line does, and is none.
bool is_cut_off(const std::string& text) {
  return text.starts_with('{') && !nlohmann::json::accept(text);
}

// The library's words for a document that lacks something, without their number.
std::string reason_of(const std::string& text, const nlohmann::json::exception& error) {
  if (!nlohmann::json::accept(text)) return "it is no JSON";
  const std::string_view words = error.what();
  const size_t number = words.find("] ");
  return std::string{number == std::string_view::npos ? words : words.substr(number + 2)};
}

}  // namespace

Kept read_results(std::istream& in, const std::string& name) {
  Kept kept;
  size_t number = 0;
  for (std::string text; std::getline(in, text);) {
    ++number;
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (is_cut_off(text)) {
      kept.notes.push_back(
          fmt::format("{}:{}: is cut off, its writer was ended; passed over", name, number));
      continue;
    }
    try {
      const nlohmann::json line = nlohmann::json::parse(text);
      const std::string schema = line.at("schema");
      if (schema != kResultSchema) {
        throw kit::Failure{fmt::format("{}:{}: is of the schema '{}', and this weft reads '{}'",
                                       name, number, schema, kResultSchema)};
      }
      if (line.at("kind") == "repetition") add_line(kept, line);
    } catch (const nlohmann::json::exception& error) {
      throw kit::Failure{fmt::format("{}:{}: not a line that 'weft bench --jsonl' wrote: {}", name,
                                     number, reason_of(text, error))};
    }
  }
  return kept;
}

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::same:
      return "same";
    case Verdict::better:
      return "better";
    case Verdict::worse:
      return "worse";
    case Verdict::unknown:
      break;
  }
  return "unknown";
}

const std::vector<std::string>& usual_figures() {
  static const std::vector<std::string> kUsual = {"gbps", "tx_s_per_gb", "rx_s_per_gb",
                                                  "gbps_per_w", "rtt_us"};
  return kUsual;
}

std::vector<Comparison> compare(const Kept& a, const Kept& b,
                                const std::vector<std::string>& figures, double least) {
  std::vector<Comparison> result;
  for (const auto& [key, case_a] : a.cases) {
    const auto case_b = b.cases.find(key);
    if (case_b == b.cases.end()) continue;
    for (const std::string& figure : figures) {
      const auto in_a = case_a.figures.find(figure);
      const auto in_b = case_b->second.figures.find(figure);
      if (in_a == case_a.figures.end() || in_b == case_b->second.figures.end()) continue;
      const auto spread_a = spread_of(in_a->second);
      const auto spread_b = spread_of(in_b->second);
      Comparison c{.key = key,
                   .figure = figure,
                   .a = spread_a.value_or(Spread{}),
                   .b = spread_b.value_or(Spread{}),
                   .a_count = in_a->second.size(),
                   .b_count = in_b->second.size()};
      if (c.a.median != 0) c.ratio = c.b.median / c.a.median;
      c.verdict = verdict_of(c, least);
      result.push_back(c);
    }
  }
  return result;
}

std::vector<Broken> broken_in(const Kept& a, const Kept& b) {
  std::vector<Broken> broken;
  for (const auto& [key, case_a] : a.cases) {
    const auto in_b = b.cases.find(key);
    if (in_b == b.cases.end()) continue;
    const KeptCase& case_b = in_b->second;
    const bool always = case_b.figures.empty() && !case_a.figures.empty();
    if (case_b.failed > 0 && (case_a.failed == 0 || always)) {
      broken.push_back({.key = key, .a_failed = case_a.failed, .b_failed = case_b.failed});
    }
  }
  return broken;
}

void require_figures(const Kept& a, const Kept& b, const std::vector<std::string>& figures) {
  for (const std::string& figure : figures) {
    if (!has_figure(a, figure) && !has_figure(b, figure)) {
      throw kit::Failure{fmt::format("no line has a figure '{}'", figure)};
    }
  }
}

std::vector<std::string> only_in(const Kept& one, const Kept& other) {
  std::vector<std::string> keys;
  for (const auto& [key, kept] : one.cases) {
    if (!other.cases.contains(key)) keys.push_back(key);
  }
  return keys;
}

std::string as_text(const std::vector<Comparison>& comparisons) {
  size_t width = 4;
  for (const Comparison& c : comparisons) width = std::max(width, c.key.size());
  std::string text = fmt::format("  {:<{}}  {:<12}  {:>26}  {:>26}  {:>6}  B is\n", "case", width,
                                 "figure", "A (min..max)", "B (min..max)", "B/A");
  for (const Comparison& c : comparisons) {
    text += fmt::format("  {:<{}}  {:<12}  {:>26}  {:>26}  {:>6}  {}\n", c.key, width, c.figure,
                        spread_text(c.a), spread_text(c.b),
                        c.a.median != 0 ? fmt::format("{:.3f}", c.ratio) : "-", name_of(c.verdict));
  }
  return text;
}

nlohmann::json as_json(const std::vector<Comparison>& comparisons) {
  auto json = nlohmann::json::array();
  for (const Comparison& c : comparisons) {
    json.push_back({{"case", c.key},
                    {"figure", c.figure},
                    {"a", spread_json(c.a, c.a_count)},
                    {"b", spread_json(c.b, c.b_count)},
                    {"ratio", c.a.median != 0 ? nlohmann::json(c.ratio) : nlohmann::json(nullptr)},
                    {"verdict", name_of(c.verdict)}});
  }
  return json;
}

}  // namespace weft::bench
