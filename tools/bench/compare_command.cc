#include "bench/compare_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>

#include "bench/compare.h"
#include "bench/figures.h"
#include "cli/command_line.h"
#include "kit/failure.h"
#include "kit/json_text.h"

namespace weft::bench {
namespace {

constexpr int kWorse = 1;
constexpr int kNothingToCompare = 3;

struct CompareOptions {
  std::string a;
  std::string b;
  std::vector<std::string> figures;
  double least_percent = 0;
  bool json = false;
};

Kept read_file(const std::string& path) {
  if (std::error_code none; std::filesystem::is_directory(path, none)) {
    throw kit::Failure{path + " is a folder; name a file of it"};
  }
  std::ifstream in{path};
  if (!in) throw kit::system_failure(path);
  return read_results(in, path);
}

void print_where(const char* which, const std::string& path, const Kept& kept) {
  fmt::print("{}  {}: weft {}; {}\n", which, path, fmt::join(kept.versions, " and "),
             fmt::join(kept.machines, "; "));
}

nlohmann::json failed_json(const Kept& a, const Kept& b) {
  auto json = nlohmann::json::array();
  for (const auto& [which, kept] : {std::pair{"a", &a}, std::pair{"b", &b}}) {
    for (const auto& [key, c] : kept->cases) {
      if (c.failed > 0) json.push_back({{"in", which}, {"case", key}, {"repetitions", c.failed}});
    }
  }
  return json;
}

nlohmann::json broken_json(const std::vector<Broken>& broken) {
  auto json = nlohmann::json::array();
  for (const Broken& b : broken) json.push_back(b.key);
  return json;
}

void print_notes(const Kept& a, const Kept& b) {
  if (a.machines != b.machines) {
    fmt::print("note: A and B are of different machines or kernels\n");
  }
  for (const auto& [which, keys] : {std::pair{"A", only_in(a, b)}, std::pair{"B", only_in(b, a)}}) {
    if (!keys.empty()) fmt::print("only in {}: {}\n", which, fmt::join(keys, ", "));
  }
  for (const auto& [which, kept] : {std::pair{"A", &a}, std::pair{"B", &b}}) {
    for (const auto& [key, c] : kept->cases) {
      if (c.failed > 0) fmt::print("failed in {}: {}, {} repetitions\n", which, key, c.failed);
    }
  }
}

int run_compare(const CompareOptions& options) {
  const Kept a = read_file(options.a);
  const Kept b = read_file(options.b);
  for (const Kept* kept : {&a, &b}) {
    for (const std::string& note : kept->notes) {
      fmt::print(stderr, "weft bench compare: note: {}\n", note);
    }
  }
  require_figures(a, b, options.figures);
  const auto comparisons =
      compare(a, b, options.figures.empty() ? usual_figures() : options.figures,
              options.least_percent / 100);
  const auto broken = broken_in(a, b);
  if (options.json) {
    const nlohmann::json all = {{"a", {{"file", options.a}, {"machines", a.machines}}},
                                {"b", {{"file", options.b}, {"machines", b.machines}}},
                                {"only_in_a", only_in(a, b)},
                                {"only_in_b", only_in(b, a)},
                                {"failed", failed_json(a, b)},
                                {"broken_in_b", broken_json(broken)},
                                {"comparisons", as_json(comparisons)}};
    fmt::print("{}\n", kit::text_of(all, 2));
  } else {
    print_where("A", options.a, a);
    print_where("B", options.b, b);
    if (!comparisons.empty()) fmt::print("\n{}\n", as_text(comparisons));
    print_notes(a, b);
  }
  if (comparisons.empty() && broken.empty()) {
    fmt::print(stderr, "weft bench compare: no case is in both files\n");
    return kNothingToCompare;
  }
  const bool worse = std::any_of(comparisons.begin(), comparisons.end(),
                                 [](const Comparison& c) { return c.verdict == Verdict::worse; });
  // What B does not have may have been left out on purpose, or have ended weft bench: A says that
  // it can be measured.
  const bool missing = std::any_of(a.cases.begin(), a.cases.end(), [&b](const auto& entry) {
    return !entry.second.figures.empty() && !b.cases.contains(entry.first);
  });
  return worse || missing || !broken.empty() ? kWorse : 0;
}

// A reason, where the word is no figure.
std::string not_a_figure(const std::string& name) {
  if (find_figure(name) != nullptr) return {};
  return fmt::format("'{}' is no figure{}", name, cli::did_you_mean(name, figure_names()));
}

std::string list_of_figures() {
  std::string text;
  for (const FigureKind& kind : figure_kinds()) {
    const std::string unit = kind.unit.empty() ? "" : fmt::format(", {}", kind.unit);
    text += fmt::format("\n  {:<24}{}{}", kind.name, kind.meaning, unit);
  }
  return text;
}

// What cannot be read must not look like "worse".
int run_or_say_why(const CompareOptions& options) {
  try {
    return run_compare(options);
  } catch (const kit::Failure& failure) {
    fmt::print(stderr, "weft bench compare: {}\n", failure.what());
    return kNothingToCompare;
  }
}

}  // namespace

void add_compare_command(CLI::App& bench, int& status) {
  CLI::App* command = bench.add_subcommand(
      "compare", "Say what differs between two files of results by more than their spread");
  const auto options = std::make_shared<CompareOptions>();
  command->add_option("A", options->a, "Results of before, from --jsonl")->required();
  command->add_option("B", options->b, "Results of now")->required();
  command
      ->add_option(
          "--figures", options->figures,
          fmt::format("Which figures, of those below ({})", fmt::join(usual_figures(), ",")))
      ->check(CLI::Validator{not_a_figure, "", "figure"})
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      ->add_option("--least", options->least_percent,
                   "Differences of the medians below so many percent count as none")
      ->check(cli::between(0.0, 100.0))
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print JSON");
  cli::set_examples(
      *command,
      {{"weft bench compare before.jsonl after.jsonl", "what became better or worse"},
       {"weft bench compare --least 3 before.jsonl after.jsonl", "by 3 percent at least"}},
      "B is better or worse where the ranges from smallest to largest value do not touch.\n"
      "Exit status: 0 when nothing is worse, 1 when something is, or fails or is missing in B\n"
      "alone, 3 when there is nothing to compare. docs/report.md explains it.\n\n"
      "Figures:" +
          list_of_figures());
  command->callback([options, &status] { status = run_or_say_why(*options); });
}

}  // namespace weft::bench
