// What a side tells while it runs: a view on the terminal, JSON lines, text for Prometheus.
//
// Above 400 lines with its source: three forms of the same figures.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "measure/energy_meter.h"

namespace weft::stream {

struct ReportOptions {
  std::string who = "weft stream";  // in front of what is said on stderr
  bool json = false;
  bool live = false;                          // on stderr, refreshed in place
  std::string prometheus;                     // a file, written anew each second
  std::vector<measure::EnergyChoice> energy;  // empty: the first that answers at once
  measure::EnergyMeter::Roots roots;          // where power is read
};

// A named figure; rates are made of counters by the reader, or of the last second here.
// NOLINTNEXTLINE(bugprone-exception-escape): of JSON, whose end does not throw
struct Snapshot {
  std::string side;    // "send" or "recv"
  double seconds = 0;  // since the start
  double cpu_s = 0;
  // From the first packet to the last one, of a side that waited for others; 0: all the time.
  double busy_seconds = 0;
  double idle_cpu_s = 0;                // before the first packet
  uint64_t bytes = 0;                   // of packets, all streams
  nlohmann::json facts;                 // of the whole side
  std::vector<nlohmann::json> streams;  // counters, each a flat object of numbers

  uint64_t bytes_of(size_t stream) const {
    return stream < streams.size() ? streams[stream].value("bytes", uint64_t{0}) : 0;
  }
};

// What it has to say is written by a thread of its own: a pipe that nobody reads, or a slow disk,
// holds up no packets.
class Report {
 public:
  explicit Report(ReportOptions options);
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;
  ~Report();  // NOLINT(bugprone-exception-escape): see there
  // Once a second. Left out while earlier ones wait.
  void show(const Snapshot& now);
  // An event worth a line, such as a gap. Dropped, and counted, while too many wait.
  void tell(const nlohmann::json& event);
  // Returns when all is written.
  void show_last(const Snapshot& now);

 private:
  void write_lines();
  void enqueue(std::function<void()> work);
  void stop();
  void show_now(Snapshot now);
  void tell_now(const nlohmann::json& event);
  void show_last_now(Snapshot now);
  void keep_for_prometheus(const Snapshot& now);
  void draw(const Snapshot& now);
  void say_latest();
  void erase();
  void write_prometheus(const Snapshot& now) const;
  nlohmann::json as_json(const Snapshot& now) const;
  nlohmann::json energy_json(double gigabits) const;
  std::string energy_text() const;
  std::string load_text(const Snapshot& now, double took) const;
  void add_shares(Snapshot& now, const std::optional<double>& watts) const;

  const ReportOptions options_;
  Snapshot before_;
  // Of the whole machine, as far as it tells it quickly. The writer's, then show_last()'s.
  measure::EnergyMeter energy_;
  unsigned lines_ = 0;  // of the view that stands on the terminal
  bool warned_ = false;
  std::mutex mutex_;  // of what follows, up to the blank line
  std::condition_variable more_;
  std::deque<std::function<void()>> queue_;
  uint64_t dropped_ = 0;  // events, because too many waited
  bool stopping_ = false;
  std::optional<Snapshot> latest_;  // until the last one is shown

  std::thread writer_;
};

// Makes a file of this name hold the text; readers see the old or the new one.
void write_atomically(const std::string& path, const std::string& text);

}  // namespace weft::stream
