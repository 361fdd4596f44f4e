#include "shared/pull_cost.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "shared/peer_memory.h"

namespace weft::shared {
namespace {

// Below it two copies are cheaper than the call.
constexpr size_t kPullFromWhereFast = 24 * 1024;
// Above it two copies take clearly more of both processors than one, and bring little.
constexpr size_t kPullFromWhereSlow = 384 * 1024;
// Through the ring so much takes some 5 us. A pull has as much to do besides as half of that:
// headers, the witness, the completion.
constexpr Duration kFast = std::chrono::nanoseconds{3500};
// The fastest of so many counts: others had the processor meanwhile, or the memory was cold.
constexpr int kTries = 8;

// Of this process's own memory. Where the kernel does not allow it, nobody is asked to pull.
Duration time_of_pull() {
  const wire::HostOffer::Nonce witness{std::byte{1}};
  const std::vector<std::byte> from(kProbe, std::byte{1});
  std::vector<std::byte> to(kProbe, std::byte{2});
  const PeerMemory own{::getpid(), reinterpret_cast<uintptr_t>(witness.data()), witness};
  const IoVec place{to.data(), to.size()};
  Duration best = Duration::max();
  for (int i = 0; i < kTries; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    (void)own.pull({&place, 1}, reinterpret_cast<uintptr_t>(from.data()));
    best = std::min<Duration>(best, std::chrono::steady_clock::now() - begin);
  }
  return best;
}

}  // namespace

size_t pull_from(Duration pull) {
  return pull <= kFast ? kPullFromWhereFast : kPullFromWhereSlow;
}

size_t pull_from(const config::Options& options) {
  if (options.same_host != config::SameHost::on) return kNeverPull;
  if (options.pull_from != 0) return options.pull_from;
  static const size_t measured = pull_from(time_of_pull());
  return measured;
}

}  // namespace weft::shared
