#include "stream/live_view.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace weft::stream {
namespace {

std::string seconds_text(double seconds) {
  const auto s = static_cast<uint64_t>(seconds);
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

// What there is seldom, and has no column.
std::string trouble_text(const Snapshot& s) {
  std::string text;
  const auto add = [&text](const char* name, uint64_t count) {
    if (count > 0) text += fmt::format("  {} {}", name, count);
  };
  add("datagrams_lost", s.facts.value("datagrams_lost", uint64_t{0}));
  add("kernel_drops", s.facts.value("kernel_drops", uint64_t{0}));
  add("invalid", sum_of(s, "invalid"));
  add("duplicate", sum_of(s, "duplicate"));
  return text;
}

// 79 columns, as long as the numbers have room in theirs.
std::string heading(const Snapshot& now) {
  if (now.side != "recv") {
    return fmt::format("{:>6} {:>9} {:>12} {:>10} {:>8} {:>8} {:>5} {:>5}", "stream", "Mb/s",
                       "sent", "skipped", "p99_us", "max_us", "CPU%", "W");
  }
  return fmt::format("{:>6} {:>8} {:>10} {:>8} {:>5} {:>7} {:>8} {:>5} {:>5} {:<8}", "stream",
                     "Mb/s", "received", "missing", "late", "overrun", "gap", "CPU%", "W", "ring");
}

// A stream's share in CPU and power.
std::string shares(const nlohmann::json& stream) {
  const double cpu = stream.value("cpu_share", 0.0) * 100;
  const auto watts = stream.find("watts_share");
  const bool metered = watts != stream.end() && watts->is_number();
  return fmt::format("{:>5.1f} {:>5}", cpu,
                     metered ? fmt::format("{:.1f}", watts->get<double>()) : "-");
}

std::string row(const Snapshot& now, size_t stream, double mbps) {
  const auto& s = now.streams[stream];
  const auto count = [&s](const char* name) { return s.value(name, uint64_t{0}); };
  if (now.side != "recv") {
    return fmt::format("{:>6} {:>9.1f} {:>12} {:>10} {:>8.0f} {:>8.0f} {}", stream, mbps,
                       count("sent"), count("skipped"), s.value("late_p99_us", 0.0),
                       s.value("late_max_us", 0.0), shares(s));
  }
  const double fill = std::clamp(s.value("fill", 0.0), 0.0, 1.0);
  const std::string marks(static_cast<size_t>(std::lround(fill * 6)), '#');
  return fmt::format("{:>6} {:>8.1f} {:>10} {:>8} {:>5} {:>7} {:>8} {} [{:<6}]", stream, mbps,
                     count("received"), count("missing"), count("late"), count("overrun"),
                     count("gap"), shares(s), marks);
}

}  // namespace

TerminalSize terminal_size() {
  winsize size{};
  TerminalSize found;
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0) return found;
  if (size.ws_row > 4) found.rows = size.ws_row;
  if (size.ws_col > 0) found.columns = size.ws_col;
  return found;
}

std::string live_view(const Snapshot& now, const Snapshot& before, const std::string& load,
                      TerminalSize size) {
  const double took = now.seconds - before.seconds;
  std::vector<std::string> lines;
  lines.push_back(fmt::format("weft stream {}  {}  {:.3f} Gb/s  {}", now.side,
                              seconds_text(now.seconds), gbps(now.bytes - before.bytes, took),
                              lateness_text(now)));
  lines.push_back("  " + load);
  if (std::string trouble = trouble_text(now); !trouble.empty()) {
    lines.push_back(std::move(trouble));
  }
  lines.push_back(heading(now));
  // The last line is the cursor's, and one may say how many streams have none.
  const size_t room = size.rows > lines.size() + 2 ? size.rows - lines.size() - 2 : 1;
  const size_t shown = std::min(now.streams.size(), room);
  for (size_t i = 0; i < shown; ++i) {
    const uint64_t bytes = now.bytes_of(i);
    lines.push_back(row(now, i, gbps(bytes - std::min(before.bytes_of(i), bytes), took) * 1000));
  }
  if (shown < now.streams.size()) {
    lines.push_back(fmt::format("       ... and {} more; all: missing {}",
                                now.streams.size() - shown, sum_of(now, "missing")));
  }
  lines.resize(std::min<size_t>(lines.size(), size.rows - 1));
  std::string text;
  // A line that goes on in the next row could not be erased.
  for (const std::string& line : lines) text += line.substr(0, size.columns) + '\n';
  return text;
}

double gbps(uint64_t bytes, double seconds) {
  return seconds > 0 ? static_cast<double>(bytes) * 8e-9 / seconds : 0;
}

std::string lateness_text(const Snapshot& s) {
  if (!s.facts.contains("late_us")) return "";
  std::string text = fmt::format("late p99 {:.0f} us", s.facts["late_us"].value("p99", 0.0));
  if (s.streams.size() < 2) return text;
  const auto late = [](const nlohmann::json& stream) { return stream.value("late_p99_us", 0.0); };
  const auto worst = std::max_element(
      s.streams.begin(), s.streams.end(),
      [&late](const auto& one, const auto& other) { return late(one) < late(other); });
  return text + fmt::format(" (stream {}: {:.0f} us)", worst - s.streams.begin(), late(*worst));
}

uint64_t sum_of(const Snapshot& s, const char* name) {
  uint64_t sum = 0;
  for (const auto& stream : s.streams) sum += stream.value(name, uint64_t{0});
  return sum;
}

}  // namespace weft::stream
