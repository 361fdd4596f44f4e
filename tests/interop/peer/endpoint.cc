#include "endpoint.h"

#include <arpa/inet.h>
#include <poll.h>
#include <rdma/rdma_verbs.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace weft::interop {
namespace {

constexpr int kPatienceMs = 20'000;  // an emulated machine is slow
constexpr size_t kWindowName = 12;   // bytes of private data: address and key of the window
constexpr size_t kPlaces = 3;        // of a scattered read
// Away from a key that there is, and from its neighbours: their last byte is the same once in 256
// times.
constexpr uint32_t kWrongKey = 0x400000;

uint8_t byte_of(uint64_t number, size_t i) {
  return static_cast<uint8_t>(number * 31 + i * 7 + (i >> 8) + 1);
}
void fill(uint8_t* to, size_t n, uint64_t number) {
  for (size_t i = 0; i < n; ++i) to[i] = byte_of(number, i);
}
void compare(const uint8_t* bytes, size_t n, uint64_t number, const std::string& what) {
  for (size_t i = 0; i < n; ++i) {
    if (bytes[i] != byte_of(number, i)) {
      throw Unexpected(what + ": byte " + std::to_string(i) + " of " + std::to_string(n) + " is " +
                       std::to_string(bytes[i]) + " and not " + std::to_string(byte_of(number, i)));
    }
  }
}
// Patterns that no message's number has.
constexpr uint64_t kWindowPattern = 1'000'003;
constexpr uint64_t kWritePattern = 2'000'003;
constexpr uint64_t kPrivatePattern = 3'000'003;

sockaddr_in address_of(const std::string& text, uint16_t port) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(port);
  if (inet_pton(AF_INET, text.c_str(), &a.sin_addr) != 1) throw Unexpected(text + " is no address");
  return a;
}

}  // namespace

void fail_call(const std::string& call) {
  throw Unexpected(call + ": " + strerror(errno));
}

Endpoint::Endpoint(std::string address, uint16_t port)
    : address_(std::move(address)),
      port_(port),
      channel_(rdma_create_event_channel()),
      window_(kWindow),
      local_(kMessages + kWindow) {
  if (channel_ == nullptr) fail_call("rdma_create_event_channel");
}

Endpoint::~Endpoint() {
  drop();
  early_requests_.clear();  // an identifier waits until its events are acknowledged
  if (listener_ != nullptr) rdma_destroy_id(listener_);
  rdma_destroy_event_channel(channel_);
}

// --- connections

Endpoint::Event Endpoint::next_event(const std::string& awaited) {
  for (;;) {
    pollfd p{channel_->fd, POLLIN, 0};
    if (poll(&p, 1, kPatienceMs) != 1) throw Unexpected("no event came; awaited: " + awaited);
    rdma_cm_event* e = nullptr;
    if (rdma_get_cm_event(channel_, &e) != 0) fail_call("rdma_get_cm_event");
    // Only devices of InfiniBand have it.
    if (e->event != RDMA_CM_EVENT_TIMEWAIT_EXIT) return {e, &rdma_ack_cm_event};
    rdma_ack_cm_event(e);
  }
}

// The request of the next connection may come before the end of this one does: they are of two TCP
// connections.
Endpoint::Event Endpoint::next_of_connection(const std::string& awaited) {
  for (;;) {
    Event e = next_event(awaited);
    if (e->event != RDMA_CM_EVENT_CONNECT_REQUEST) return e;
    early_requests_.push_back(std::move(e));
  }
}

Endpoint::Event Endpoint::next_request() {
  if (early_requests_.empty()) return next_event("RDMA_CM_EVENT_CONNECT_REQUEST");
  Event e = std::move(early_requests_.front());
  early_requests_.pop_front();
  return e;
}

void Endpoint::expect_event(rdma_cm_event_type kind) {
  const auto e = next_of_connection(rdma_event_str(kind));
  if (e->event != kind) {
    throw Unexpected(std::string{rdma_event_str(e->event)} + ", status " +
                     std::to_string(e->status) + ", and not " + rdma_event_str(kind));
  }
}

void Endpoint::make_pair() {
  ibv_qp_init_attr a{};
  a.cap = {.max_send_wr = kSlots,
           .max_recv_wr = kSlots,
           .max_send_sge = kPlaces,
           .max_recv_sge = 1,
           .max_inline_data = 0};
  a.qp_type = IBV_QPT_RC;
  a.sq_sig_all = 1;
  if (rdma_create_qp(id_, nullptr, &a) != 0) fail_call("rdma_create_qp");
  fill(window_.data(), window_.size(), kWindowPattern);
  constexpr int kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  window_mr_ = ibv_reg_mr(id_->pd, window_.data(), window_.size(), kAll);
  local_mr_ = ibv_reg_mr(id_->pd, local_.data(), local_.size(), kAll);
  if (window_mr_ == nullptr || local_mr_ == nullptr) fail_call("ibv_reg_mr");
  sends_ = receives_ = received_ = messages_ = 0;
}

std::vector<uint8_t> Endpoint::private_data(size_t bytes) const {
  std::vector<uint8_t> data(bytes);
  fill(data.data(), bytes, kPrivatePattern);
  if (bytes >= kWindowName && window_mr_ != nullptr) {
    const auto at = reinterpret_cast<uint64_t>(window_.data());
    for (size_t i = 0; i < 8; ++i) data[i] = static_cast<uint8_t>(at >> (56 - 8 * i));
    for (size_t i = 0; i < 4; ++i)
      data[8 + i] = static_cast<uint8_t>(window_mr_->rkey >> (24 - 8 * i));
  }
  return data;
}

void Endpoint::learn_window(const rdma_conn_param& from, size_t bytes) {
  if (from.private_data_len != bytes) {
    throw Unexpected(std::to_string(from.private_data_len) + " bytes of private data and not " +
                     std::to_string(bytes));
  }
  if (bytes == 0) return;
  const auto* data = static_cast<const uint8_t*>(from.private_data);
  std::vector<uint8_t> whole(bytes);
  fill(whole.data(), bytes, kPrivatePattern);
  const size_t named = bytes < kWindowName ? 0 : kWindowName;
  if (!std::equal(whole.begin() + static_cast<ptrdiff_t>(named), whole.end(), data + named)) {
    throw Unexpected("private data has other bytes than were given");
  }
  if (named == 0) return;
  peer_address_ = 0;
  peer_key_ = 0;
  for (size_t i = 0; i < 8; ++i) peer_address_ = peer_address_ << 8 | data[i];
  for (size_t i = 8; i < kWindowName; ++i) peer_key_ = peer_key_ << 8 | data[i];
}

void Endpoint::listen() {
  if (rdma_create_id(channel_, &listener_, nullptr, RDMA_PS_TCP) != 0) fail_call("rdma_create_id");
  sockaddr_in at = address_of(address_, port_);
  if (rdma_bind_addr(listener_, reinterpret_cast<sockaddr*>(&at)) != 0) fail_call("rdma_bind_addr");
  if (rdma_listen(listener_, 16) != 0) fail_call("rdma_listen");
}

void Endpoint::request(size_t bytes) {
  const auto e = next_request();
  if (e->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
    throw Unexpected(std::string{rdma_event_str(e->event)} + " and no connection request");
  }
  id_ = e->id;
  asked_ = e->param.conn;
  learn_window(asked_, bytes);
  make_pair();
}

void Endpoint::accept(size_t bytes) {
  const auto data = private_data(bytes);
  rdma_conn_param p{};
  p.private_data = data.data();
  p.private_data_len = static_cast<uint8_t>(bytes);
  p.responder_resources = std::min(asked_.responder_resources, reads_);
  p.initiator_depth = std::min(asked_.initiator_depth, reads_);
  if (rdma_accept(id_, &p) != 0) fail_call("rdma_accept");
}

void Endpoint::reject(size_t bytes) {
  const auto data = private_data(bytes);
  if (rdma_reject(id_, data.data(), static_cast<uint8_t>(bytes)) != 0) fail_call("rdma_reject");
}

void Endpoint::resolve(bool with_pair) {
  if (rdma_create_id(channel_, &id_, nullptr, RDMA_PS_TCP) != 0) fail_call("rdma_create_id");
  sockaddr_in to = address_of(address_, port_);
  if (rdma_resolve_addr(id_, nullptr, reinterpret_cast<sockaddr*>(&to), kPatienceMs) != 0)
    fail_call("rdma_resolve_addr");
  expect_event(RDMA_CM_EVENT_ADDR_RESOLVED);
  if (rdma_resolve_route(id_, kPatienceMs) != 0) fail_call("rdma_resolve_route");
  expect_event(RDMA_CM_EVENT_ROUTE_RESOLVED);
  if (with_pair) make_pair();
}

bool Endpoint::try_connect(size_t bytes) {
  const auto data = private_data(bytes);
  rdma_conn_param p{};
  p.private_data = data.data();
  p.private_data_len = static_cast<uint8_t>(bytes);
  p.responder_resources = p.initiator_depth = reads_;
  p.retry_count = p.rnr_retry_count = 7;
  p.qp_num = 7;  // counts where the program sees to its queue pair itself
  return rdma_connect(id_, &p) == 0;
}

void Endpoint::connect(size_t bytes) {
  if (!try_connect(bytes)) fail_call("rdma_connect");
}

void Endpoint::connect_in_vain(size_t bytes) {
  if (!try_connect(bytes)) return;
  const auto e = next_of_connection("the end of the attempt");
  if (e->event != RDMA_CM_EVENT_REJECTED && e->event != RDMA_CM_EVENT_UNREACHABLE &&
      e->event != RDMA_CM_EVENT_CONNECT_ERROR) {
    throw Unexpected(std::string{rdma_event_str(e->event)} + ", and not the end of the attempt");
  }
}

void Endpoint::expect_response() {
  expect_event(RDMA_CM_EVENT_CONNECT_RESPONSE);
}

void Endpoint::expect_established() {
  expect_event(RDMA_CM_EVENT_ESTABLISHED);
}

void Endpoint::expect_established(size_t bytes) {
  const auto e = next_of_connection("RDMA_CM_EVENT_ESTABLISHED");
  if (e->event != RDMA_CM_EVENT_ESTABLISHED) {
    throw Unexpected(std::string{rdma_event_str(e->event)} + ", status " +
                     std::to_string(e->status) + ", and not established");
  }
  learn_window(e->param.conn, bytes);
}

void Endpoint::expect_rejected(size_t bytes) {
  const auto e = next_of_connection("RDMA_CM_EVENT_REJECTED");
  if (e->event != RDMA_CM_EVENT_REJECTED) {
    throw Unexpected(std::string{rdma_event_str(e->event)} + ", status " +
                     std::to_string(e->status) + ", and not rejected");
  }
  learn_window(e->param.conn, bytes);
}

void Endpoint::disconnect() {
  if (rdma_disconnect(id_) != 0) fail_call("rdma_disconnect");
}

void Endpoint::expect_disconnected() {
  expect_event(RDMA_CM_EVENT_DISCONNECTED);
}

void Endpoint::fail_pair() {
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_ERR;
  if (ibv_modify_qp(id_->qp, &a, IBV_QP_STATE) != 0) fail_call("ibv_modify_qp");
}

void Endpoint::drop() {
  if (id_ == nullptr) return;
  if (id_->qp != nullptr) rdma_destroy_qp(id_);
  if (window_mr_ != nullptr) ibv_dereg_mr(window_mr_);
  if (local_mr_ != nullptr) ibv_dereg_mr(local_mr_);
  window_mr_ = local_mr_ = nullptr;
  rdma_destroy_id(id_);
  id_ = nullptr;
}

// --- requests

void Endpoint::post_receive(size_t bytes) {
  if (rdma_post_recv(id_, nullptr, slot(kSlots / 2 + receives_ % (kSlots / 2)), bytes, local_mr_) !=
      0) {
    fail_call("rdma_post_recv");
  }
  ++receives_;
}

void Endpoint::post_send(ibv_wr_opcode opcode, size_t bytes, unsigned flags, bool wrong_key) {
  uint8_t* from = slot(sends_ % (kSlots / 2));
  fill(from, bytes, sends_);
  ibv_sge piece{reinterpret_cast<uint64_t>(from), static_cast<uint32_t>(bytes), local_mr_->lkey};
  ibv_send_wr w{};
  w.sg_list = &piece;
  w.num_sge = 1;
  w.opcode = opcode;
  w.send_flags = flags;
  if (opcode == IBV_WR_SEND_WITH_INV) w.invalidate_rkey = peer_key_ + (wrong_key ? kWrongKey : 0);
  post(w);
  ++sends_;
}

void Endpoint::post_remote(ibv_wr_opcode opcode, size_t bytes, const Where& where) {
  uint8_t* at = remote();
  const bool reads = opcode != IBV_WR_RDMA_WRITE && opcode != IBV_WR_RDMA_WRITE_WITH_IMM;
  if (reads) {
    std::fill_n(at, bytes, uint8_t{0});
  } else {
    fill(at, bytes, kWritePattern);
  }
  ibv_sge piece{reinterpret_cast<uint64_t>(at), static_cast<uint32_t>(bytes), local_mr_->lkey};
  ibv_send_wr w{};
  w.sg_list = &piece;
  w.num_sge = 1;
  w.opcode = opcode;
  if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
    w.wr.atomic.remote_addr = peer_address_ + where.offset;
    w.wr.atomic.rkey = peer_key_;
    w.wr.atomic.compare_add = 1;
  } else {
    w.wr.rdma.remote_addr = peer_address_ + where.offset;
    w.wr.rdma.rkey = peer_key_ + (where.wrong_key ? kWrongKey : 0);
  }
  post(w);
}

std::vector<ibv_sge> Endpoint::scattered(size_t bytes) const {
  std::vector<ibv_sge> places;
  const size_t most = bytes / kPlaces + 1;
  for (size_t at = 0; at < bytes; at += most) {
    const uint8_t* place = remote() + places.size() * (kWindow / kPlaces) + places.size();
    places.push_back({reinterpret_cast<uint64_t>(place),
                      static_cast<uint32_t>(std::min(most, bytes - at)), local_mr_->lkey});
  }
  return places;
}

void Endpoint::post_scattered_read(size_t bytes) {
  std::fill_n(remote(), kWindow, uint8_t{0});
  std::vector<ibv_sge> places = scattered(bytes);
  ibv_send_wr w{};
  w.sg_list = places.data();
  w.num_sge = static_cast<int>(places.size());
  w.opcode = IBV_WR_RDMA_READ;
  w.wr.rdma.remote_addr = peer_address_;
  w.wr.rdma.rkey = peer_key_;
  post(w);
}

// --- completions

ibv_wc Endpoint::next_completion(ibv_cq* queue, const char* whose) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::milliseconds{kPatienceMs};
  for (;;) {
    ibv_wc wc{};
    if (ibv_poll_cq(queue, 1, &wc) == 1) return wc;
    if (Clock::now() > until) throw Unexpected(std::string{"no completion of a "} + whose);
  }
}

void Endpoint::expect_done(ibv_wc_status status) {
  const ibv_wc wc = next_completion(id_->send_cq, "request");
  if (wc.status != status) {
    throw Unexpected(std::string{"a request completed with '"} + ibv_wc_status_str(wc.status) +
                     "' and not '" + ibv_wc_status_str(status) + "'");
  }
}

void Endpoint::expect_completion() {
  (void)next_completion(id_->send_cq, "request");
}

void Endpoint::expect_message(size_t bytes) {
  const ibv_wc wc = next_completion(id_->recv_cq, "receive");
  if (wc.status != IBV_WC_SUCCESS) {
    throw Unexpected(std::string{"a receive completed with "} + ibv_wc_status_str(wc.status));
  }
  if (wc.byte_len != bytes) {
    throw Unexpected("a message of " + std::to_string(wc.byte_len) + " bytes and not " +
                     std::to_string(bytes));
  }
  compare(slot(kSlots / 2 + received_++ % (kSlots / 2)), bytes, messages_++, "a message");
}

void Endpoint::expect_receive(ibv_wc_status status) {
  const ibv_wc wc = next_completion(id_->recv_cq, "receive");
  ++received_;
  if (wc.status != status) {
    throw Unexpected(std::string{"a receive completed with '"} + ibv_wc_status_str(wc.status) +
                     "' and not '" + ibv_wc_status_str(status) + "'");
  }
}

void Endpoint::expect_read(size_t bytes) const {
  compare(remote(), bytes, kWindowPattern, "what was read");
}

void Endpoint::expect_scattered(size_t bytes) const {
  std::vector<uint8_t> together;
  for (const ibv_sge& place : scattered(bytes)) {
    const auto* at = reinterpret_cast<const uint8_t*>(place.addr);
    together.insert(together.end(), at, at + place.length);
  }
  compare(together.data(), bytes, kWindowPattern, "what was read into pieces");
}

void Endpoint::expect_written(size_t bytes) const {
  compare(window_.data(), bytes, kWritePattern, "what the peer wrote");
}

}  // namespace weft::interop
