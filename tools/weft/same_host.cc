#include "weft/same_host.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "shared/pull_cost.h"
#include "shared/segment.h"

namespace weft::tools {
namespace {

using namespace std::string_literals;
using stats::SameHostRefusal;

constexpr uint64_t kNamespace = 1;  // both processes are in one

// Exit statuses of the child: its refusal, or one of these.
constexpr int kPulls = 100;
constexpr int kJoins = 101;

// What a process comes to that joins the segment of its parent.
int status_of_child(const shared::Segment& segment) {
  const wire::HostOffer offer = segment.offer(kNamespace);
  const pid_t child = ::fork();
  if (child == 0) {
    auto joined = shared::Segment::join(offer, kNamespace);
    if (!joined.ok()) ::_exit(static_cast<int>(joined.error()));
    const auto peer = joined->peer();
    ::_exit(peer && peer->can_pull() ? kPulls : kJoins);
  }
  int status = 0;
  if (child < 0) return -1;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

std::string same_host_here(const config::Options& options) {
  if (options.same_host == config::SameHost::off) return "by TCP: WEFT_SAME_HOST=off";
  if (!options.trace.empty()) return "by TCP: WEFT_TRACE records it";
  if (!options.fault.nothing_for_streams()) return "by TCP: WEFT_FAULT is set";
  const auto segment = shared::Segment::make();
  if (!segment.ok()) {
    return std::string{"by TCP: there is no memory to share ("} + segment.error().call + ")";
  }
  switch (const int status = status_of_child(*segment)) {
    case kPulls:
      return options.same_host == config::SameHost::ring
                 ? "through memory, large payloads as well (WEFT_SAME_HOST=ring)"
                 : "through memory; payloads of "s + std::to_string(shared::pull_from(options)) +
                       " bytes and more are pulled from where they lie";
    case kJoins:
      return "through memory; large payloads are copied, for the kernel does not let one process "
             "read the other's memory (kernel.yama.ptrace_scope, seccomp)";
    case static_cast<int>(SameHostRefusal::not_allowed):
    case static_cast<int>(SameHostRefusal::no_segment):
      return "by TCP: the kernel does not open the other process's memory by /proc";
    default:
      return status < 0 ? "not known: there was no child process to try it with"
                        : "by TCP: what is opened by /proc is something else";
  }
}

}  // namespace weft::tools
