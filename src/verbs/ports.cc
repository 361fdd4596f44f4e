#include "verbs/ports.h"

#include <sys/resource.h>

#include <algorithm>
#include <new>

#include "base/log.h"
#include "base/undo.h"
#include "config/options.h"
#include "engine/exit_hold.h"
#include "port/adapter_port.h"
#include "port/udp_socket.h"
#include "verbs/queue_pair.h"

namespace weft::verbs {
namespace {

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

}  // namespace

bool has_fixed_numbers() {
  const config::Options& o = config::options();
  return o.uc == config::UcBringUp::none && o.uc_port != 0;
}

Ports::Ports(size_t engines, stats::DeviceCounters& counters, BringUp* bring_up)
    : counters_(counters), bring_up_(bring_up), numbers_(engines) {}

Result<AdapterPort*, port::SystemError> Ports::open_port(engine::Engine& engine) {
  auto claim = port::claim_port(static_cast<uint16_t>(port_wished(ports_.size())));
  if (!claim.ok()) {
    counters_.ports_refused.add_shared();
    return fail(claim.error());
  }
  counters_.ports_opened.add_shared();
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
Result<Qpn, port::SystemError> Ports::find_number(engine::Engine& engine) {
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

Outcome<Qpn> Ports::take_number(engine::Engine& engine) {
  const std::lock_guard guard{lock_};
  const auto number = find_number(engine);
  if (number.ok()) return *number;
  say_no_port(number.error(), ports_.size());
  return fail(Errc::no_memory);
}

Outcome<Qpn> Ports::reserve_number(engine::Engine& engine) {
  const Outcome<Qpn> number = take_number(engine);
  if (!number.ok() || bring_up_ == nullptr) return number;
  AdapterPort* const port = port_with(*number);
  if (port->told_of) return number;
  auto h = engine.hold();
  if (port->told_of) return number;
  Undo reserved{[&] { release_number(h.token(), *number, false); }};
  bring_up_->port_opened(h.token(), *port);
  port->told_of = true;
  reserved.done();
  return number;
}

AdapterPort* Ports::port_with(Qpn qpn) {
  const std::lock_guard guard{lock_};
  for (auto& p : ports_) {
    if (p->number == port_of(qpn)) return p.get();
  }
  return nullptr;
}

void Ports::publish(engine::Token&, QueuePair& qp) {
  port_with(qp.number())->pairs[index_of(qp.number())] = &qp;
}

void Ports::release_number(engine::Token&, Qpn qpn, bool known) {
  AdapterPort& p = *port_with(qpn);
  p.pairs[index_of(qpn)] = nullptr;
  const std::lock_guard guard{lock_};
  numbers_[p.engine->number()].give_back(qpn, known, engine::Engine::clock());
}

engine::Engine* Ports::engine_of(Qpn qpn) {
  const AdapterPort* p = port_with(qpn);
  return p != nullptr ? p->engine : nullptr;
}

QueuePair* Ports::find(engine::Token& token, Qpn qpn) {
  const AdapterPort* p = port_with(qpn);
  return p != nullptr && p->engine == &token.runtime() ? p->pairs[index_of(qpn)] : nullptr;
}

drive::DatagramDriver& Ports::datagrams(engine::Token& token, Qpn qpn) {
  AdapterPort* const p = port_with(qpn);
  if (p->datagrams == nullptr) {
    // The port keeps its number where there is no memory for the driver.
    port::Fd shared = p->udp.duplicate();
    if (!shared.valid()) throw std::bad_alloc{};
    auto socket =
        std::make_unique<port::UdpSocket>(std::move(shared), drive::DatagramDriver::kBuffer);
    p->datagrams = &drive::DatagramDriver::start(token, *this, std::move(socket));
    p->udp.reset();
    if (config::options().ud == config::Ud::reliable || config::options().rc == config::Rc::udp) {
      p->datagrams->enable_channels(port_of(qpn), config::options().datagram_crc,
                                    config::options().rc == config::Rc::udp);
    }
  }
  return *p->datagrams;
}

Result<wdp::WdpSocketOwner::Callee, wire::RejReason> Ports::called(engine::Token& token,
                                                                   drive::DatagramDriver&,
                                                                   const wire::WdpCtl& req,
                                                                   const wdp::Endpoint& from) {
  QueuePair* qp = find(token, req.destination);
  if (qp == nullptr || qp->transport().datagram_caller() == nullptr || bring_up_ == nullptr) {
    return fail(wire::RejReason::qpn_unknown);
  }
  return bring_up_->called(token, *qp, req, from);
}

void Ports::start_came(engine::Token& token, drive::DatagramDriver& driver,
                       const wdp::RdStart& start) {
  AdapterPort* const port =
      port_with(make_qpn(driver.wdp_socket().channels().setup()->own_port, start.index));
  if (port != nullptr && bring_up_ != nullptr) bring_up_->start_came(token, *port, start);
}

bool Ports::close_channels_at_exit() {
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
    if (!h) return false;
    p->engine->guard(
        h->token(), [&] { p->datagrams->close_channels(h->token()); }, [] {});
  }
  return true;
}

// Without the lock: a thread that is not there in the child may hold it.
void Ports::abandon_in_child() {
  for (auto& p : ports_) {
    p->udp.reset();
    p->tcp.close();
  }
}

}  // namespace weft::verbs
