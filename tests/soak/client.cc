// A process that connects to the servers, again and again, and asks for all that there is.
#include <arpa/inet.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "tests/soak/client_link.h"

namespace weft::soak {
namespace {

using namespace std::chrono_literals;

class Client : public WorkerProcess {
 public:
  Client(Ledger& ledger, size_t number, unsigned links)
      : WorkerProcess(ledger, number), seats_(links) {}

 private:
  enum class State : uint8_t { idle, resolving, connecting, open, finishing, flushing };
  struct Seat {
    State state = State::idle;
    ClientLink link;
    rdma_cm_id* id = nullptr;
    Clock::time_point since{};  // in this state
    ClientLink::Ending ending{};
  };

  void on_event(const rdma_cm_event& e) override;
  void on_completion(const ibv_wc& wc) override;
  void turn() override;
  bool done() const override {
    for (const Seat& s : seats_) {
      if (s.state != State::idle) return false;
    }
    return true;
  }

  uint16_t place(const Seat& s) const { return static_cast<uint16_t>(&s - seats_.data()); }
  void enter(Seat& s, State state) {
    s.state = state;
    s.since = Clock::now();
  }
  bool took_too_long(Clock::time_point since) const {
    return Clock::now() - std::max(since, patient_since()) > kPatience;
  }
  void begin(Seat& s);
  void connect(Seat& s);
  void drop(Seat& s, Link::Stage last);
  void break_off(Seat& s);
  void work(Seat& s);
  void settle(Seat& s);
  void finish(Seat& s);

  std::vector<Seat> seats_;
};

void Client::begin(Seat& s) {
  std::array<uint16_t, kMostWorkers> ports;
  size_t count = 0;
  for (const Worker& w : ledger_.workers) {
    const uint16_t port = w.port.load();
    if (w.role == Worker::Role::server && port != 0) ports[count++] = port;
  }
  enter(s, State::idle);
  if (count == 0) return;
  if (rdma_create_id(events_, &s.id, &s, RDMA_PS_TCP) != 0) {
    s.id = nullptr;
    excused("rdma_create_id", errno);
    return;
  }
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(ports[random(count)]);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  enter(s, State::resolving);
  if (rdma_resolve_addr(s.id, nullptr, reinterpret_cast<sockaddr*>(&to), 2000) != 0) {
    excused("rdma_resolve_addr", errno);
    drop(s, Link::Stage::none);
  }
}

void Client::connect(Seat& s) {
  const uint32_t link = ledger_.links.fetch_add(1);
  if (link >= kMostLinks) {
    ledger_.complain("more than %zu connections; the soak is too long for this ledger", kMostLinks);
    ledger_.stop.store(true);
    drop(s, Link::Stage::none);
    return;
  }
  Link& l = ledger_.link[link];
  l.client.worker.store(static_cast<uint8_t>(number_));
  l.client.incarnation.store(incarnation_);
  if (!make_pair(s.id)) {
    drop(s, Link::Stage::none);
    return;
  }
  if (const int e = s.link.prepare(s.id, domain_, place(s), link); e != 0) {
    excused("registering memory or posting receives", e);
    drop(s, Link::Stage::none);
    return;
  }
  rdma_conn_param p{};
  p.private_data = &link;
  p.private_data_len = sizeof link;
  p.responder_resources = p.initiator_depth = 8;
  p.retry_count = p.rnr_retry_count = 7;
  enter(s, State::connecting);
  if (rdma_connect(s.id, &p) != 0) {
    excused("rdma_connect", errno);
    drop(s, Link::Stage::none);
  }
}

void Client::drop(Seat& s, Link::Stage last) {
  if (s.id != nullptr && s.id->qp == nullptr) {
    rdma_destroy_id(s.id);  // it has not come as far as the link
  } else {
    s.link.drop(last);
  }
  s.id = nullptr;
  enter(s, State::idle);
}

void Client::on_event(const rdma_cm_event& e) {
  Seat& s = *static_cast<Seat*>(e.id->context);
  if (e.id != s.id) return;  // of an identifier that is gone
  switch (e.event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      if (rdma_resolve_route(s.id, 2000) != 0) {
        excused("rdma_resolve_route", errno);
        drop(s, Link::Stage::none);
      }
      return;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      connect(s);
      return;
    case RDMA_CM_EVENT_ESTABLISHED: {
      Welcome welcome{};
      std::memcpy(&welcome, e.param.conn.private_data, sizeof welcome);
      s.link.opened(ledger_, me_, welcome);
      me_.connections.add();
      s.ending = static_cast<ClientLink::Ending>(random(ClientLink::kEndings));
      enter(s, State::open);
      return;
    }
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_REJECTED:
      me_.refused_by_peer.add();
      drop(s, Link::Stage::none);
      return;
    case RDMA_CM_EVENT_DISCONNECTED:
      if (s.state == State::open || s.state == State::finishing) {
        me_.ended_by_peer.add();
        break_off(s);
      }
      return;
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
      return;
    default:
      ledger_.complain("client %zu: %s", number_, rdma_event_str(e.event));
  }
}

// What is under way comes back with errors, and is waited for.
void Client::break_off(Seat& s) {
  rdma_disconnect(s.id);
  if (!s.link.post_marker()) excused("ibv_post_send", errno);
  enter(s, State::flushing);
}

void Client::on_completion(const ibv_wc& wc) {
  const WorkId id = WorkId::unpack(wc.wr_id);
  if (id.place >= seats_.size()) {
    ledger_.complain("client %zu: a completion of nothing, wr_id %lx", number_, wc.wr_id);
    return;
  }
  Seat& s = seats_[id.place];
  if (id.generation != s.link.generation()) return;
  s.link.completed(wc, id);
  if (s.link.broken() && (s.state == State::open || s.state == State::finishing)) {
    me_.ended_by_peer.add();
    break_off(s);
  }
}

void Client::turn() {
  for (Seat& s : seats_) {
    switch (s.state) {
      case State::idle:
        if (!ledger_.stop.load() && Clock::now() - s.since > 10ms) begin(s);
        break;
      case State::resolving:
      case State::connecting:
        if (took_too_long(s.since)) {
          ledger_.complain("client %zu: no word of a connection that was asked for", number_);
          drop(s, Link::Stage::none);
        }
        break;
      case State::open:
        work(s);
        break;
      case State::finishing:
        if (s.link.quiet()) {
          s.link.say_clean();
          me_.ended_by_us.add();
          break_off(s);
        } else if (took_too_long(s.link.progress())) {
          ledger_.complain("link %u: %lu requests do not complete, or the answer does not come",
                           s.link.link(), s.link.under_way());
          drop(s, Link::Stage::abandoned);
        }
        break;
      case State::flushing:
        if (s.link.flushed()) {
          drop(s, Link::Stage::ended);
        } else if (took_too_long(s.since)) {
          ledger_.complain("link %u: %lu requests and %u receives are not flushed", s.link.link(),
                           s.link.under_way(), s.link.receives());
          drop(s, Link::Stage::abandoned);
        }
        break;
    }
  }
}

void Client::work(Seat& s) {
  if (took_too_long(s.link.progress())) {
    ledger_.complain("link %u: nothing happens; %lu requests are under way", s.link.link(),
                     s.link.under_way());
    drop(s, Link::Stage::abandoned);
    return;
  }
  if (ledger_.stop.load()) {
    settle(s);
    return;
  }
  if (!s.link.post_some(random(UINT64_MAX))) {
    excused("ibv_post_send", errno);
    return;
  }
  if (random(800) == 0) finish(s);
}

// Nothing new; what is there comes to its end.
void Client::settle(Seat& s) {
  if (!s.link.post_marker()) excused("ibv_post_send", errno);
  enter(s, State::finishing);
}

void Client::finish(Seat& s) {
  using Ending = ClientLink::Ending;
  switch (s.ending) {
    case Ending::polite:
      settle(s);
      return;
    case Ending::abrupt:
      drop(s, Link::Stage::abandoned);
      break;
    case Ending::error_state: {
      ibv_qp_attr a{};
      a.qp_state = IBV_QPS_ERR;
      if (ibv_modify_qp(s.id->qp, &a, IBV_QP_STATE) != 0) excused("ibv_modify_qp", errno);
      break_off(s);
      break;
    }
    case Ending::wrong_key:
      s.link.post_wrong_key();
      s.ending = Ending::disconnect;  // should it not be noticed, which is complained of
      return;
    case Ending::disconnect:
      break_off(s);
      break;
  }
  me_.ended_by_us.add();
}

}  // namespace

void be_client(Ledger& ledger, size_t number, unsigned links) {
  {
    Client client(ledger, number, links);
    client.run();
  }
  _exit(0);
}

}  // namespace weft::soak
