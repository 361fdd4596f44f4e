// The campaign: UC sessions under every kind of fault, run by run from a seed.
//
//   wdp_campaign [--runs=N] [--first=SEED] [--profile=NAME] [--fault=SPEC]
//
// Prints what is wrong, with the seed to see it again (--first=SEED --runs=1, and the same
// --profile and --fault where there were such), and how much came through. Status 1 when anything
// was wrong. The test of this name does a few thousand runs; before a release it is --runs=100000.
//
// SPEC is the text of WEFT_FAULT (docs/faults.md), and stands for what the profiles have for faults
// of their own; all else of a profile stays. Faults follow from its seed and the number of the run
// (sim/datagram_link.h): one spec makes of each run another one, and of the same run always the
// same.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/support/bring_up.h"
#include "tests/wdp/profiles.h"

namespace weft::test {
namespace {

struct Arguments {
  uint64_t runs = 3000;
  uint64_t first = 1;
  const Profile* only = nullptr;
  std::optional<FaultSpec> fault;
};

// A run ends where nothing happens for 5 s, and each side waits for the other.
constexpr Duration kLatest = std::chrono::seconds{1};

bool parse_fault(const std::string& text, Arguments& a) {
  const auto spec = FaultSpec::parse(text);
  if (!spec.ok()) {
    std::fprintf(stderr, "wdp_campaign: --fault=%s: %s\n", text.c_str(), spec.error().c_str());
    return false;
  }
  const Duration behind = spec->reorder > 0 ? spec->reorder_delay : Duration{0};
  if (spec->delay + spec->jitter + behind > kLatest) {
    std::fprintf(stderr,
                 "wdp_campaign: --fault=%s: delay, jitter and reorder_delay together are more than "
                 "1 s; name shorter ones\n",
                 text.c_str());
    return false;
  }
  a.fault = *spec;
  return true;
}

bool usage() {
  std::fprintf(stderr,
               "usage: wdp_campaign [--runs=N] [--first=SEED] [--profile=NAME] [--fault=SPEC]\n"
               "profiles:");
  for (const Profile& p : profiles()) std::fprintf(stderr, " %s", p.name);
  std::fprintf(stderr, "\n");
  return false;
}

// What is wrong with them has been said.
bool parse(int argc, char** argv, Arguments& a) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.starts_with("--runs=")) {
      a.runs = std::strtoull(word.c_str() + 7, nullptr, 0);
    } else if (word.starts_with("--first=")) {
      a.first = std::strtoull(word.c_str() + 8, nullptr, 0);
    } else if (word.starts_with("--profile=")) {
      for (const Profile& p : profiles()) {
        if (word.substr(10) == p.name) a.only = &p;
      }
      if (a.only == nullptr) return usage();
    } else if (word.starts_with("--fault=")) {
      if (!parse_fault(word.substr(8), a)) return false;
    } else {
      return usage();
    }
  }
  return a.runs > 0 || usage();
}

struct Sum {
  uint64_t runs = 0;
  uint64_t wrong = 0;
  uint64_t established = 0;  // by a handshake
  UcTraffic::Totals totals;
  uint64_t lost = 0;
  uint64_t sent = 0;
  FaultCounts faults;
};

void add(FaultCounts& sum, const FaultCounts& c) {
  sum.seen += c.seen;
  sum.lost += c.lost;
  sum.duplicated += c.duplicated;
  sum.reordered += c.reordered;
  sum.corrupted += c.corrupted;
}

void complain(const Profile& profile, uint64_t seed, const std::vector<std::string>& sentences,
              Sum& sum) {
  for (const std::string& s : sentences) {
    std::printf("%s, --first=%llu: %s\n", profile.name, static_cast<unsigned long long>(seed),
                s.c_str());
  }
  sum.wrong += sentences.empty() ? 0 : 1;
}

void run(const Profile& profile, uint64_t seed, const std::optional<FaultSpec>& fault, Sum& sum) {
  UcPairOptions options = profile.pair(seed);
  UcTrafficOptions traffic = profile.traffic(seed);
  if (fault) put_under(*fault, options, traffic);
  ++sum.runs;
  std::optional<BringUp> up;
  if (profile.handshake) {
    up.emplace(options);
    up->drive();
    complain(profile, seed, up->wrong(), sum);
    if (!up->established()) return;
    options.tune = [&up](wdp::UcParameters& p, bool first) { p = up->parameters(first); };
    ++sum.established;
  }
  UcPair p{options};
  UcTraffic t{p, traffic};
  // Seven tries of a Read, each twice as long as the one before, take ten seconds; Reads may queue
  // up.
  p.drive(std::chrono::minutes{5});
  t.finish();
  complain(profile, seed, t.wrong(), sum);
  const auto totals = t.totals();
  sum.totals.messages += totals.messages;
  sum.totals.delivered += totals.delivered;
  sum.totals.reads += totals.reads;
  sum.totals.reads_failed += totals.reads_failed;
  for (const UcSide* side : {&p.a, &p.b}) {
    sum.sent += side->counters().datagrams_sent;
    sum.lost += side->session.lost();
  }
  for (const sim::DatagramEnd* end : {&p.link.a(), &p.link.b()}) {
    add(sum.faults, end->counters().faults);
  }
}

int campaign(int argc, char** argv) {
  Arguments a;
  if (!parse(argc, argv, a)) return 2;
  std::vector<Sum> sums(profiles().size());
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < a.runs && wrong < 20; ++i) {
    const uint64_t seed = a.first + i;
    const size_t which =
        a.only != nullptr ? static_cast<size_t>(a.only - profiles().data()) : seed % sums.size();
    const uint64_t before = sums[which].wrong;
    run(profiles()[which], seed, a.fault, sums[which]);
    wrong += sums[which].wrong - before;
  }
  // What a spec of the user's leaves of them is not known.
  for (size_t i = 0; i < sums.size() && !a.fault; ++i) {
    // Of those that may lose three datagrams in ten.
    if (profiles()[i].handshake && sums[i].established < sums[i].runs * 9 / 10) {
      ++wrong;
      std::printf("%s: %llu sessions of %llu\n", profiles()[i].name,
                  static_cast<unsigned long long>(sums[i].established),
                  static_cast<unsigned long long>(sums[i].runs));
    }
    const auto& t = sums[i].totals;
    // Seven tries in a row are lost at 10 % once in a hundred thousand Reads.
    if (!profiles()[i].reads_finish || t.reads_failed <= 1 + t.reads / 10'000) continue;
    ++wrong;
    std::printf("%s: %llu Reads failed of %llu\n", profiles()[i].name,
                static_cast<unsigned long long>(t.reads_failed),
                static_cast<unsigned long long>(t.reads));
  }
  const auto n = [](uint64_t v) { return static_cast<unsigned long long>(v); };
  if (a.fault) {
    FaultCounts c;
    for (const Sum& s : sums) add(c, s.faults);
    std::printf("faults '%s': %llu datagrams, %llu lost, %llu doubled, %llu late, %llu damaged\n",
                a.fault->to_string().c_str(), n(c.seen), n(c.lost), n(c.duplicated), n(c.reordered),
                n(c.corrupted));
  }
  std::printf("%-12s %8s %10s %10s %10s %10s %8s %10s %8s\n", "profile", "runs", "messages",
              "delivered", "sent", "lost", "reads", "failed", "wrong");
  for (size_t i = 0; i < sums.size(); ++i) {
    const Sum& s = sums[i];
    std::printf("%-12s %8llu %10llu %10llu %10llu %10llu %8llu %10llu %8llu\n", profiles()[i].name,
                n(s.runs), n(s.totals.messages), n(s.totals.delivered), n(s.sent), n(s.lost),
                n(s.totals.reads), n(s.totals.reads_failed), n(s.wrong));
  }
  return wrong > 0 ? 1 : 0;
}

}  // namespace
}  // namespace weft::test

int main(int argc, char** argv) {
  return weft::test::campaign(argc, argv);
}
