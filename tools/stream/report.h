// What a side tells while it runs: a view on the terminal, JSON lines, text for Prometheus.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace weft::stream {

struct ReportOptions {
  bool json = false;
  bool live = false;       // on stderr, refreshed in place
  std::string prometheus;  // a file, written anew each second
};

// A named figure; rates are made of counters by the reader, or of the last second here.
struct Snapshot {
  std::string side;    // "send" or "recv"
  double seconds = 0;  // since the start
  double cpu_s = 0;
  uint64_t bytes = 0;                   // of packets, all streams
  nlohmann::json facts;                 // of the whole side
  std::vector<nlohmann::json> streams;  // counters, each a flat object of numbers
};

class Report {
 public:
  explicit Report(ReportOptions options) : options_(std::move(options)) {}
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;
  ~Report();
  // Once a second.
  void show(const Snapshot& now);
  // An event worth a line, such as a gap.
  void tell(const nlohmann::json& event);
  void show_last(const Snapshot& now);

 private:
  void draw(const Snapshot& now);
  void erase();
  void write_prometheus(const Snapshot& now) const;
  nlohmann::json as_json(const Snapshot& now) const;

  const ReportOptions options_;
  Snapshot before_;
  unsigned lines_ = 0;  // of the view that stands on the terminal
};

// Makes a file of this name hold the text; readers see the old or the new one.
void write_atomically(const std::string& path, const std::string& text);

}  // namespace weft::stream
