#include "stream/report.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "bench/failure.h"
#include "bench/usage.h"
#include "measure/report.h"

namespace weft::stream {
namespace {

constexpr unsigned kUsualRows = 24;
constexpr size_t kMostWaiting = 1000;  // lines

unsigned terminal_rows() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 4 ? size.ws_row
                                                                           : kUsualRows;
}

double gbps(uint64_t bytes, double seconds) {
  return seconds > 0 ? static_cast<double>(bytes) * 8e-9 / seconds : 0;
}

std::string seconds_text(double seconds) {
  const auto s = static_cast<uint64_t>(seconds);
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

uint64_t sum_of(const Snapshot& s, const char* name) {
  uint64_t sum = 0;
  for (const auto& stream : s.streams) sum += stream.value(name, uint64_t{0});
  return sum;
}

}  // namespace

void write_atomically(const std::string& path, const std::string& text) {
  const std::string fresh = path + ".new";
  FILE* file = std::fopen(fresh.c_str(), "w");
  if (file == nullptr) throw bench::system_failure(fresh);
  const bool written = std::fputs(text.c_str(), file) >= 0;
  if (std::fclose(file) != 0 || !written) throw bench::system_failure(fresh);
  if (std::rename(fresh.c_str(), path.c_str()) != 0) throw bench::system_failure(path);
}

Report::Report(ReportOptions options)
    : options_(std::move(options)), energy_({measure::EnergyChoice::first_quick}, options_.roots) {
  energy_.begin();
  writer_ = std::thread{[this] { write_lines(); }};
}

// NOLINTNEXTLINE(bugprone-exception-escape): the thread can be joined, and the lock taken
Report::~Report() {
  stop();
  erase();
}

void Report::stop() {
  {
    const std::lock_guard lock{mutex_};
    stopping_ = true;
  }
  more_.notify_one();
  if (writer_.joinable()) writer_.join();
}

void Report::enqueue(std::function<void()> work) {
  {
    const std::lock_guard lock{mutex_};
    if (queue_.size() >= kMostWaiting) return;
    queue_.push_back(std::move(work));
  }
  more_.notify_one();
}

void Report::write_lines() {
  std::unique_lock lock{mutex_};
  for (;;) {
    more_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    work();
    lock.lock();
  }
}

void Report::show(const Snapshot& now) {
  {
    const std::lock_guard lock{mutex_};
    if (!queue_.empty()) return;
  }
  enqueue([this, now] { show_now(now); });
}

void Report::tell(const nlohmann::json& event) {
  enqueue([this, event] { tell_now(event); });
}

void Report::show_last(const Snapshot& now) {
  stop();
  show_last_now(now);
}

// A full disk is no reason to lose packets.
void Report::keep_for_prometheus(const Snapshot& now) {
  if (options_.prometheus.empty()) return;
  try {
    write_prometheus(now);
  } catch (const bench::Failure& failure) {
    if (!std::exchange(warned_, true)) fmt::print(stderr, "weft stream: {}\n", failure.what());
  }
}

void Report::erase() {
  if (lines_ == 0) return;
  fmt::print(stderr, "\x1b[{}A\x1b[J", lines_);
  lines_ = 0;
}

nlohmann::json Report::as_json(const Snapshot& now) const {
  const double took = now.seconds - before_.seconds;
  nlohmann::json json = now.facts;
  json["side"] = now.side;
  json["seconds"] = now.seconds;
  json["bytes"] = now.bytes;
  json["gbps"] = gbps(now.bytes - before_.bytes, took);
  json["cpu_s"] = now.cpu_s;
  json["cpu"] = took > 0 ? (now.cpu_s - before_.cpu_s) / took : 0;
  json["resident"] = bench::resident_bytes();
  const auto watts = energy_.watts();
  json["watts"] = watts ? nlohmann::json(*watts) : nlohmann::json(nullptr);
  json["streams"] = now.streams;
  return json;
}

nlohmann::json Report::energy_json(double gigabits) const {
  const auto best = measure::best_of(energy_.results());
  if (!best) return measure::as_json(best.error());
  return {{"source", best->source},
          {"of", best->of},
          {"joules", *best->joules},
          {"watts", *best->watts},
          {"gbps_per_w", gigabits / *best->joules}};
}

// CPU of this side, power of the machine; and the share of a stream, where there are several.
std::string Report::load_text(const Snapshot& now, double took) const {
  const double cpu = took > 0 ? (now.cpu_s - before_.cpu_s) / took * 100 : 0.0;
  const auto watts = energy_.watts();
  std::string text = fmt::format("CPU {:.0f} %  ", cpu);
  text += watts ? fmt::format("{:.1f} W", *watts) : "power unmeasured";
  const auto streams = static_cast<double>(now.streams.size());
  if (streams < 2) return text;
  text += fmt::format("  a stream: {:.1f} %", cpu / streams);
  if (watts) text += fmt::format(", {:.2f} W", *watts / streams);
  return text;
}

void Report::show_now(const Snapshot& now) {
  energy_.sample();
  if (options_.json) {
    fmt::print("{}\n", as_json(now).dump());
    std::fflush(stdout);
  }
  if (options_.live) draw(now);
  keep_for_prometheus(now);
  before_ = now;
}

void Report::tell_now(const nlohmann::json& event) {
  if (options_.json) {
    fmt::print("{}\n", event.dump());
    std::fflush(stdout);
    return;
  }
  erase();
  std::string text;
  for (const auto& [name, value] : event.items()) {
    if (name != "event") text += fmt::format(" {} {}", name, value.dump());
  }
  fmt::print(stderr, "weft stream: {}:{}\n", event.value("event", ""), text);
}

void Report::draw(const Snapshot& now) {
  erase();
  const double took = now.seconds - before_.seconds;
  std::string text =
      fmt::format("weft stream {}  {}  {:.3f} Gb/s  {}\n", now.side, seconds_text(now.seconds),
                  gbps(now.bytes - before_.bytes, took), load_text(now, took));
  unsigned lines = 1;
  const unsigned most = terminal_rows() - 3;
  text +=
      now.side == "recv"
          ? fmt::format("{:>6} {:>9} {:>12} {:>10} {:>8} {:>8} {:>8} {:>10}  {}\n", "stream",
                        "Mb/s", "received", "missing", "late", "double", "overrun", "gap", "ring")
          : fmt::format("{:>6} {:>9} {:>12} {:>10}\n", "stream", "Mb/s", "sent", "skipped");
  ++lines;
  for (size_t i = 0; i < now.streams.size() && lines < most; ++i, ++lines) {
    const auto& s = now.streams[i];
    const uint64_t bytes = s.value("bytes", uint64_t{0});
    const uint64_t old =
        i < before_.streams.size() ? before_.streams[i].value("bytes", uint64_t{0}) : 0;
    const double rate = gbps(bytes - std::min(old, bytes), took) * 1000;
    if (now.side == "recv") {
      const double fill = s.value("fill", 0.0);
      const auto marks = static_cast<unsigned>(std::lround(std::clamp(fill, 0.0, 1.0) * 10));
      text += fmt::format("{:>6} {:>9.1f} {:>12} {:>10} {:>8} {:>8} {:>8} {:>10}  [{:<10}]\n", i,
                          rate, s.value("received", 0ULL), s.value("missing", 0ULL),
                          s.value("late", 0ULL), s.value("duplicate", 0ULL),
                          s.value("overrun", 0ULL), s.value("gap", 0ULL), std::string(marks, '#'));
    } else {
      text += fmt::format("{:>6} {:>9.1f} {:>12} {:>10}\n", i, rate, s.value("sent", 0ULL),
                          s.value("skipped", 0ULL));
    }
  }
  if (lines - 2 < now.streams.size()) {
    text += fmt::format("       ... and {} more; all: missing {}\n",
                        now.streams.size() - (lines - 2), sum_of(now, "missing"));
    ++lines;
  }
  fmt::print(stderr, "{}", text);
  std::fflush(stderr);
  lines_ = lines;
}

void Report::write_prometheus(const Snapshot& now) const {
  const std::string prefix = "weft_stream_" + now.side + "_";
  std::string text =
      fmt::format("# TYPE {0}cpu_seconds counter\n{0}cpu_seconds {1:.3f}\n", prefix, now.cpu_s);
  if (const auto watts = energy_.watts()) {
    text += fmt::format("# TYPE {0}watts gauge\n{0}watts {1:.3f}\n", prefix, *watts);
  }
  if (!now.streams.empty()) {
    for (const auto& [name, first] : now.streams.front().items()) {
      if (!first.is_number()) continue;
      text += fmt::format("# TYPE {}{} {}\n", prefix, name, name == "fill" ? "gauge" : "counter");
      for (size_t i = 0; i < now.streams.size(); ++i) {
        text += fmt::format("{}{}{{stream=\"{}\"}} {}\n", prefix, name, i,
                            now.streams[i].at(name).dump());
      }
    }
  }
  write_atomically(options_.prometheus, text);
}

void Report::show_last_now(const Snapshot& now) {
  erase();
  energy_.sample();
  keep_for_prometheus(now);
  before_ = {};
  nlohmann::json json = as_json(now);
  const double gb = static_cast<double>(now.bytes) * 1e-9;
  json["final"] = true;
  // Of the time in which packets passed, not of that in which one side waited for the other.
  const double busy = now.busy_seconds > 0 ? now.busy_seconds : now.seconds;
  const double cpu_s = now.cpu_s - now.idle_cpu_s;
  json["busy_seconds"] = busy;
  json["gbps"] = gbps(now.bytes, busy);
  json["energy"] = energy_json(8 * gb);
  json["cpu_s_per_gb"] = gb > 0 ? nlohmann::json(cpu_s / gb) : nlohmann::json(nullptr);
  if (options_.json) {
    fmt::print("{}\n", json.dump());
    std::fflush(stdout);
    return;
  }
  std::string text = fmt::format("weft stream {}: {:.3f} GB in {:.1f} s, {:.3f} Gb/s", now.side, gb,
                                 busy, json["gbps"].get<double>());
  if (gb > 0) text += fmt::format(", {:.3f} CPU s/GB", cpu_s / gb);
  std::vector<std::string> names;
  if (!now.streams.empty()) {
    for (const auto& [name, value] : now.streams.front().items()) {
      if (value.is_number_unsigned() && name != "bytes") names.push_back(name);
    }
  }
  for (const std::string& name : names) {
    if (const uint64_t sum = sum_of(now, name.c_str()); sum > 0) {
      text += fmt::format(", {} {}", name, sum);
    }
  }
  fmt::print(stderr, "{}\n", text);
}

}  // namespace weft::stream
