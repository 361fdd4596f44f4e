#include "tests/soak/supervisor.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "tests/soak/worker.h"

namespace weft::soak {

using namespace std::chrono_literals;

namespace {
constexpr auto kMostStill = 30s;  // a process that makes no turn for so long hangs
constexpr unsigned kLong = 600;   // seconds in which a process shows whether it grows
constexpr auto kMostEnd = 100s;   // for all to finish what is under way
}  // namespace

Supervisor::Supervisor(Ledger& ledger, const Plan& plan)
    : ledger_(ledger), plan_(plan), places_(plan.servers + plan.clients), random_(plan.seed) {
  for (size_t i = 0; i < places_.size(); ++i) {
    ledger_.workers[i].role = i < plan.servers ? Worker::Role::server : Worker::Role::client;
  }
  if (plan.servers > 1) growths_.emplace_back(0);
  if (plan.clients > 1) growths_.emplace_back(plan.servers);
}

void Supervisor::start(size_t number) {
  Worker& w = ledger_.workers[number];
  w.incarnation.fetch_add(1);
  w.port.store(0);
  w.limited.store(false);
  w.slow.store(false);
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (w.role == Worker::Role::server) be_server(ledger_, number);
    be_client(ledger_, number, plan_.links);
  }
  if (pid < 0) {
    ledger_.complain("fork: %s", std::strerror(errno));
    return;
  }
  const uint64_t turns = w.turns.get();
  places_[number] =
      Place{.victim = Victim{w, pid}, .first_turns = turns, .turns = turns, .turned = Clock::now()};
}

void Supervisor::bury() {
  for (;;) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid <= 0) return;
    for (size_t i = 0; i < places_.size(); ++i) {
      Place& p = places_[i];
      if (!p.victim || p.victim->pid() != pid) continue;
      const bool finished = ledger_.stop.load() && WIFEXITED(status) && WEXITSTATUS(status) == 0;
      if (!finished && !(p.killed && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)) {
        ledger_.complain("worker %zu ended by itself, with status %x", i, status);
      }
      ledger_.workers[i].port.store(0);
      p = Place{.restart = Clock::now() + std::chrono::milliseconds{random_() % 500}};
    }
  }
}

void Supervisor::look_after(Clock::time_point now) {
  for (size_t i = 0; i < places_.size(); ++i) {
    Place& p = places_[i];
    if (!p.victim) {
      if (!ledger_.stop.load() && now >= p.restart) start(i);
      continue;
    }
    p.victim->relieve(now);
    const uint64_t turns = ledger_.workers[i].turns.get();
    if (turns != p.turns || p.victim->suffers()) {
      p.turns = turns;
      p.turned = now;
    } else if (now - p.turned > kMostStill && !p.killed) {
      ledger_.complain("worker %zu hangs", i);
      p.killed = true;
      kill(p.victim->pid(), SIGABRT);  // with a core, where that is wanted
    }
  }
}

void Supervisor::strike(Clock::time_point now) {
  if (plan_.fault_ms == 0 || now < next_fault_) return;
  next_fault_ = now + std::chrono::milliseconds{random_() % (2 * uint64_t{plan_.fault_ms} + 1)};
  const size_t number = random_() % places_.size();
  Place& p = places_[number];
  // Killed less often, for each kill ends many connections.
  static constexpr std::array<Fault, 8> kOften{
      Fault::kill,           Fault::stop,           Fault::stop,      Fault::slow_reader,
      Fault::no_descriptors, Fault::no_descriptors, Fault::no_memory, Fault::no_memory};
  const Fault fault = kOften[random_() % kOften.size()];
  if (!p.victim || p.victim->suffers() || p.killed) return;
  const bool spared = std::any_of(growths_.begin(), growths_.end(),
                                  [&](const Growth& g) { return g.worker() == number; });
  if (spared && fault == Fault::kill) return;
  // A process that has no memory to begin with is not what this is about.
  if (p.turns < p.first_turns + 100 && fault != Fault::kill) return;
  if (fault == Fault::no_descriptors || fault == Fault::no_memory) ledger_.want.store(true);
  if (!p.victim->strike(fault, std::chrono::milliseconds{50 + random_() % 1500})) return;
  p.killed = fault == Fault::kill;
  ++faults_[static_cast<size_t>(fault)];
}

void Supervisor::progress(Clock::time_point begun) {
  uint64_t connections = 0;
  uint64_t bytes = 0;
  uint64_t faults = 0;
  for (const Worker& w : ledger_.workers) {
    if (w.role == Worker::Role::client) connections += w.connections.get();
    bytes += w.bytes_verified.get();
  }
  for (const uint64_t n : faults_) faults += n;
  std::fprintf(stderr, "%5.0f s: %lu connections, %.2f GB verified, %lu faults, %u complaints\n",
               std::chrono::duration<double>(Clock::now() - begun).count(), connections,
               static_cast<double>(bytes) / 1e9, faults, ledger_.complaints.load());
  for (; shown_ < std::min<size_t>(ledger_.complaints.load(), ledger_.complaint.size()); ++shown_) {
    std::fprintf(stderr, "         %s\n", ledger_.complaint[shown_].data());
  }
}

// Everything is put right; then all finish what they have, and nobody may need to be killed.
void Supervisor::end() {
  for (Place& p : places_) {
    if (p.victim && !p.killed) p.victim->relieve_now();
  }
  ledger_.stop.store(true);
  const auto until = Clock::now() + kMostEnd;
  for (;;) {
    bury();
    bool any = false;
    for (size_t i = 0; i < places_.size(); ++i) {
      if (!places_[i].victim) continue;
      any = true;
      if (Clock::now() < until) continue;
      ledger_.complain("worker %zu does not come to its end", i);
      places_[i].killed = true;
      kill(places_[i].victim->pid(), SIGKILL);
    }
    if (!any) return;
    usleep(10'000);
  }
}

void Supervisor::ask_for_faults(const Totals& totals) const {
  constexpr uint64_t kMany = 300;
  if (plan_.fault_ms == 0 || uint64_t{plan_.seconds} * 1000 / plan_.fault_ms < kMany) return;
  for (size_t i = 0; i < kFaults; ++i) {
    if (totals.faults[i] == 0) ledger_.complain("no fault of this kind: %s", name(Fault(i)));
  }
  if (totals.refused_by_limits == 0) ledger_.complain("no call was refused for want of anything");
}

// What one side saw complete, the other side has seen arrive, if it lived to look.
void Supervisor::compare_links(Totals& totals) const {
  const uint32_t links = std::min<uint32_t>(ledger_.links.load(), kMostLinks);
  for (uint32_t i = 0; i < links; ++i) {
    const Link& l = ledger_.link[i];
    const auto compare = [&](const Link::Half& from, const Link::Half& to, const char* whose) {
      if (to.stage.load() != Link::Stage::ended || from.sent.get() <= to.received.get()) return;
      totals.lost += from.sent.get() - to.received.get();
      ledger_.complain("link %u: %lu messages of the %s were complete, and %lu arrived", i,
                       from.sent.get(), whose, to.received.get());
    };
    compare(l.client, l.server, "client");
    compare(l.server, l.client, "server");
    if (l.clean.load()) ++totals.clean;
  }
}

Totals Supervisor::run() {
  const auto begun = Clock::now();
  const auto until = begun + std::chrono::seconds{plan_.seconds};
  auto next_progress = begun + 10s;
  auto next_look = begun;
  for (size_t i = 0; i < places_.size(); ++i) start(i);
  next_fault_ = begun + 1s;
  while (Clock::now() < until && !ledger_.stop.load()) {
    bury();
    const auto now = Clock::now();
    look_after(now);
    strike(now);
    if (now >= next_look) {
      const double share = std::chrono::duration<double>(now - begun) / (until - begun);
      for (Growth& g : growths_) {
        if (const Place& p = places_[g.worker()]; p.victim) g.look(p.victim->pid(), share);
      }
      next_look += std::chrono::milliseconds{250};
    }
    if (now >= next_progress) {
      progress(begun);
      next_progress += 10s;
    }
    usleep(5'000);
  }
  end();
  Totals t;
  t.seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  t.faults = faults_;
  compare_links(t);
  for (const Worker& w : ledger_.workers) {
    if (w.role == Worker::Role::client) t.connections += w.connections.get();
    t.sends += w.sends.get();
    t.writes += w.writes.get();
    t.writes_with_immediate += w.writes_with_immediate.get();
    t.reads += w.reads.get();
    t.atomics += w.atomics.get();
    t.messages += w.messages_received.get();
    t.bytes_verified += w.bytes_verified.get();
    t.refused_by_limits += w.refused_by_limits.get();
    t.refused_by_peer += w.refused_by_peer.get();
    t.wrong_keys += w.wrong_keys.get();
  }
  for (const Growth& g : growths_) {
    // In less time they only get as large as they become.
    if (plan_.seconds >= kLong) g.judge(ledger_);
    t.early.resident_kib += g.early().resident_kib;
    t.early.descriptors += g.early().descriptors;
    t.late.resident_kib += g.late().resident_kib;
    t.late.descriptors += g.late().descriptors;
  }
  ask_for_faults(t);
  return t;
}

}  // namespace weft::soak
