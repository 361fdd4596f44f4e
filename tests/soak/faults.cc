#include "tests/soak/faults.h"

#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

namespace weft::soak {
namespace {

std::string proc(pid_t pid, const char* what) {
  return "/proc/" + std::to_string(pid) + "/" + what;
}
// The highest open descriptor and one more: no other can be opened below it but in a gap.
uint64_t descriptors(pid_t pid) {
  std::error_code e;
  int highest = 0;
  for (const auto& d : std::filesystem::directory_iterator(proc(pid, "fd"), e)) {
    highest = std::max(highest, std::stoi(d.path().filename().string()));
  }
  return static_cast<uint64_t>(highest) + 1;
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
      good = limit(RLIMIT_NOFILE, descriptors(pid_));
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
