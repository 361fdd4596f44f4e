#include "verbs/adapter.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/fork_lock.h"
#include "base/log.h"
#include "base/undo.h"
#include "config/options.h"
#include "engine/exit_hold.h"
#include "port/adapter_port.h"
#include "port/memory_faults.h"
#include "port/udp_socket.h"
#include "verbs/queue_pair.h"

namespace weft::verbs {
namespace {

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

// For the port that is opened next; 0: any. May be none, where there are too many.
size_t port_wished(size_t ports) {
  return has_fixed_numbers() ? std::min<size_t>(config::options().uc_port + ports, UINT16_MAX) : 0;
}

void say_no_port(const port::SystemError& why, size_t ports) {
  if (const size_t wish = port_wished(ports); wish != 0) {
    WEFT_LOG(error, "port %zu is not to be had: %s. See WEFT_UC_PORT", wish,
             why.to_string().c_str());
    return;
  }
  WEFT_LOG(error,
           "no port number is free on both TCP and UDP: %s. See "
           "/proc/sys/net/ipv4/ip_local_port_range and `ulimit -n`",
           why.to_string().c_str());
}

// Would `used` be less than a quarter of what the process may have open?
bool descriptors_abound(size_t used) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 && used < limit.rlim_cur / 4;
}

const char* remedy(int error) {
  switch (error) {
    case EMFILE:
      return "Raise the limit on open files (ulimit -n)";
    case EAGAIN:
      return "Raise the limit on threads (ulimit -u, pids.max of the container) or on memory "
             "(ulimit -v, -l)";
    case EPERM:
    case ENOSYS:
      return "A filter of system calls (seccomp, a container's) forbids it: allow it there";
    default:
      return "Free resources of this system";
  }
}

void close_channels(engine::Token& token, drive::DatagramDriver& driver) {
  driver.wdp_socket().channels().each([&](wdp::RdChannel& c) { c.close(token.now()); });
  driver.settle(token);
}

void child_after_fork() {
  if (Adapter* parents = g_adapter.exchange(nullptr)) parents->abandon_in_child();
}
const HeldOverFork<g_lock, child_after_fork> g_over_fork;

}  // namespace

Adapter* Adapter::existing() {
  return g_adapter.load(std::memory_order_acquire);
}

Result<Adapter*, port::SystemError> Adapter::get(
    const std::function<std::unique_ptr<BringUp>()>& make_bring_up) {
  if (Adapter* a = existing(); a != nullptr && a->intact()) return a;
  const std::lock_guard guard{g_lock};
  if (Adapter* a = existing()) {
    if (a->intact()) return a;
    WEFT_LOG(warn,
             "this program has closed descriptors of weft's (closefrom(3)?): the device is opened "
             "anew, and what was made with it before is dead");
    g_adapter.store(nullptr, std::memory_order_release);
    a->abandon_lost();
  }
  auto fresh = std::unique_ptr<Adapter>{new Adapter};
  if (const auto started = fresh->start(); !started.ok()) return fail(started.error());
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

Result<Ok, port::SystemError> Adapter::start() {
  port::catch_memory_faults();
  const unsigned wanted = engines_wanted();
  counters_ = std::make_unique<observe::CounterMemory>(wanted, config::options().counters);
  numbers_.resize(wanted);
  for (unsigned i = 0; i < wanted; ++i) {
    auto e = engine::Engine::create(i, &counters_->engine(i));
    if (!e.ok()) {
      WEFT_LOG(error, "the adapter cannot start: %s. %s", e.error().to_string().c_str(),
               remedy(e.error().code));
      return fail(e.error());
    }
    engines_.push_back(std::move(*e));
  }
  return Ok{};
}

void Adapter::prefer(engine::Engine* engine) {
  g_preferred = engine;
}

engine::Engine& Adapter::next_engine() {
  if (g_preferred != nullptr) return *g_preferred;
  return *engines_[turn_.fetch_add(1, std::memory_order_relaxed) % engines_.size()];
}

int Adapter::wait(int fd, const std::function<bool()>& ready) {
  if (engines_.size() == 1) return engines_[0]->wait(fd, ready);
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
  return engines_[0]->wait(fd, ready);
}

Result<AdapterPort*, port::SystemError> Adapter::open_port(engine::Engine& engine) {
  auto claim = port::claim_port(static_cast<uint16_t>(port_wished(ports_.size())));
  if (!claim.ok()) {
    counters_->device().ports_refused.add_shared();
    return fail(claim.error());
  }
  counters_->device().ports_opened.add_shared();
  auto p = std::make_unique<AdapterPort>();
  p->number = claim->number;
  p->engine = &engine;
  p->udp = std::move(claim->udp);
  p->tcp = std::move(claim->tcp);
  ports_.reserve(ports_.size() + 1);
  numbers_[engine.number()].add_port(p->number);
  ports_.push_back(std::move(p));
  return ports_.back().get();
}

// A port takes two descriptors and is open for good. One that is opened only because the numbers
// there are have to rest is not worth the last descriptors of a program that makes and destroys
// queue pairs fast.
Result<Qpn, port::SystemError> Adapter::find_number(engine::Engine& engine) {
  NumberPool& pool = numbers_[engine.number()];
  const Time now = engine::Engine::clock();
  if (const auto number = pool.take(now)) return *number;
  if (pool.resting() == 0 || descriptors_abound(2 * ports_.size())) {
    const auto port = open_port(engine);
    if (port.ok()) return *pool.take(now);
    if (pool.resting() == 0) return fail(port.error());
  }
  return *pool.take_resting();
}

Outcome<Qpn> Adapter::reserve_number(engine::Engine& engine) {
  AdapterPort* port = nullptr;
  Qpn number;
  {
    const std::lock_guard guard{lock_};
    const auto found = find_number(engine);
    if (!found.ok()) {
      say_no_port(found.error(), ports_.size());
      return fail(Errc::no_memory);
    }
    number = *found;
    port = port_with(number);
  }
  if (port->told_of || bring_up_ == nullptr) return number;
  auto h = engine.hold();
  if (port->told_of) return number;
  Undo reserved{[&] { release_number(h.token(), number, false); }};
  bring_up_->port_opened(h.token(), *port);
  port->told_of = true;
  reserved.done();
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

void Adapter::release_number(engine::Token&, Qpn qpn, bool known) {
  const std::lock_guard guard{lock_};
  AdapterPort& p = *port_with(qpn);
  p.pairs[index_of(qpn)] = nullptr;
  numbers_[p.engine->number()].give_back(qpn, known, engine::Engine::clock());
}

engine::Engine* Adapter::engine_of(Qpn qpn) {
  const std::lock_guard guard{lock_};
  const AdapterPort* p = port_with(qpn);
  return p != nullptr ? p->engine : nullptr;
}

QueuePair* Adapter::find(engine::Token& token, Qpn qpn) {
  const std::lock_guard guard{lock_};
  const AdapterPort* p = port_with(qpn);
  return p != nullptr && p->engine == &token.runtime() ? p->pairs[index_of(qpn)] : nullptr;
}

drive::DatagramDriver& Adapter::datagrams(engine::Token& token, Qpn qpn) {
  AdapterPort* p = nullptr;
  {
    const std::lock_guard guard{lock_};
    p = port_with(qpn);
  }
  if (p->datagrams == nullptr) {
    auto socket =
        std::make_unique<port::UdpSocket>(std::move(p->udp), drive::DatagramDriver::kBuffer);
    p->datagrams = &drive::DatagramDriver::start(token, *this, std::move(socket));
    if (config::options().ud == config::Ud::reliable || config::options().rc == config::Rc::udp) {
      p->datagrams->enable_channels(port_of(qpn), config::options().datagram_crc,
                                    config::options().rc == config::Rc::udp);
    }
  }
  return *p->datagrams;
}

Result<wdp::WdpSocketOwner::Callee, wire::RejReason> Adapter::called(engine::Token& token,
                                                                     drive::DatagramDriver&,
                                                                     const wire::WdpCtl& req,
                                                                     const wdp::Endpoint& from) {
  QueuePair* qp = find(token, req.destination);
  if (qp == nullptr || qp->transport().datagram_caller() == nullptr || bring_up_ == nullptr) {
    return fail(wire::RejReason::qpn_unknown);
  }
  return bring_up_->called(token, *qp, req, from);
}

void Adapter::start_came(engine::Token& token, drive::DatagramDriver& driver,
                         const wdp::RdStart& start) {
  AdapterPort* port = nullptr;
  {
    const std::lock_guard guard{lock_};
    port = port_with(make_qpn(driver.wdp_socket().channels().setup()->own_port, start.index));
  }
  if (port != nullptr && bring_up_ != nullptr) bring_up_->start_came(token, *port, start);
}

// At last channels say goodbye (spec/wdp-rd 2.4). Not where the thread that exits may be inside, as
// the handler of a signal.
void Adapter::flush_at_exit() {
  for (auto& e : engines_) e->flush_at_exit();
  // A port does not go. The lock is free when the engine is let go, for what comes then may need
  // it.
  const auto port_at = [this](size_t i) {
    const std::unique_lock guard{lock_, std::try_to_lock};
    return guard.owns_lock() && i < ports_.size() ? ports_[i].get() : nullptr;
  };
  size_t seen = 0;
  while (const AdapterPort* p = port_at(seen++)) {
    if (p->datagrams == nullptr || !p->engine->intact()) continue;
    auto h = engine::hold_at_exit(*p->engine);
    if (!h) return;
    p->engine->guard(
        h->token(), [&] { close_channels(h->token(), *p->datagrams); }, [] {});
  }
  for (auto& e : engines_) e->flush_at_exit();
}

bool Adapter::intact() const {
  return std::all_of(engines_.begin(), engines_.end(), [](const auto& e) { return e->intact(); });
}

// Threads of the program may be inside, and objects of it point here: it is never destroyed.
void Adapter::abandon_lost() {
  for (auto& e : engines_) e->abandon_lost();
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
