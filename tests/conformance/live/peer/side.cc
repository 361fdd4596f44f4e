#include "side.h"

#include <arpa/inet.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>

namespace weft::conformance {
namespace {

constexpr int kPatienceMs = 15'000;  // an emulated machine is slow

void fill(Octets& bytes, uint64_t seed) {
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = pattern_byte(i, seed);
}

sockaddr_in address_of(const std::string& text, uint16_t port) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(port);
  if (inet_pton(AF_INET, text.c_str(), &a.sin_addr) != 1) throw Failure(text + " is no address");
  return a;
}

rdma_conn_param parameters(int ird, int ord, const Octets& data) {
  rdma_conn_param p{};
  p.private_data = data.data();
  p.private_data_len = static_cast<uint8_t>(data.size());
  p.responder_resources = static_cast<uint8_t>(ird);
  p.initiator_depth = static_cast<uint8_t>(ord);
  p.retry_count = p.rnr_retry_count = 7;
  return p;
}

ibv_wc next_completion(ibv_cq* queue, int within_ms) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::milliseconds{within_ms};
  if (queue == nullptr) throw Failure("there is no queue pair");
  for (;;) {
    ibv_wc wc{};
    if (ibv_poll_cq(queue, 1, &wc) == 1) return wc;
    if (Clock::now() > until) throw Failure("no completion");
  }
}

// "remote access error" as one word.
std::string status_of(const ibv_wc& wc) {
  std::string text = ibv_wc_status_str(wc.status);
  std::replace(text.begin(), text.end(), ' ', '-');
  return text;
}

}  // namespace

void fail_call(const std::string& call) {
  throw Failure(call + ": " + strerror(errno));
}

std::string to_hex(const uint8_t* bytes, size_t n) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < n; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text.empty() ? "-" : text;
}

Side::Side(std::string address)
    : address_(std::move(address)),
      channel_(rdma_create_event_channel()),
      arena_(kWindow + 2 * kGuard),
      out_(kWindow),
      sink_(kWindow),
      inbox_(kSlots * kWindow) {
  if (channel_ == nullptr) fail_call("rdma_create_event_channel");
  ibv_context** devices = rdma_get_devices(nullptr);
  if (devices == nullptr || devices[0] == nullptr) throw Failure("there is no device");
  device_ = devices[0];
  rdma_free_devices(devices);
  pd_ = ibv_alloc_pd(device_);
  other_pd_ = ibv_alloc_pd(device_);
  if (pd_ == nullptr || other_pd_ == nullptr) fail_call("ibv_alloc_pd");
}

Side::~Side() {
  clear();
  ibv_dealloc_pd(other_pd_);
  ibv_dealloc_pd(pd_);
  rdma_destroy_event_channel(channel_);
}

void Side::clear() {
  drop();
  if (listener_ != nullptr) rdma_destroy_id(listener_);
  listener_ = nullptr;
  for (ibv_mr* mr : regions_) ibv_dereg_mr(mr);
  regions_.clear();
}

std::string Side::reset(int completion_ms) {
  clear();
  completion_ms_ = completion_ms;
  // Events of identifiers that are gone went with them.
  fill(arena_, kArenaSeed);
  fill(out_, kOutSeed);
  fill(sink_, 0);
  std::fill(inbox_.begin(), inbox_.end(), uint8_t{0});
  const auto add = [this](ibv_pd* pd, uint8_t* at, size_t n, int access) {
    ibv_mr* mr = ibv_reg_mr(pd, at, n, access);
    if (mr == nullptr) fail_call("ibv_reg_mr");
    regions_.push_back(mr);
    return mr;
  };
  constexpr int kLocal = IBV_ACCESS_LOCAL_WRITE;
  constexpr int kBoth = kLocal | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  ibv_device_attr attributes{};
  ibv_query_device(device_, &attributes);
  const bool atomics = attributes.atomic_cap != IBV_ATOMIC_NONE;
  const bool windows = attributes.max_mw > 0;
  uint8_t* at = &arena_[kGuard];
  rw_ = add(pd_, at, kWindow,
            kBoth | (atomics ? IBV_ACCESS_REMOTE_ATOMIC : 0) | (windows ? IBV_ACCESS_MW_BIND : 0));
  const ibv_mr* ro = add(pd_, at, kWindow, kLocal | IBV_ACCESS_REMOTE_READ);
  const ibv_mr* wo = add(pd_, at, kWindow, kLocal | IBV_ACCESS_REMOTE_WRITE);
  const ibv_mr* mine = add(pd_, at, kWindow, kLocal);
  const ibv_mr* foreign = add(other_pd_, at, kWindow, kBoth);
  local_ = add(pd_, out_.data(), out_.size(), kLocal);
  inbox_mr_ = add(pd_, inbox_.data(), inbox_.size(), kLocal);
  sink_mr_ = add(pd_, sink_.data(), sink_.size(), kLocal);
  const uint32_t gone = add(pd_, at, kWindow, kBoth)->rkey;
  ibv_dereg_mr(regions_.back());
  regions_.pop_back();
  const auto name = [](const char* what, uint64_t value) {
    return std::string(" ") + what + "=" + std::to_string(value);
  };
  return "keys" + name("to", reinterpret_cast<uint64_t>(at)) + name("size", kWindow) +
         name("rw", rw_->rkey) + name("ro", ro->rkey) + name("wo", wo->rkey) +
         name("mine", mine->rkey) + name("foreign", foreign->rkey) + name("gone", gone) +
         name("atomics", atomics ? 1 : 0);
}

// --- connections

bool Side::event_within(int ms) const {
  pollfd p{channel_->fd, POLLIN, 0};
  return poll(&p, 1, ms) == 1;
}

rdma_cm_event* Side::next_event() {
  for (;;) {
    if (!event_within(kPatienceMs)) throw Failure("no event");
    rdma_cm_event* e = nullptr;
    if (rdma_get_cm_event(channel_, &e) != 0) fail_call("rdma_get_cm_event");
    // Only devices of InfiniBand have it.
    if (e->event != RDMA_CM_EVENT_TIMEWAIT_EXIT) return e;
    rdma_ack_cm_event(e);
  }
}

std::string Side::event() {
  rdma_cm_event* e = next_event();
  const auto* data = static_cast<const uint8_t*>(e->param.conn.private_data);
  const std::string text = std::string(rdma_event_str(e->event)).substr(strlen("RDMA_CM_EVENT_")) +
                           " ird=" + std::to_string(e->param.conn.responder_resources) +
                           " ord=" + std::to_string(e->param.conn.initiator_depth) + " data=" +
                           to_hex(data, data == nullptr ? 0 : e->param.conn.private_data_len);
  if (e->event == RDMA_CM_EVENT_CONNECT_REQUEST) id_ = e->id;
  rdma_ack_cm_event(e);
  return text;
}

void Side::make_pair(size_t receives, size_t bytes) {
  done_ = ibv_create_cq(device_, 2 * kSlots, nullptr, nullptr, 0);
  received_ = ibv_create_cq(device_, 2 * kSlots, nullptr, nullptr, 0);
  if (done_ == nullptr || received_ == nullptr) fail_call("ibv_create_cq");
  ibv_qp_init_attr a{};
  a.send_cq = done_;
  a.recv_cq = received_;
  a.cap.max_send_wr = a.cap.max_recv_wr = kSlots;
  a.cap.max_send_sge = a.cap.max_recv_sge = 1;
  a.qp_type = IBV_QPT_RC;
  a.sq_sig_all = 1;
  if (rdma_create_qp(id_, pd_, &a) != 0) fail_call("rdma_create_qp");
  posted_ = taken_ = 0;
  post_receives(receives, bytes);
}

uint16_t Side::listen() {
  if (rdma_create_id(channel_, &listener_, nullptr, RDMA_PS_TCP) != 0) fail_call("rdma_create_id");
  sockaddr_in at = address_of(address_, 0);
  if (rdma_bind_addr(listener_, reinterpret_cast<sockaddr*>(&at)) != 0) fail_call("rdma_bind_addr");
  if (rdma_listen(listener_, 512) != 0) fail_call("rdma_listen");
  return ntohs(rdma_get_src_port(listener_));
}

std::string Side::request(size_t receives, size_t bytes, int within_ms) {
  if (!event_within(within_ms)) return "none";
  std::string text = event();
  if (id_ == nullptr) throw Failure(text);
  make_pair(receives, bytes);
  return text;
}

void Side::accept(int ird, int ord, const Octets& private_data) {
  rdma_conn_param p = parameters(ird, ord, private_data);
  if (rdma_accept(id_, &p) != 0) fail_call("rdma_accept");
}

void Side::reject(const Octets& private_data) {
  if (rdma_reject(id_, private_data.data(), static_cast<uint8_t>(private_data.size())) != 0)
    fail_call("rdma_reject");
}

void Side::connect(const std::string& address, uint16_t port, size_t receives, size_t bytes,
                   int ird, int ord, const Octets& private_data) {
  if (rdma_create_id(channel_, &id_, nullptr, RDMA_PS_TCP) != 0) fail_call("rdma_create_id");
  sockaddr_in to = address_of(address, port);
  const auto expect = [this](rdma_cm_event_type kind) {
    rdma_cm_event* e = next_event();
    const std::string text = rdma_event_str(e->event);
    const bool good = e->event == kind;
    rdma_ack_cm_event(e);
    if (!good) throw Failure(text);
  };
  if (rdma_resolve_addr(id_, nullptr, reinterpret_cast<sockaddr*>(&to), kPatienceMs) != 0)
    fail_call("rdma_resolve_addr");
  expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  if (rdma_resolve_route(id_, kPatienceMs) != 0) fail_call("rdma_resolve_route");
  expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
  make_pair(receives, bytes);
  rdma_conn_param p = parameters(ird, ord, private_data);
  if (rdma_connect(id_, &p) != 0) fail_call("rdma_connect");
}

void Side::disconnect() {
  if (rdma_disconnect(id_) != 0) fail_call("rdma_disconnect");
}

void Side::break_pair() {
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_ERR;
  if (const int e = ibv_modify_qp(id_->qp, &a, IBV_QP_STATE); e != 0) {
    errno = e;
    fail_call("ibv_modify_qp");
  }
}

void Side::drop() {
  if (mw_ != nullptr) ibv_dealloc_mw(mw_);
  mw_ = nullptr;
  if (id_ != nullptr) {
    if (id_->qp != nullptr) rdma_destroy_qp(id_);
    rdma_destroy_id(id_);
  }
  id_ = nullptr;
  if (done_ != nullptr) ibv_destroy_cq(done_);
  if (received_ != nullptr) ibv_destroy_cq(received_);
  done_ = received_ = nullptr;
}

// --- requests

void Side::post_receives(size_t n, size_t bytes) {
  for (; n > 0; --n, ++posted_) {
    ibv_sge piece{reinterpret_cast<uint64_t>(slot(posted_)), static_cast<uint32_t>(bytes),
                  inbox_mr_->lkey};
    ibv_recv_wr w{};
    w.sg_list = &piece;
    w.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    if (const int e = ibv_post_recv(id_->qp, &w, &bad); e != 0) {
      errno = e;
      fail_call("ibv_post_recv");
    }
  }
}

void Side::post(ibv_send_wr& w, ibv_sge piece, size_t bytes) {
  piece.length = static_cast<uint32_t>(bytes);
  w.sg_list = &piece;
  w.num_sge = bytes > 0 ? 1 : 0;
  ibv_send_wr* bad = nullptr;
  if (const int e = ibv_post_send(id_->qp, &w, &bad); e != 0) {
    errno = e;
    fail_call("ibv_post_send");
  }
}

void Side::send(const std::string& kind, size_t bytes, uint32_t word) {
  ibv_send_wr w{};
  w.opcode = IBV_WR_SEND;
  if (kind.find("inv") != std::string::npos) {
    w.opcode = IBV_WR_SEND_WITH_INV;
    w.invalidate_rkey = word;
  } else if (kind.find("imm") != std::string::npos) {
    w.opcode = IBV_WR_SEND_WITH_IMM;
    w.imm_data = htonl(word);
  }
  if (kind.rfind("se", 0) == 0) w.send_flags = IBV_SEND_SOLICITED;
  post(w, {reinterpret_cast<uint64_t>(out_.data()), 0, local_->lkey}, bytes);
}

void Side::remote(const std::string& kind, uint32_t stag, uint64_t to, size_t bytes,
                  uint64_t value) {
  static const std::map<std::string, ibv_wr_opcode> kOpcodes = {
      {"write", IBV_WR_RDMA_WRITE},
      {"write_imm", IBV_WR_RDMA_WRITE_WITH_IMM},
      {"read", IBV_WR_RDMA_READ},
      {"fetch_add", IBV_WR_ATOMIC_FETCH_AND_ADD},
      {"compare_swap", IBV_WR_ATOMIC_CMP_AND_SWP},
  };
  ibv_send_wr w{};
  w.opcode = kOpcodes.at(kind);
  const bool reads = kind[0] != 'w';
  if (kind == "fetch_add" || kind == "compare_swap") {
    w.wr.atomic.remote_addr = to;
    w.wr.atomic.rkey = stag;
    w.wr.atomic.compare_add = value;
    w.wr.atomic.swap = value + 1;
  } else {
    w.wr.rdma.remote_addr = to;
    w.wr.rdma.rkey = stag;
    w.imm_data = htonl(static_cast<uint32_t>(value));
  }
  const uint8_t* at = reads ? sink_.data() : out_.data();
  const uint32_t lkey = reads ? sink_mr_->lkey : local_->lkey;
  post(w, {reinterpret_cast<uint64_t>(at), 0, lkey}, bytes);
}

uint32_t Side::bind_window() {
  mw_ = ibv_alloc_mw(pd_, IBV_MW_TYPE_2);
  if (mw_ == nullptr) fail_call("ibv_alloc_mw");
  ibv_send_wr w{};
  w.opcode = IBV_WR_BIND_MW;
  w.bind_mw.mw = mw_;
  w.bind_mw.rkey = ibv_inc_rkey(mw_->rkey);
  w.bind_mw.bind_info = {rw_, reinterpret_cast<uint64_t>(&arena_[kGuard]), kWindow,
                         IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE};
  post(w, {}, 0);
  if (const ibv_wc wc = next_completion(done_, completion_ms_); wc.status != IBV_WC_SUCCESS)
    throw Failure("bind: " + status_of(wc));
  return w.bind_mw.rkey;
}

std::string Side::next_done() {
  return status_of(next_completion(done_, completion_ms_));
}

std::string Side::next_received() {
  const ibv_wc wc = next_completion(received_, completion_ms_);
  const uint8_t* at = slot(taken_++);
  if (wc.status != IBV_WC_SUCCESS) return status_of(wc);
  const bool placed = wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM;
  std::string text = status_of(wc) + " length=" + std::to_string(wc.byte_len) +
                     " data=" + to_hex(at, placed ? 0 : wc.byte_len);
  if ((wc.wc_flags & IBV_WC_WITH_IMM) != 0) text += " imm=" + std::to_string(ntohl(wc.imm_data));
  if ((wc.wc_flags & IBV_WC_WITH_INV) != 0) text += " inv=" + std::to_string(wc.invalidated_rkey);
  return text;
}

// --- memory

std::string Side::window(int64_t offset, size_t bytes) const {
  return to_hex(&arena_.at(static_cast<size_t>(static_cast<int64_t>(kGuard) + offset)), bytes);
}

std::string Side::sink(size_t bytes) const {
  return to_hex(sink_.data(), bytes);
}

void Side::poke(int64_t offset, const Octets& bytes) {
  std::copy(bytes.begin(), bytes.end(), arena_.begin() + static_cast<int64_t>(kGuard) + offset);
}

std::string Side::changed() const {
  size_t inside = 0;
  size_t outside = 0;
  for (size_t i = 0; i < arena_.size(); ++i) {
    if (arena_[i] == pattern_byte(i, kArenaSeed)) continue;
    ++(i >= kGuard && i < kGuard + kWindow ? inside : outside);
  }
  return std::to_string(inside) + " " + std::to_string(outside);
}

}  // namespace weft::conformance
