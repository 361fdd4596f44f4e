// What is kept of a benchmark: a line of JSON for each repetition. docs/report.md has its words.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/report.h"

namespace weft::bench {

inline constexpr const char* kResultSchema = "weft-result/1";

// The time of day as "2026-01-31T12:00:00Z".
std::string utc_time(time_t when);

// `repetition` counts from 0; `time` is when it began.
nlohmann::json result_line(const Run& run, const Spec& spec, unsigned repetition,
                           const Measurement& m, const std::string& time);

// A file of such lines. They go behind those that are there, and each is in the file as soon as it
// is written, so that a run that is ended early leaves what it has.
class ResultFile {
 public:
  // Throws kit::Failure.
  explicit ResultFile(const std::string& path);
  void append(const nlohmann::json& line);

 private:
  std::string path_;
  std::ofstream out_;
};

}  // namespace weft::bench
