// A process that is connected to: checks what comes, and answers.
#include <arpa/inet.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "tests/soak/link_id.h"
#include "tests/soak/worker.h"

namespace weft::soak {
namespace {

constexpr size_t kSeats = 96;
constexpr uint32_t kReplies = 8;  // under way
constexpr uint64_t kAnswerEvery = 4;

// The server's end of one connection.
struct Seat {
  // Memory: what the client writes to, what is received, what is sent.
  static constexpr size_t kReceived = Layout::kBytes;
  static constexpr size_t kSent = kReceived + kReceives * kMostBytes;
  static constexpr size_t kMemory = kSent + kReplies * kMostBytes;

  enum class State : uint8_t { free, accepting, open, flushing };
  State state = State::free;
  std::unique_ptr<std::byte[]> memory = std::make_unique_for_overwrite<std::byte[]>(kMemory);
  rdma_cm_id* id = nullptr;
  ibv_mr* region = nullptr;
  uint16_t generation = 0;
  uint32_t link = 0;
  uint64_t received = 0;
  uint64_t answered = 0;
  uint64_t replies = 0;
  uint64_t replies_done = 0;
  uint32_t receives = 0;  // posted
  Clock::time_point since{};

  bool flushed() const { return receives == 0 && replies == replies_done; }
};

class Server : public WorkerProcess {
 public:
  Server(Ledger& ledger, size_t number) : WorkerProcess(ledger, number), seats_(kSeats) {}

 private:
  void on_event(const rdma_cm_event& e) override;
  void on_completion(const ibv_wc& wc) override;
  void turn() override;
  bool done() const override {
    for (const Seat& s : seats_) {
      if (s.state != Seat::State::free) return false;
    }
    return true;
  }

  uint16_t place(const Seat& s) const { return static_cast<uint16_t>(&s - seats_.data()); }
  Link::Half& half(const Seat& s) { return ledger_.link[s.link].server; }
  void listen();
  void request(const rdma_cm_event& e);
  bool accept(Seat& s, rdma_cm_id* id);
  void break_off(Seat& s);
  void drop(Seat& s, Link::Stage last);
  bool post_receive(Seat& s, uint32_t slot);
  void received(Seat& s, const ibv_wc& wc, uint32_t slot);
  void answer(Seat& s);

  std::vector<Seat> seats_;
  rdma_cm_id* listener_ = nullptr;
};

void Server::listen() {
  if (listener_ == nullptr && rdma_create_id(events_, &listener_, nullptr, RDMA_PS_TCP) != 0) {
    listener_ = nullptr;
    excused("rdma_create_id", errno);
    return;
  }
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool good = rdma_bind_addr(listener_, reinterpret_cast<sockaddr*>(&at)) == 0 &&
                    rdma_listen(listener_, 64) == 0;
  if (!good) {
    excused("rdma_bind_addr and rdma_listen", errno);
    rdma_destroy_id(listener_);
    listener_ = nullptr;
    return;
  }
  me_.port.store(ntohs(rdma_get_src_port(listener_)));
}

void Server::request(const rdma_cm_event& e) {
  uint32_t link = kMostLinks;
  std::memcpy(&link, e.param.conn.private_data, sizeof link);
  if (e.param.conn.private_data_len < sizeof link || link >= kMostLinks) {
    ledger_.complain("server %zu: a request with other private data than was given", number_);
    rdma_destroy_id(e.id);
    return;
  }
  for (Seat& s : seats_) {
    if (s.state != Seat::State::free) continue;
    s.link = link;
    if (!accept(s, e.id)) {
      rdma_reject(e.id, nullptr, 0);
      drop(s, Link::Stage::none);
    }
    return;
  }
  rdma_reject(e.id, nullptr, 0);
  rdma_destroy_id(e.id);
}

bool Server::accept(Seat& s, rdma_cm_id* id) {
  s.id = id;
  id->context = &s;
  ++s.generation;
  s.received = s.answered = s.replies = s.replies_done = 0;
  s.receives = 0;
  s.since = Clock::now();
  s.state = Seat::State::accepting;
  std::memset(s.memory.get(), 0, 4096);
  if (!make_pair(id)) return false;
  s.region = ibv_reg_mr(domain_, s.memory.get(), Seat::kMemory,
                        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                            IBV_ACCESS_REMOTE_ATOMIC);
  if (s.region == nullptr) {
    excused("ibv_reg_mr", errno);
    return false;
  }
  for (uint32_t i = 0; i < kReceives; ++i) {
    if (!post_receive(s, i)) {
      excused("ibv_post_recv", errno);
      return false;
    }
  }
  half(s).worker.store(static_cast<uint8_t>(number_));
  half(s).incarnation.store(incarnation_);
  const Welcome welcome{reinterpret_cast<uint64_t>(s.memory.get()), s.region->rkey};
  rdma_conn_param p{};
  p.private_data = &welcome;
  p.private_data_len = sizeof welcome;
  p.responder_resources = p.initiator_depth = 8;
  p.rnr_retry_count = 7;
  if (rdma_accept(id, &p) == 0) return true;
  // The client may be gone by now.
  if (errno != ECONNRESET && errno != EPIPE && errno != ENOTCONN) excused("rdma_accept", errno);
  return false;
}

void Server::drop(Seat& s, Link::Stage last) {
  if (s.id->qp != nullptr) rdma_destroy_qp(s.id);
  if (s.region != nullptr) ibv_dereg_mr(s.region);
  rdma_destroy_id(s.id);
  s.region = nullptr;
  s.id = nullptr;
  ++s.generation;
  if (s.state == Seat::State::open || s.state == Seat::State::flushing) half(s).stage.store(last);
  s.state = Seat::State::free;
}

void Server::on_event(const rdma_cm_event& e) {
  if (e.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
    request(e);
    return;
  }
  if (e.id == listener_ || e.id->context == nullptr) {
    ledger_.complain("server %zu: %s", number_, rdma_event_str(e.event));
    return;
  }
  Seat& s = *static_cast<Seat*>(e.id->context);
  if (e.id != s.id) return;
  switch (e.event) {
    case RDMA_CM_EVENT_ESTABLISHED:
      me_.connections.add();
      half(s).stage.store(Link::Stage::open);
      s.state = Seat::State::open;
      return;
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_REJECTED:
      me_.refused_by_peer.add();
      drop(s, Link::Stage::none);
      return;
    case RDMA_CM_EVENT_DISCONNECTED:
      if (s.state == Seat::State::accepting) {
        drop(s, Link::Stage::none);
      } else if (s.state == Seat::State::open) {
        break_off(s);
      }
      return;
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
      return;
    default:
      ledger_.complain("server %zu: %s", number_, rdma_event_str(e.event));
  }
}

void Server::break_off(Seat& s) {
  me_.ended_by_peer.add();
  rdma_disconnect(s.id);
  s.state = Seat::State::flushing;
  s.since = Clock::now();
}

bool Server::post_receive(Seat& s, uint32_t slot) {
  ibv_sge piece{reinterpret_cast<uint64_t>(&s.memory[Seat::kReceived + slot * kMostBytes]),
                kMostBytes, s.region->lkey};
  ibv_recv_wr w{};
  w.wr_id = WorkId{s.generation, place(s), true, slot}.pack();
  w.sg_list = &piece;
  w.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  errno = ibv_post_recv(s.id->qp, &w, &bad);
  if (errno == 0) ++s.receives;
  return errno == 0;
}

void Server::on_completion(const ibv_wc& wc) {
  const WorkId id = WorkId::unpack(wc.wr_id);
  if (id.place >= seats_.size()) {
    ledger_.complain("server %zu: a completion of nothing, wr_id %lx", number_, wc.wr_id);
    return;
  }
  Seat& s = seats_[id.place];
  if (id.generation != s.generation) return;
  if (id.receive) {
    --s.receives;
    if (wc.status == IBV_WC_SUCCESS) received(s, wc, id.number);
  } else {
    if (s.replies_done == s.replies) {
      ledger_.complain("link %u: a reply completed twice", s.link);
      return;
    }
    ++s.replies_done;
    if (wc.status == IBV_WC_SUCCESS) half(s).sent.add();
  }
  if (wc.status == IBV_WC_SUCCESS) return;
  // "General error" is a client's that ended its queue pair by itself.
  if (wc.status != IBV_WC_WR_FLUSH_ERR && wc.status != IBV_WC_RETRY_EXC_ERR &&
      wc.status != IBV_WC_REM_OP_ERR && wc.status != IBV_WC_GENERAL_ERR) {
    ledger_.complain("link %u: at the server, '%s'", s.link, ibv_wc_status_str(wc.status));
  }
  if (s.state == Seat::State::open) break_off(s);
}

void Server::received(Seat& s, const ibv_wc& wc, uint32_t slot) {
  const uint64_t m = s.received++;
  const Pattern p(s.link, MessageKind::to_server, m);
  const size_t n = p.length(MessageKind::to_server);
  const bool written = wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM;
  const std::byte* const from =
      &s.memory[written ? Layout::message(m) : Seat::kReceived + slot * kMostBytes];
  const bool named = (wc.wc_flags & IBV_WC_WITH_IMM) == 0 || ntohl(wc.imm_data) == m;
  if (wc.byte_len != n || p.check(from, n) != n || !named) {
    ledger_.complain(
        "link %u: message %lu (%s) is wrong: %u bytes and not %zu, first wrong %zu, "
        "immediate %u",
        s.link, m, written ? "written" : "sent", wc.byte_len, n, p.check(from, n),
        named ? 0 : ntohl(wc.imm_data));
  }
  half(s).received.add();
  me_.messages_received.add();
  me_.bytes_verified.add(n);
  post_receive(s, slot);
  if (s.received - s.answered >= kAnswerEvery) answer(s);
}

void Server::answer(Seat& s) {
  if (s.state != Seat::State::open || s.replies - s.replies_done >= kReplies) return;
  const Pattern p(s.link, MessageKind::to_client, s.replies);
  const size_t n = p.length(MessageKind::to_client);
  std::byte* const from = &s.memory[Seat::kSent + s.replies % kReplies * kMostBytes];
  p.fill(from, n);
  std::memcpy(from, &s.received, sizeof s.received);
  ibv_sge piece{reinterpret_cast<uint64_t>(from), static_cast<uint32_t>(n), s.region->lkey};
  ibv_send_wr w{};
  w.wr_id =
      WorkId{s.generation, place(s), false, static_cast<uint32_t>(s.replies) & WorkId::kNumbers}
          .pack();
  w.sg_list = &piece;
  w.num_sge = 1;
  w.opcode = IBV_WR_SEND;
  w.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  if (const int e = ibv_post_send(s.id->qp, &w, &bad); e != 0) {
    excused("ibv_post_send of a reply", e);
    return;
  }
  ++s.replies;
  s.answered = s.received;
}

void Server::turn() {
  if (me_.port.load() == 0 && !ledger_.stop.load()) listen();
  for (Seat& s : seats_) {
    if (s.state == Seat::State::open && s.received != s.answered) answer(s);
    if (s.state != Seat::State::flushing) continue;
    if (s.flushed()) {
      drop(s, Link::Stage::ended);
    } else if (Clock::now() - std::max(s.since, patient_since()) > kPatience) {
      ledger_.complain("link %u: %u receives and %lu replies of the server are not flushed", s.link,
                       s.receives, s.replies - s.replies_done);
      drop(s, Link::Stage::abandoned);
    }
  }
}

}  // namespace

void be_server(Ledger& ledger, size_t number) {
  {
    Server server(ledger, number);
    server.run();
  }
  _exit(0);
}

}  // namespace weft::soak
