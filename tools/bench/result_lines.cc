#include "bench/result_lines.h"

#include <array>
#include <ctime>
#include <filesystem>

#include "kit/failure.h"
#include "kit/json_text.h"

namespace weft::bench {
namespace {

nlohmann::json cpu_json(const SideResult& side) {
  return {{"user_s", side.user_s},
          {"system_s", side.system_s},
          {"total_s", side.cpu_s},
          {"library_s", side.library_cpu_s}};
}

nlohmann::json energy_json(const Run& run, const Measurement& m) {
  if (!run.energy) {
    return {{"unmeasured", run.energy.error().reason}, {"remedy", run.energy.error().remedy}};
  }
  if (!m.machine.watts) {
    return {{"unmeasured", "the meter gave no value for this repetition"},
            {"remedy", "a longer --seconds"}};
  }
  return {{"source", run.energy->source},
          {"of", run.energy->of},
          {"watts", *m.machine.watts},
          {"joules", *m.machine.watts * m.initiator.seconds}};
}

nlohmann::json parameters_json(const Run& run, const Spec& spec) {
  nlohmann::json json = spec;
  json.erase("name");
  json["seconds"] = run.seconds;
  json["mtu"] = run.mtu == 0 ? nlohmann::json(nullptr) : nlohmann::json(run.mtu);
  json["offloads"] = name_of(run.offloads);
  json["pinned"] = run.pinned;
  json["one_core"] = run.one_core;
  json["priority"] = run.first;
  return json;
}

// What a writer that was killed leaves.
bool ends_within_a_line(const std::string& path) {
  std::ifstream in{path, std::ios::ate | std::ios::binary};
  if (!in || in.tellg() <= 0) return false;
  in.seekg(-1, std::ios::end);
  return in.get() != '\n';
}

// A file that has something else would be of no use to anybody with results behind it.
void require_results(const std::string& path) {
  if (std::error_code none; !std::filesystem::is_regular_file(path, none)) return;
  std::ifstream in{path, std::ios::binary};
  std::string first;
  if (!std::getline(in, first)) return;
  const auto line = nlohmann::json::parse(first, nullptr, false);
  const bool cut_off = line.is_discarded() && first.starts_with('{');  // its writer was killed
  if (cut_off || (line.is_object() && line.contains("schema"))) return;
  throw kit::Failure{path + ": holds no results of 'weft bench'; name another file"};
}

}  // namespace

std::string utc_time(time_t when) {
  tm parts{};
  gmtime_r(&when, &parts);
  std::array<char, 32> text{};
  const size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text.data(), length};
}

nlohmann::json result_line(const Run& run, const Spec& spec, unsigned repetition,
                           const Measurement& m, const std::string& time) {
  nlohmann::json json = {{"schema", kResultSchema},
                         {"kind", "repetition"},
                         {"suite", name_of(run.suite)},
                         {"path", run.path},
                         {"case", spec.name},
                         {"repetition", repetition},
                         {"time", time},
                         {"version", run.version},
                         {"library", run.library},
                         {"machine", run.machine},
                         {"parameters", parameters_json(run, spec)}};
  json["machine"].erase("load_after");
  if (!m.error.empty()) {
    json["error"] = m.error;
    return json;
  }
  json["seconds"] = m.initiator.seconds;
  json["messages"] = m.initiator.messages;
  json["figures"] = figures_of(spec, m);
  json["cpu"] = {{"initiator", cpu_json(m.initiator)}, {"target", cpu_json(m.target)}};
  json["energy"] = energy_json(run, m);
  if (!m.initiator.congestion.empty()) json["congestion"] = m.initiator.congestion;
  return json;
}

ResultFile::ResultFile(const std::string& path) : path_(path) {
  require_results(path);
  out_.open(path, std::ios::app);
  if (!out_) throw kit::system_failure(path);
  if (ends_within_a_line(path)) out_ << '\n';
}

void ResultFile::append(const nlohmann::json& line) {
  out_ << kit::text_of(line) << '\n';
  out_.flush();
  if (!out_) throw kit::system_failure(path_);
}

}  // namespace weft::bench
