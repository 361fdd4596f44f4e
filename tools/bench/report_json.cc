#include <set>

#include "bench/report.h"
#include "kit/or_null.h"

namespace weft::bench {
namespace {

nlohmann::json as_json(const Spread& spread) {
  return {{"median", spread.median}, {"min", spread.min}, {"max", spread.max}};
}

nlohmann::json repetition_json(const Spec& spec, const Measurement& m) {
  if (!m.error.empty()) return {{"error", m.error}};
  nlohmann::json json = figures_of(spec, m);
  if (m.initiator.messages > 0) json["messages"] = m.initiator.messages;
  if (!m.initiator.congestion.empty()) json["congestion"] = m.initiator.congestion;
  return json;
}

std::set<std::string> figure_names(const CaseResult& result) {
  std::set<std::string> names;
  for (const Measurement& m : result.repetitions) {
    for (const auto& [name, value] : figures_of(result.spec, m)) names.insert(name);
  }
  return names;
}

nlohmann::json case_json(const CaseResult& result, const std::vector<CaseResult>& cases) {
  auto repetitions = nlohmann::json::array();
  for (const Measurement& m : result.repetitions) {
    repetitions.push_back(repetition_json(result.spec, m));
  }
  auto summary = nlohmann::json::object();
  auto of_baseline = nlohmann::json::object();
  const CaseResult* baseline = find_case(cases, result.spec.baseline);
  for (const std::string& name : figure_names(result)) {
    const Series series = result.series(name);
    if (const auto spread = spread_of(series)) summary[name] = as_json(*spread);
    if (baseline == nullptr) continue;
    if (const auto spread = spread_of(ratios(series, baseline->series(name)))) {
      of_baseline[name] = as_json(*spread);
    }
  }
  nlohmann::json json = result.spec;
  json["repetitions"] = repetitions;
  json["summary"] = summary;
  json["of_baseline"] = of_baseline;
  return json;
}

nlohmann::json target_json(const Standing& standing) {
  nlohmann::json json = {{"id", standing.target.id},
                         {"sentence", standing.target.sentence},
                         {"unit", standing.target.unit},
                         {"better", standing.target.at_most ? "smaller" : "larger"},
                         {"required", standing.target.required},
                         {"aim", kit::or_null(standing.target.aim)},
                         {"value", nullptr},
                         {"met", kit::or_null(standing.met())},
                         {"reaches_aim", kit::or_null(standing.reaches_aim())}};
  if (standing.value) json["value"] = as_json(*standing.value);
  return json;
}

nlohmann::json energy_json(const measure::Measured<measure::SourceEnergy>& energy) {
  if (!energy) return {{"unmeasured", energy.error().reason}, {"remedy", energy.error().remedy}};
  return {{"source", energy->source}, {"of", energy->of}};
}

}  // namespace

nlohmann::json as_json(const Run& run) {
  auto cases = nlohmann::json::array();
  for (const CaseResult& result : run.cases) cases.push_back(case_json(result, run.cases));
  auto targets = nlohmann::json::array();
  for (const Standing& standing : standings(run.cases, run.suite, run.path))
    targets.push_back(target_json(standing));
  nlohmann::json json;
  json["benchmark"] = name_of(run.suite);
  json["path"] = run.path;
  json["library"] = run.library;
  json["repetitions"] = run.repetitions;
  json["seconds"] = run.seconds;
  json["pinned"] = run.pinned;
  json["one_core"] = run.one_core;
  json["priority"] = run.first;
  json["machine"] = run.machine;
  json["energy"] = energy_json(run.energy);
  json["cases"] = cases;
  json["targets"] = targets;
  json["failures"] = failures(run.cases);
  json["ended_early"] = run.ended_early;
  return json;
}

}  // namespace weft::bench
