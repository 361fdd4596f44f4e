#include "weft/stat_processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>

#include "base/number_in.h"
#include "kit/kernel_files.h"
#include "kit/printable.h"

namespace weft::tools {
namespace {

std::optional<pid_t> as_pid(const std::string& text) {
  const auto pid = number_in<pid_t>(text);
  return pid && *pid > 0 ? pid : std::nullopt;
}

std::vector<pid_t> all_processes() {
  std::vector<pid_t> all;
  for (const std::string& name : kit::names_in("/proc")) {
    if (const auto pid = as_pid(name)) all.push_back(*pid);
  }
  std::sort(all.begin(), all.end());
  return all;
}

bool is_wanted(pid_t pid, const std::string& program, const std::vector<std::string>& wanted) {
  return wanted.empty() || std::any_of(wanted.begin(), wanted.end(), [&](const std::string& w) {
           return as_pid(w) == pid || w == program;
         });
}

std::string not_there(const std::string& wanted) {
  if (!as_pid(wanted)) return fmt::format("no program '{}' of this user runs on weft", wanted);
  if (!std::filesystem::exists("/proc/" + wanted)) {
    return fmt::format("there is no process {}", wanted);
  }
  return fmt::format(
      "process {} shows no counters: it has not opened weft's device, runs with WEFT_COUNTERS=off "
      "or under limits that forbid it (WEFT_LOG=info says so), or belongs to another user",
      wanted);
}

}  // namespace

std::string program_name(pid_t pid) {
  const std::string folder = fmt::format("/proc/{}", pid);
  std::ifstream file(folder + "/comm");
  std::string cut;
  std::getline(file, cut);
  std::error_code error;
  const std::string whole = std::filesystem::read_symlink(folder + "/exe", error).filename();
  constexpr size_t kCut = 15;  // bytes that the kernel keeps
  // Any process may call itself anything.
  return kit::printable(cut.size() == kCut && whole.starts_with(cut) ? whole : cut);
}

FoundProcesses find_counting(const std::vector<std::string>& wanted) {
  FoundProcesses found;
  for (const pid_t pid : all_processes()) {
    const std::string program = program_name(pid);
    if (!is_wanted(pid, program, wanted)) continue;
    if (auto sockets = read_sdp_process(pid)) found.sockets.push_back(std::move(*sockets));
    auto counters = observe::read_process(pid);
    if (counters.ok()) {
      found.processes.push_back({pid, program, std::move(*counters)});
    } else if (counters.error() == observe::ReadError::other_version) {
      found.complaints.push_back(
          fmt::format("process {} ({}) runs another version of weft; ask with the `weft` that "
                      "belongs to it",
                      pid, program));
    } else if (counters.error() == observe::ReadError::never_still) {
      found.complaints.push_back(fmt::format(
          "process {} ({}) was stopped while it counted; ask again when it runs", pid, program));
    }
  }
  for (const std::string& w : wanted) {
    const auto is_it = [&w](const auto& p) { return is_wanted(p.pid, p.program, {w}); };
    const bool there = std::any_of(found.processes.begin(), found.processes.end(), is_it) ||
                       std::any_of(found.sockets.begin(), found.sockets.end(), is_it);
    const bool said =
        std::any_of(found.complaints.begin(), found.complaints.end(), [&](const std::string& c) {
          return c.starts_with("process " + w + " ") || c.find("(" + w + ")") != std::string::npos;
        });
    if (!there && !said) found.complaints.push_back(not_there(w));
  }
  return found;
}

}  // namespace weft::tools
