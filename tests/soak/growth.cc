#include "tests/soak/growth.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

namespace weft::soak {
namespace {

constexpr double kEarlyFrom = 0.1;  // before it, things grow to their size
constexpr double kEarlyTo = 0.3;
constexpr double kLateFrom = 0.8;

}  // namespace

void Growth::look(pid_t pid, double share) {
  if (share < kEarlyFrom || (share > kEarlyTo && share < kLateFrom)) return;
  const std::string folder = "/proc/" + std::to_string(pid);
  uint64_t size = 0;
  uint64_t resident = 0;
  std::ifstream(folder + "/statm") >> size >> resident;
  std::error_code error;
  uint64_t descriptors = 0;
  for (const auto& d : std::filesystem::directory_iterator(folder + "/fd", error)) {
    descriptors += d.path().empty() ? 0U : 1U;
  }
  if (resident == 0 || descriptors == 0) return;  // it is just ending
  Least& least = share < kLateFrom ? early_ : late_;
  least.resident_kib =
      std::min(least.resident_kib, resident * static_cast<uint64_t>(getpagesize()) / 1024);
  least.descriptors = std::min(least.descriptors, descriptors);
}

void Growth::judge(Ledger& ledger) const {
  constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();
  if (early_.resident_kib == kNever || late_.resident_kib == kNever) {
    ledger.complain("worker %zu, which nobody kills, was not seen", worker_);
    return;
  }
  if (late_.resident_kib > early_.resident_kib + early_.resident_kib / 4 + 16 * 1024) {
    ledger.complain("worker %zu: at least %lu KiB were resident early, and %lu late", worker_,
                    early_.resident_kib, late_.resident_kib);
  }
  if (late_.descriptors > early_.descriptors + early_.descriptors / 2 + 16) {
    ledger.complain("worker %zu: at least %lu descriptors were open early, and %lu late", worker_,
                    early_.descriptors, late_.descriptors);
  }
}

}  // namespace weft::soak
