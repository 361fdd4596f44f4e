#include "verbs/adapter.h"

#include <pthread.h>
#include <unistd.h>

#include "base/log.h"
#include "config/options.h"
#include "port/adapter_port.h"
#include "port/memory_faults.h"
#include "verbs/queue_pair.h"
#include "verbs/uc_transport.h"

namespace weft::verbs {
namespace {

using namespace std::chrono_literals;
constexpr Duration kNumberRest = 2s;  // wire.md 12
constexpr unsigned kCoresPerEngine = 4;

std::mutex g_lock;
// Never destroyed: threads of the program may be inside until the very end of the process.
std::atomic<Adapter*> g_adapter{nullptr};

thread_local engine::Engine* g_preferred = nullptr;

unsigned engines_wanted() {
  if (const uint32_t n = config::options().engines; n > 0)
    return std::min(n, Adapter::kMostEngines);
  const long cores = ::sysconf(_SC_NPROCESSORS_ONLN);
  return std::clamp(static_cast<unsigned>(std::max(cores, 1L)) / kCoresPerEngine, 1U,
                    Adapter::kMostEngines);
}

// What circuits are told has to be known before the program runs.
bool has_fixed_numbers() {
  const config::Options& o = config::options();
  return o.uc == config::UcBringUp::none && o.uc_port != 0;
}

void child_after_fork() {
  if (Adapter* parents = g_adapter.exchange(nullptr)) parents->abandon_in_child();
}

}  // namespace

Adapter* Adapter::existing() {
  return g_adapter.load(std::memory_order_acquire);
}

Adapter* Adapter::get(const std::function<std::unique_ptr<BringUp>()>& make_bring_up) {
  if (Adapter* a = existing()) return a;
  const std::lock_guard guard{g_lock};
  if (Adapter* a = existing()) return a;
  static const int hooked = pthread_atfork([] { g_lock.lock(); }, [] { g_lock.unlock(); },
                                           [] {
                                             g_lock.unlock();
                                             child_after_fork();
                                           });
  if (hooked != 0) WEFT_LOG(warn, "pthread_atfork failed: a forked child must not use this device");
  auto fresh = std::unique_ptr<Adapter>{new Adapter};
  if (!fresh->start()) return nullptr;
  fresh->bring_up_ = make_bring_up();
  g_adapter.store(fresh.get(), std::memory_order_release);
  return fresh.release();
}

Adapter::Adapter()
    : memory_(
          [this] {
            for (auto& e : engines_) e->retire_memory();
          },
          has_fixed_numbers()) {}

bool Adapter::start() {
  port::catch_memory_faults();
  const unsigned wanted = engines_wanted();
  counters_ = std::make_unique<observe::CounterMemory>(wanted, config::options().counters);
  for (unsigned i = 0; i < wanted; ++i) {
    auto e = engine::Engine::create(i, &counters_->engine(i));
    if (!e.ok()) {
      WEFT_LOG(error, "the adapter cannot start: %s. Raise the limit on open files (ulimit -n)",
               e.error().to_string().c_str());
      return false;
    }
    engines_.push_back(std::move(*e));
  }
  return true;
}

void Adapter::prefer(engine::Engine* engine) {
  g_preferred = engine;
}

engine::Engine& Adapter::next_engine() {
  if (g_preferred != nullptr) return *g_preferred;
  return *engines_[turn_.fetch_add(1, std::memory_order_relaxed) % engines_.size()];
}

int Adapter::wait(int fd, const std::function<bool()>& ready, Duration timeout) {
  if (engines_.size() == 1) return engines_[0]->wait(fd, ready, timeout);
  // The first engine is slept on; the helpers of the others hear theirs. A thread that is cancelled
  // meanwhile is unwound.
  struct Expected {
    explicit Expected(Adapter& a) : adapter(a) {
      for (size_t i = 1; i < adapter.engines_.size(); ++i) adapter.engines_[i]->expect_sleeper();
    }
    ~Expected() {
      for (size_t i = 1; i < adapter.engines_.size(); ++i) adapter.engines_[i]->forget_sleeper();
    }
    Adapter& adapter;
  };
  const Expected expected{*this};
  return engines_[0]->wait(fd, ready, timeout);
}

Outcome<AdapterPort*> Adapter::open_port(engine::Engine& engine) {
  const size_t wish = has_fixed_numbers() ? config::options().uc_port + ports_.size() : 0;
  auto claim = port::claim_port(static_cast<uint16_t>(std::min<size_t>(wish, UINT16_MAX)));
  if (!claim.ok() && wish != 0) {
    WEFT_LOG(error, "port %zu is not to be had: %s. See WEFT_UC_PORT", wish,
             claim.error().to_string().c_str());
  } else if (!claim.ok()) {
    WEFT_LOG(error,
             "no port number is free on both TCP and UDP: %s. See "
             "/proc/sys/net/ipv4/ip_local_port_range "
             "and `ulimit -n`",
             claim.error().to_string().c_str());
  }
  if (!claim.ok()) {
    counters_->device().ports_refused.add_shared();
    return fail(Errc::system);
  }
  counters_->device().ports_opened.add_shared();
  auto p = std::make_unique<AdapterPort>();
  p->number = claim->number;
  p->engine = &engine;
  p->udp = std::move(claim->udp);
  p->tcp = std::move(claim->tcp);
  ports_.push_back(std::move(p));
  return ports_.back().get();
}

Outcome<Qpn> Adapter::reserve_number(engine::Engine& engine) {
  AdapterPort* opened = nullptr;
  Qpn number;
  {
    const std::lock_guard guard{lock_};
    const int64_t now = engine::Engine::clock().ns();
    AdapterPort* best = nullptr;
    size_t best_index = 0;
    for (auto& p : ports_) {
      if (p->engine != &engine) continue;
      // Least recently used first; index 0 is the port itself, 255 multicast.
      for (size_t i = 1; i <= 254; ++i) {
        if (p->taken[i]) continue;
        if (p->released_at[i] != 0 && now - p->released_at[i] < Duration{kNumberRest}.count())
          continue;
        if (best == nullptr || p->released_at[i] < best->released_at[best_index]) {
          best = p.get();
          best_index = i;
        }
      }
      if (best != nullptr && best->released_at[best_index] == 0) break;
    }
    if (best == nullptr) {
      auto p = open_port(engine);
      if (!p.ok()) return fail(p.error());
      opened = best = *p;
      best_index = 1;
    }
    best->taken.set(best_index);
    number = make_qpn(best->number, static_cast<uint8_t>(best_index));
  }
  if (opened != nullptr && bring_up_ != nullptr) {
    auto h = engine.hold();
    bring_up_->port_opened(h.token(), *opened);
  }
  return number;
}

AdapterPort* Adapter::port_with(Qpn qpn) {
  for (auto& p : ports_) {
    if (p->number == port_of(qpn)) return p.get();
  }
  return nullptr;
}

void Adapter::publish(engine::Token&, QueuePair& qp) {
  const std::lock_guard guard{lock_};
  port_with(qp.number())->pairs[index_of(qp.number())] = &qp;
}

void Adapter::release_number(engine::Token&, Qpn qpn) {
  const std::lock_guard guard{lock_};
  AdapterPort& p = *port_with(qpn);
  p.pairs[index_of(qpn)] = nullptr;
  p.taken.reset(index_of(qpn));
  p.released_at[index_of(qpn)] = engine::Engine::clock().ns();
}

engine::Engine* Adapter::engine_of(Qpn qpn) {
  const std::lock_guard guard{lock_};
  const AdapterPort* p = port_with(qpn);
  return p != nullptr ? p->engine : nullptr;
}

QueuePair* Adapter::find(engine::Token& token, Qpn qpn) {
  const std::lock_guard guard{lock_};
  const AdapterPort* p = port_with(qpn);
  return p != nullptr && p->engine == &token.engine() ? p->pairs[index_of(qpn)] : nullptr;
}

engine::DatagramDriver& Adapter::datagrams(engine::Token& token, Qpn qpn) {
  AdapterPort* p = nullptr;
  {
    const std::lock_guard guard{lock_};
    p = port_with(qpn);
  }
  if (p->datagrams == nullptr) {
    port::UdpSocket socket{std::move(p->udp), engine::DatagramDriver::kBuffer};
    p->datagrams = &engine::DatagramDriver::start(token, *this, std::move(socket));
  }
  return *p->datagrams;
}

Result<wdp::PortOwner::Callee, wire::RejReason> Adapter::called(engine::Token& token,
                                                                engine::DatagramDriver&,
                                                                const wire::WdpCtl& req,
                                                                const wdp::Endpoint& from) {
  QueuePair* qp = find(token, req.destination);
  UcTransport* uc = qp != nullptr ? qp->uc() : nullptr;
  if (uc == nullptr) return fail(wire::RejReason::qpn_unknown);
  return uc->called(token, req, from);
}

void Adapter::flush_at_exit() {
  for (auto& e : engines_) e->flush_at_exit();
}

void Adapter::abandon_in_child() {
  counters_->abandon_in_child();
  for (auto& e : engines_) e->abandon_in_child();
  for (auto& p : ports_) {
    p->udp.reset();
    p->tcp.close();
  }
}

}  // namespace weft::verbs
