// soak: many processes and connections, all operations, every byte checked, while processes are
// killed, stopped, and deprived of descriptors and memory. Run it under `weft run`.
#include <getopt.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "tests/soak/supervisor.h"

namespace {

using namespace weft::soak;

constexpr const char* kHelp =
    "usage: weft run -- soak [--seconds=60] [--servers=3] [--clients=3] [--links=8]\n"
    "                        [--fault-ms=150] [--seed=1] [--json]\n"
    "Clients with so many links each connect to servers on this host, and verify all that they\n"
    "exchange. A fault every fault-ms milliseconds on average, 0 for none. Status 1 when anything\n"
    "was lost, wrong, or hung.\n";

void print(const Totals& t, uint32_t complaints, bool json) {
  const std::pair<const char*, uint64_t> rows[] = {
      {"connections", t.connections},
      {"closed with everything answered", t.clean},
      {"Sends", t.sends},
      {"Writes", t.writes},
      {"Writes with immediate", t.writes_with_immediate},
      {"Reads", t.reads},
      {"atomics", t.atomics},
      {"messages received", t.messages},
      {"bytes verified", t.bytes_verified},
      {"Writes with a wrong key, refused", t.wrong_keys},
      {"calls refused for want of descriptors or memory", t.refused_by_limits},
      {"connections refused", t.refused_by_peer},
      {"processes killed", t.faults[static_cast<size_t>(Fault::kill)]},
      {"processes stopped for a while", t.faults[static_cast<size_t>(Fault::stop)]},
      {"readers made slow", t.faults[static_cast<size_t>(Fault::slow_reader)]},
      {"times without descriptors", t.faults[static_cast<size_t>(Fault::no_descriptors)]},
      {"times without memory", t.faults[static_cast<size_t>(Fault::no_memory)]},
      {"resident KiB of two that nobody killed, at least, early", t.early.resident_kib},
      {"resident KiB of these two, at least, late", t.late.resident_kib},
      {"descriptors of these two, at least, early", t.early.descriptors},
      {"descriptors of these two, at least, late", t.late.descriptors},
      {"messages lost", t.lost},
      {"complaints", complaints},
  };
  if (json) {
    std::printf("{\"seconds\": %.1f", t.seconds);
    for (const auto& [what, n] : rows) std::printf(", \"%s\": %lu", what, n);
    std::puts("}");
    return;
  }
  std::printf("| what | in %.0f s |\n|---|---|\n", t.seconds);
  for (const auto& [what, n] : rows) std::printf("| %s | %lu |\n", what, n);
}

}  // namespace

int main(int count, char** arguments) {
  Plan plan;
  bool json = false;
  enum { kSeconds = 256, kServers, kClients, kLinks, kFault, kSeed, kJson, kHelpMe };
  static const option kOptions[] = {{"seconds", required_argument, nullptr, kSeconds},
                                    {"servers", required_argument, nullptr, kServers},
                                    {"clients", required_argument, nullptr, kClients},
                                    {"links", required_argument, nullptr, kLinks},
                                    {"fault-ms", required_argument, nullptr, kFault},
                                    {"seed", required_argument, nullptr, kSeed},
                                    {"json", no_argument, nullptr, kJson},
                                    {"help", no_argument, nullptr, kHelpMe},
                                    {}};
  const auto number = [](unsigned most) {
    char* end = nullptr;
    const unsigned long n = std::strtoul(optarg, &end, 10);
    if (*optarg != '\0' && *end == '\0' && n <= most) return static_cast<unsigned>(n);
    std::fprintf(stderr, "soak: '%s' is no number from 0 to %u\n", optarg, most);
    std::exit(2);
  };
  for (int o; (o = getopt_long(count, arguments, "", kOptions, nullptr)) != -1;) {
    switch (o) {
      case kSeconds:
        plan.seconds = number(86'400);
        break;
      case kServers:
        plan.servers = number(kMostWorkers / 2);
        break;
      case kClients:
        plan.clients = number(kMostWorkers / 2);
        break;
      case kLinks:
        plan.links = number(64);
        break;
      case kFault:
        plan.fault_ms = number(3'600'000);
        break;
      case kSeed:
        plan.seed = number(UINT32_MAX);
        break;
      case kJson:
        json = true;
        break;
      case kHelpMe:
        std::fputs(kHelp, stdout);
        return 0;
      default:
        std::fputs(kHelp, stderr);
        return 2;
    }
  }
  if (optind != count) {
    std::fputs(kHelp, stderr);
    return 2;
  }
  void* memory = mmap(nullptr, sizeof(Ledger), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("soak: mmap");
    return 2;
  }
  // Not constructed: all of it is zero, and zero is how each member begins.
  auto& ledger = *static_cast<Ledger*>(memory);
  const Totals totals = Supervisor(ledger, plan).run();
  const uint32_t complaints = ledger.complaints.load();
  print(totals, complaints, json);
  for (uint32_t i = 0; i < std::min<uint32_t>(complaints, ledger.complaint.size()); ++i) {
    std::fprintf(stderr, "%s\n", ledger.complaint[i].data());
  }
  if (totals.messages == 0) std::fputs("soak: nothing was exchanged\n", stderr);
  return complaints == 0 && totals.messages != 0 ? 0 : 1;
}
