#include "kit/free_memory.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>

#include "base/number_in.h"
#include "kit/kernel_files.h"

namespace weft::kit {
namespace {

constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

// The number behind a word.
std::optional<uint64_t> value_of(const std::string& file, const std::string& name) {
  const auto words = read_words(file);
  if (!words) return std::nullopt;
  const auto at = std::find(words->begin(), words->end(), name);
  if (at == words->end() || at + 1 == words->end()) return std::nullopt;
  return number_in<uint64_t>(*(at + 1));
}

// What a group may still take. The kernel drops pages of files first that nobody has used lately.
uint64_t left_in(const std::filesystem::path& group) {
  const auto most = read_numbers(group / "memory.max");  // or the word "max"
  const auto used = read_numbers(group / "memory.current");
  if (!most || !used || most->size() != 1 || used->size() != 1) return kUnlimited;
  const uint64_t files = value_of(group / "memory.stat", "inactive_file").value_or(0);
  const uint64_t kept = used->front() - std::min(used->front(), files);
  return most->front() - std::min(most->front(), kept);
}

// "0::/PATH" of version 2.
std::string own_group(const std::string& root) {
  constexpr std::string_view kBegin = "0::/";
  for (const std::string& line :
       read_words(root + "/proc/self/cgroup").value_or(std::vector<std::string>{})) {
    if (line.starts_with(kBegin)) return line.substr(kBegin.size());
  }
  return {};
}

}  // namespace

uint64_t free_memory(const std::string& root) {
  const auto kib = value_of(root + "/proc/meminfo", "MemAvailable:");
  uint64_t least = kib ? *kib << 10 : kUnlimited;
  const std::filesystem::path top = root + "/sys/fs/cgroup";
  for (std::filesystem::path group = top / own_group(root);; group = group.parent_path()) {
    least = std::min(least, left_in(group));
    if (group == top || group == group.parent_path()) return least;
  }
}

}  // namespace weft::kit
