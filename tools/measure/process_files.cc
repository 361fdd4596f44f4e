#include "measure/process_files.h"

#include <cerrno>
#include <sstream>

#include "base/number_in.h"
#include "kit/kernel_files.h"
#include "measure/files.h"

namespace weft::measure {
namespace {

std::vector<pid_t> numbers_in(const std::string& folder) {
  std::vector<pid_t> numbers;
  for (const std::string& name : kit::names_in(folder)) {
    if (const auto number = number_in<pid_t>(name)) numbers.push_back(*number);
  }
  return numbers;
}

std::string path_of(const std::string& proc, pid_t pid) {
  return proc + "/" + std::to_string(pid);
}
std::string path_of(const std::string& proc, pid_t pid, pid_t thread) {
  return path_of(proc, pid) + "/task/" + std::to_string(thread);
}

}  // namespace

std::optional<StatLine> parse_stat(const std::string& text) {
  // "PID (NAME) STATE PPID ..."; a name may hold blanks and brackets.
  const size_t open = text.find('(');
  const size_t close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
  StatLine line;
  line.name = text.substr(open + 1, close - open - 1);
  std::istringstream words{text.substr(close + 1)};
  std::string skipped;
  words >> line.state >> line.parent;
  for (int field = 5; field < 14; ++field) words >> skipped;
  words >> line.user >> line.system >> line.children_user >> line.children_system;
  for (int field = 18; field < 22; ++field) words >> skipped;
  words >> line.start;
  if (!words) return std::nullopt;
  return line;
}

StatusLines parse_status(const std::string& text) {
  StatusLines lines;
  std::istringstream in{text};
  for (std::string line; std::getline(in, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string name = line.substr(0, colon);
    uint64_t value = 0;
    if (!(std::istringstream{line.substr(colon + 1)} >> value)) continue;
    if (name == "VmHWM") lines.peak_bytes = value * 1024;
    if (name == "VmRSS") lines.resident_bytes = value * 1024;
    if (name == "voluntary_ctxt_switches") lines.voluntary = value;
    if (name == "nonvoluntary_ctxt_switches") lines.involuntary = value;
  }
  return lines;
}

std::vector<pid_t> ProcessFiles::threads(pid_t pid) const {
  return numbers_in(path_of(proc_, pid) + "/task");
}

std::optional<StatLine> ProcessFiles::stat(pid_t pid) const {
  const auto text = read_text(path_of(proc_, pid) + "/stat");
  return text ? parse_stat(*text) : std::nullopt;
}

std::optional<StatLine> ProcessFiles::stat(pid_t pid, pid_t thread) const {
  const auto text = read_text(path_of(proc_, pid, thread) + "/stat");
  return text ? parse_stat(*text) : std::nullopt;
}

StatusLines ProcessFiles::status(pid_t pid, pid_t thread) const {
  const auto text = read_text(path_of(proc_, pid, thread) + "/status");
  return text ? parse_status(*text) : StatusLines{};
}

std::optional<double> ProcessFiles::exact_cpu_s(pid_t pid, pid_t thread) const {
  const auto text = read_text(path_of(proc_, pid, thread) + "/schedstat");
  double ns = 0;
  if (!text || !(std::istringstream{*text} >> ns)) return std::nullopt;
  return ns * 1e-9;
}

std::vector<pid_t> ProcessFiles::children(pid_t pid) const {
  std::vector<pid_t> children;
  for (const pid_t thread : threads(pid)) {
    const auto text = read_text(path_of(proc_, pid, thread) + "/children");
    if (!text) {
      // Gone, or a kernel without CONFIG_PROC_CHILDREN.
      if (text.error().number == ENOENT && stat(pid, thread)) return children_by_all(pid);
      continue;
    }
    std::istringstream words{*text};
    for (pid_t child = 0; words >> child;) children.push_back(child);
  }
  return children;
}

std::vector<pid_t> ProcessFiles::children_by_all(pid_t pid) const {
  std::vector<pid_t> children;
  for (const pid_t one : numbers_in(proc_)) {
    const auto line = stat(one);
    if (line && line->parent == pid) children.push_back(one);
  }
  return children;
}

}  // namespace weft::measure
