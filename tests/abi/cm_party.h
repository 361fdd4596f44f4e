// One process's side of some connections that are never idle: on each of them both sides send all
// the time, messages of many lengths whose every byte follows from their number. Party sees to it
// that what comes is what rdma_cm and the verbs promise, whatever becomes of the other side.
#pragma once

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "tests/abi/cm_counts.h"
#include "tests/abi/cm_fixture.h"

namespace weft::test {

class Link {
 public:
  static constexpr size_t kDepth = 8;
  static constexpr size_t kLongest = 70'000;  // longer than an FPDU

  // Takes the Id, which has a device and no queue pair yet. `why` is for the first thing that is
  // not as it has to be.
  Link(OwnedId id, std::ostream& why, Ports& ports)
      : id_(std::move(id)), why_(why), memory_(2 * kDepth * kLongest) {
    if (create_qp(id_.get()) != 0) fault("rdma_create_qp", errno);
    if (id_->qp == nullptr) return;
    ports.see(id_->qp);
    mr_ = rdma_reg_msgs(id_.get(), memory_.data(), memory_.size());
    if (mr_ == nullptr) fault("rdma_reg_msgs", errno);
    for (size_t i = 0; i < kDepth; ++i) post_receive();
  }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link() {
    if (mr_ != nullptr) rdma_dereg_mr(mr_);
  }

  rdma_cm_id* id() const { return id_.get(); }
  uint64_t messages() const { return received_; }

  void connected() {
    connected_ = true;
    for (size_t i = 0; i < kDepth; ++i) post_send();
  }
  // No connection any more, or none at all.
  void ended() {
    if (ended_) fault("ended twice", 0);
    ended_ = true;
    if (id_->qp->state != IBV_QPS_ERR && connected_) {
      ibv_qp_attr a{};
      ibv_qp_init_attr init{};
      ibv_query_qp(id_->qp, &a, IBV_QP_STATE, &init);
      if (a.qp_state != IBV_QPS_ERR) fault("the queue pair's state is", a.qp_state);
    }
  }
  // Ended, and each request that was ever posted has come back.
  bool over() const { return ended_ && receives_done_ == receives_ && sends_done_ == sends_; }
  std::string state() const {
    std::ostringstream s;
    s << "ended " << ended_ << ", receives " << receives_done_ << " of " << receives_ << ", sends "
      << sends_done_ << " of " << sends_;
    return s.str();
  }

  void turn() {
    ibv_wc wc{};
    while (ibv_poll_cq(id_->recv_cq, 1, &wc) > 0) receive_done(wc);
    while (ibv_poll_cq(id_->send_cq, 1, &wc) > 0) send_done(wc);
  }

 private:
  static size_t length_of(uint64_t number) {
    const uint64_t r = number * 0x9e3779b97f4a7c15U;
    return 1 + (r >> 33) % (r % 4 == 0 ? kLongest : 500);
  }
  static uint8_t byte_of(uint64_t number, size_t i) {
    return static_cast<uint8_t>(number * 31 + i * 7 + (i >> 8));
  }
  uint8_t* receive_slot(uint64_t n) { return &memory_[n % kDepth * kLongest]; }
  uint8_t* send_slot(uint64_t n) { return &memory_[(kDepth + n % kDepth) * kLongest]; }

  void fault(const char* what, long number) { why_ << what << ' ' << number << "; "; }

  void post_receive() {
    if (const int n = rdma_post_recv(id_.get(), reinterpret_cast<void*>(receives_),
                                     receive_slot(receives_), kLongest, mr_);
        n != 0) {
      fault("rdma_post_recv", errno);
    } else {
      ++receives_;
    }
  }
  void post_send() {
    uint8_t* bytes = send_slot(sends_);
    const size_t n = length_of(sends_);
    for (size_t i = 0; i < n; ++i) bytes[i] = byte_of(sends_, i);
    if (rdma_post_send(id_.get(), reinterpret_cast<void*>(sends_), bytes, n, mr_, 0) != 0) {
      fault("rdma_post_send", errno);
    } else {
      ++sends_;
    }
  }

  void receive_done(const ibv_wc& wc) {
    if (wc.wr_id != receives_done_) fault("a receive out of order:", static_cast<long>(wc.wr_id));
    ++receives_done_;
    if (wc.status != IBV_WC_SUCCESS) {
      receives_failed_ = true;
      if (wc.status != IBV_WC_WR_FLUSH_ERR) fault("a receive's status:", wc.status);
      return;
    }
    if (receives_failed_) fault("a receive succeeded after one failed", 0);
    const uint64_t number = received_++;
    const uint8_t* bytes = receive_slot(wc.wr_id);
    if (wc.byte_len != length_of(number)) fault("length of message", static_cast<long>(number));
    for (size_t i = 0; i < wc.byte_len; ++i) {
      if (bytes[i] != byte_of(number, i)) {
        fault("bytes of message", static_cast<long>(number));
        break;
      }
    }
    post_receive();
  }
  void send_done(const ibv_wc& wc) {
    if (wc.wr_id != sends_done_) fault("a send out of order:", static_cast<long>(wc.wr_id));
    ++sends_done_;
    if (wc.status == IBV_WC_SUCCESS) {
      if (sends_failed_) fault("a send succeeded after one failed", 0);
      if (!ended_) post_send();
      return;
    }
    // rdma_cm tells of the end; what is open is flushed (spec/rdmap 5.4).
    if (wc.status != IBV_WC_WR_FLUSH_ERR) fault("a send's status:", wc.status);
    sends_failed_ = true;
  }

  OwnedId id_;
  std::ostream& why_;
  std::vector<uint8_t> memory_;
  ibv_mr* mr_ = nullptr;
  bool connected_ = false;
  bool ended_ = false;
  bool receives_failed_ = false;
  bool sends_failed_ = false;
  uint64_t receives_ = 0, receives_done_ = 0, received_ = 0;
  uint64_t sends_ = 0, sends_done_ = 0;
};

class Party {
 public:
  // The port.
  uint16_t listen() {
    rdma_cm_id* id = nullptr;
    sockaddr_in at = loopback();
    if (rdma_create_id(channel_.get(), &id, nullptr, RDMA_PS_TCP) != 0 ||
        rdma_bind_addr(id, any_of(at)) != 0 || rdma_listen(id, 0) != 0) {
      why_ << "no listener: " << strerror(errno);
      return 0;
    }
    listener_.reset(id);
    return ntohs(rdma_get_src_port(id));
  }
  void connect(uint16_t port) {
    rdma_cm_id* id = nullptr;
    sockaddr_in to = loopback(port);
    if (rdma_create_id(channel_.get(), &id, nullptr, RDMA_PS_TCP) != 0 ||
        rdma_resolve_addr(id, nullptr, any_of(to), 2000) != 0) {
      why_ << "no way to port " << port << ": " << strerror(errno);
      return;
    }
    resolving_.emplace_back(id);
  }

  // All that can be done now. Connections that are over go.
  void turn() {
    for (pollfd p{channel_->fd, POLLIN, 0}; poll(&p, 1, 0) == 1;) {
      rdma_cm_event* e = nullptr;
      if (rdma_get_cm_event(channel_.get(), &e) != 0) {
        why_ << "rdma_get_cm_event: " << strerror(errno);
        return;
      }
      const rdma_cm_event_type kind = e->event;
      rdma_cm_id* id = e->id;
      rdma_ack_cm_event(e);
      on_event(kind, id);
    }
    for (const auto& l : links_) l->turn();
    std::erase_if(links_, [this](const auto& l) {
      if (l->over()) messages_of_the_past_ += l->messages();
      return l->over();
    });
  }

  size_t connections() const { return resolving_.size() + links_.size(); }
  uint64_t messages() const {
    uint64_t n = messages_of_the_past_;
    for (const auto& l : links_) n += l->messages();
    return n;
  }
  std::string states() const {
    std::string s;
    for (const auto& l : links_) s += l->state() + "\n";
    return s;
  }
  std::string why() const { return why_.str(); }
  const Ports& ports() const { return ports_; }

  // So far.
  size_t established = 0;
  size_t disconnected = 0;
  size_t refused = 0;

 private:
  Link* link_of(const rdma_cm_id* id) {
    for (const auto& l : links_) {
      if (l->id() == id) return l.get();
    }
    return nullptr;
  }

  void on_event(rdma_cm_event_type kind, rdma_cm_id* id) {
    Link* link = link_of(id);
    switch (kind) {
      case RDMA_CM_EVENT_ADDR_RESOLVED:
        if (rdma_resolve_route(id, 2000) != 0) why_ << "rdma_resolve_route: " << strerror(errno);
        return;
      case RDMA_CM_EVENT_ROUTE_RESOLVED: {
        const auto own = std::find_if(resolving_.begin(), resolving_.end(),
                                      [id](const OwnedId& r) { return r.get() == id; });
        links_.push_back(std::make_unique<Link>(std::move(*own), why_, ports_));
        resolving_.erase(own);
        if (rdma_connect(id, nullptr) != 0) why_ << "rdma_connect: " << strerror(errno);
        return;
      }
      case RDMA_CM_EVENT_CONNECT_REQUEST:
        links_.push_back(std::make_unique<Link>(OwnedId{id}, why_, ports_));
        if (rdma_accept(id, nullptr) != 0) {
          // Who asked is gone already.
          if (errno != ECONNRESET) why_ << "rdma_accept: " << strerror(errno);
          ++refused;
          links_.back()->ended();
        }
        return;
      case RDMA_CM_EVENT_ESTABLISHED:
        ++established;
        if (link == nullptr) {
          why_ << "established, and not known; ";
        } else {
          link->connected();
        }
        return;
      case RDMA_CM_EVENT_DISCONNECTED:
        ++disconnected;
        break;
      case RDMA_CM_EVENT_REJECTED:
      case RDMA_CM_EVENT_UNREACHABLE:
      case RDMA_CM_EVENT_CONNECT_ERROR:
        ++refused;
        break;
      default:
        why_ << "unasked " << rdma_event_str(kind) << "; ";
        return;
    }
    if (link == nullptr) {
      why_ << rdma_event_str(kind) << " of none that is there; ";
    } else {
      link->ended();
    }
  }

  OwnedChannel channel_{rdma_create_event_channel()};
  OwnedId listener_;
  std::ostringstream why_;
  Ports ports_;
  std::vector<OwnedId> resolving_;
  std::vector<std::unique_ptr<Link>> links_;
  uint64_t messages_of_the_past_ = 0;
};

}  // namespace weft::test
