#include "doctor/finding.h"

#include <fmt/format.h>

#include <algorithm>

#include "kit/printable.h"

namespace weft::doctor {
namespace {

auto count_of(const std::vector<Finding>& findings, Severity severity) {
  return std::count_if(findings.begin(), findings.end(),
                       [severity](const Finding& f) { return f.severity == severity; });
}

std::string summary(const std::vector<Finding>& findings, Scope scope) {
  const auto problems = count_of(findings, Severity::problem);
  const auto notes = count_of(findings, Severity::note);
  const auto untested = count_of(findings, Severity::untested);
  std::string line = problems == 0   ? "no problem found"
                     : problems == 1 ? "1 problem"
                                     : fmt::format("{} problems", problems);
  if (problems == 0) line += untested == 0 ? "" : " in what was tested";
  if (problems == 0 && scope == Scope::this_host) line += " on this host";
  line += fmt::format(", {} note{}", notes, notes == 1 ? "" : "s");
  if (untested != 0) line += fmt::format("; {} not tested", untested);
  if (scope == Scope::this_host) line += "; the way to other hosts was not looked at (--peer)";
  return line + "\n";
}

}  // namespace

const char* name_of(Severity severity) {
  switch (severity) {
    case Severity::ok:
      return "ok";
    case Severity::note:
      return "note";
    case Severity::untested:
      return "untested";
    case Severity::problem:
      return "problem";
  }
  return "";
}

std::string as_text(const std::vector<Finding>& findings, Scope scope) {
  std::string text;
  for (const Finding& f : findings) {
    text +=
        fmt::format("{:<8} {:<11} {}\n", name_of(f.severity), f.check, kit::printable(f.sentence));
    if (!f.remedy.empty()) text += fmt::format("{:>20} -> {}\n", "", kit::printable(f.remedy));
  }
  return text + "\n" + summary(findings, scope);
}

nlohmann::json as_json(const std::vector<Finding>& findings) {
  auto list = nlohmann::json::array();
  for (const Finding& f : findings) {
    list.push_back({{"severity", name_of(f.severity)},
                    {"check", f.check},
                    {"sentence", f.sentence},
                    {"remedy", f.remedy}});
  }
  return {{"findings", list},
          {"problems", count_of(findings, Severity::problem)},
          {"notes", count_of(findings, Severity::note)},
          {"untested", count_of(findings, Severity::untested)}};
}

bool all_well(const std::vector<Finding>& findings) {
  return count_of(findings, Severity::problem) == 0 && count_of(findings, Severity::untested) == 0;
}

}  // namespace weft::doctor
