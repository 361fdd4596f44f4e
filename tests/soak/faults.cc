#include "tests/soak/faults.h"

#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

namespace weft::soak {
namespace {

std::string proc(pid_t pid, const char* what) {
  return "/proc/" + std::to_string(pid) + "/" + what;
}
// The least number that is no open descriptor: below it, none can be opened. Some that are open lie
// far above, for the library puts its own where no program looks for any.
uint64_t least_free_descriptor(pid_t pid) {
  std::error_code e;
  std::set<uint64_t> open;
  for (const auto& d : std::filesystem::directory_iterator(proc(pid, "fd"), e)) {
    open.insert(std::stoul(d.path().filename().string()));
  }
  uint64_t free = 0;
  while (open.contains(free)) ++free;
  return free;
}
uint64_t address_space(pid_t pid) {
  uint64_t pages = 0;
  std::ifstream(proc(pid, "statm")) >> pages;
  return pages * 4096;
}

}  // namespace

const char* name(Fault fault) {
  static constexpr std::array<const char*, kFaults> kNames{"killed", "stopped", "slow readers",
                                                           "no descriptors", "no memory"};
  return kNames[static_cast<size_t>(fault)];
}

bool Victim::limit(int resource, uint64_t amount) {
  rlimit l{};
  if (prlimit(pid_, static_cast<__rlimit_resource>(resource), nullptr, &l) != 0) return false;
  l.rlim_cur = std::min<rlim_t>(amount, l.rlim_max);
  return prlimit(pid_, static_cast<__rlimit_resource>(resource), &l, nullptr) == 0;
}

bool Victim::strike(Fault fault, std::chrono::milliseconds how_long) {
  fault_ = fault;
  bool good = true;
  switch (fault) {
    case Fault::kill:
      return ::kill(pid_, SIGKILL) == 0;
    case Fault::stop:
      good = ::kill(pid_, SIGSTOP) == 0;
      break;
    case Fault::slow_reader:
      worker_->slow.store(true);
      break;
    case Fault::no_descriptors:
      worker_->limited.store(true);
      worker_->shortages.fetch_add(1);
      good = limit(RLIMIT_NOFILE, least_free_descriptor(pid_));
      break;
    case Fault::no_memory:
      worker_->limited.store(true);
      worker_->shortages.fetch_add(1);
      good = limit(RLIMIT_AS, address_space(pid_));
      break;
  }
  if (good) until_ = Clock::now() + how_long;
  return good;
}

void Victim::relieve(Clock::time_point now) {
  if (!suffers() || now < until_) return;
  until_ = {};
  switch (fault_) {
    case Fault::kill:
      break;
    case Fault::stop:
      ::kill(pid_, SIGCONT);
      break;
    case Fault::slow_reader:
      worker_->slow.store(false);
      break;
    case Fault::no_descriptors:
      limit(RLIMIT_NOFILE, UINT64_MAX);
      worker_->limited.store(false);
      break;
    case Fault::no_memory:
      limit(RLIMIT_AS, UINT64_MAX);
      worker_->limited.store(false);
      break;
  }
}

}  // namespace weft::soak
