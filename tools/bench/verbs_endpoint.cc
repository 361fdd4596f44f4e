#include "bench/verbs_endpoint.h"

#include <poll.h>

#include <algorithm>
#include <cstring>

#include "bench/failure.h"

namespace weft::bench {
namespace {

constexpr uint8_t kPort = 1;
constexpr uint8_t kReads = 16;  // in flight, each way
constexpr uint32_t kPsn = 0;
constexpr uint32_t kQKey = 0x77656674;

ibv_qp_type type_of(Service service) {
  switch (service) {
    case Service::uc:
      return IBV_QPT_UC;
    case Service::ud:
      return IBV_QPT_UD;
    case Service::rc:
      break;
  }
  return IBV_QPT_RC;
}

template <class T>
T* needed(T* object, const char* what) {
  if (object == nullptr) throw system_failure(what);
  return object;
}

void needed(int result, const char* what) {
  if (result == 0) return;
  errno = result;
  throw system_failure(what);
}

}  // namespace

VerbsEndpoint::VerbsEndpoint(const std::string& library, const EndpointNeeds& needs)
    : verbs_(library),
      needs_(needs),
      source_(needs.message, needs.slots),
      sink_(needs.message, needs.slots) {
  open_device();
  pd_ = needed(verbs_.alloc_pd(context_), "ibv_alloc_pd");
  constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  source_mr_ = needed(verbs_.reg_mr(pd_, source_.data(), source_.size(), kAccess), "ibv_reg_mr");
  sink_mr_ = needed(verbs_.reg_mr(pd_, sink_.data(), sink_.size(), kAccess), "ibv_reg_mr");
  if (needs_.service == Service::ud) {
    header_mr_ = needed(verbs_.reg_mr(pd_, header_.data(), header_.size(), kAccess), "ibv_reg_mr");
  }
  if (needs_.notes) {
    notes_mr_ = needed(verbs_.reg_mr(pd_, notes_.data(), sizeof notes_, kAccess), "ibv_reg_mr");
  }
  if (needs_.wait == Wait::event) {
    channel_ = needed(verbs_.create_comp_channel(context_), "ibv_create_comp_channel");
  }
  const auto entries =
      static_cast<int>(needs_.queue_pairs * needs_.send_requests + needs_.receives);
  cq_ = needed(verbs_.create_cq(context_, entries, nullptr, channel_, 0), "ibv_create_cq");
}

VerbsEndpoint::~VerbsEndpoint() {
  for (ibv_qp* qp : qps_) verbs_.destroy_qp(qp);
  if (ah_ != nullptr) verbs_.destroy_ah(ah_);
  if (cq_ != nullptr) verbs_.destroy_cq(cq_);
  if (channel_ != nullptr) verbs_.destroy_comp_channel(channel_);
  if (notes_mr_ != nullptr) verbs_.dereg_mr(notes_mr_);
  if (header_mr_ != nullptr) verbs_.dereg_mr(header_mr_);
  if (sink_mr_ != nullptr) verbs_.dereg_mr(sink_mr_);
  if (source_mr_ != nullptr) verbs_.dereg_mr(source_mr_);
  if (pd_ != nullptr) verbs_.dealloc_pd(pd_);
  if (context_ != nullptr) verbs_.close_device(context_);
}

void VerbsEndpoint::open_device() {
  int count = 0;
  ibv_device** list = needed(verbs_.get_device_list(&count), "ibv_get_device_list");
  if (count == 0) {
    verbs_.free_device_list(list);
    throw Failure{"the library shows no device; see 'weft doctor'"};
  }
  context_ = verbs_.open_device(list[0]);
  verbs_.free_device_list(list);
  needed(context_, "ibv_open_device");
}

void VerbsEndpoint::create_queue_pair() {
  ibv_qp_init_attr init{};
  init.send_cq = cq_;
  init.recv_cq = cq_;
  init.qp_type = type_of(needs_.service);
  init.cap = {.max_send_wr = needs_.send_requests,
              .max_recv_wr = needs_.receives,
              .max_send_sge = 1,
              .max_recv_sge = 2,
              .max_inline_data = needs_.inline_bytes};
  ibv_qp* qp = needed(verbs_.create_qp(pd_, &init), "ibv_create_qp");
  qps_.push_back(qp);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = kPort;
  attr.qkey = kQKey;
  attr.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  if (needs_.service != Service::ud) attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ;
  const int own = needs_.service == Service::ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
  needed(verbs_.modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | own),
         "ibv_modify_qp to INIT");
}

// A UD queue pair knows no peer; each request names one.
void VerbsEndpoint::connect_datagrams(ibv_qp* qp, const ibv_ah_attr& path) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  needed(verbs_.modify_qp(qp, &attr, IBV_QP_STATE), "ibv_modify_qp to RTR");
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = kPsn;
  needed(verbs_.modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), "ibv_modify_qp to RTS");
  ibv_ah_attr copy = path;
  ah_ = needed(verbs_.create_ah(pd_, &copy), "ibv_create_ah");
}

void VerbsEndpoint::address(ibv_send_wr& request) const {
  request.wr.ud.ah = ah_;
  request.wr.ud.remote_qpn = peer_qpn_;
  request.wr.ud.remote_qkey = kQKey;
}

void VerbsEndpoint::connect(ibv_qp* qp, const nlohmann::json& peer_gid, uint32_t peer_qpn) {
  peer_qpn_ = peer_qpn;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = peer_qpn;
  attr.rq_psn = kPsn;
  attr.max_dest_rd_atomic = kReads;
  attr.min_rnr_timer = 12;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = kPort;
  attr.ah_attr.grh.hop_limit = 64;
  const auto gid = peer_gid.get<std::array<uint8_t, 16>>();
  std::copy(gid.begin(), gid.end(), attr.ah_attr.grh.dgid.raw);
  if (needs_.service == Service::ud) {
    connect_datagrams(qp, attr.ah_attr);
    return;
  }
  const bool reliable = needs_.service == Service::rc;
  const int both = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  needed(verbs_.modify_qp(
             qp, &attr, reliable ? both | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : both),
         "ibv_modify_qp to RTR");
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = kPsn;
  attr.timeout = 14;
  attr.retry_cnt = 7;
  attr.rnr_retry = 7;
  attr.max_rd_atomic = kReads;
  const int psn = IBV_QP_STATE | IBV_QP_SQ_PSN;
  needed(verbs_.modify_qp(qp, &attr,
                          reliable ? psn | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                         IBV_QP_MAX_QP_RD_ATOMIC
                                   : psn),
         "ibv_modify_qp to RTS");
}

void VerbsEndpoint::add_queue_pairs(const Channel& peer, uint32_t count) {
  const size_t first = qps_.size();
  auto numbers = nlohmann::json::array();
  for (uint32_t i = 0; i < count; ++i) {
    create_queue_pair();
    numbers.push_back(qps_.back()->qp_num);
  }
  ibv_gid own{};
  needed(verbs_.query_gid(context_, kPort, 0, &own), "ibv_query_gid");
  peer.send({{"gid", std::to_array(own.raw)},
             {"qpns", numbers},
             {"source", reinterpret_cast<uintptr_t>(source_.data())},
             {"source_key", source_mr_->rkey},
             {"sink", reinterpret_cast<uintptr_t>(sink_.data())},
             {"sink_key", sink_mr_->rkey}});
  const nlohmann::json theirs = peer.receive();
  remote_source_ = theirs.at("source");
  remote_source_key_ = theirs.at("source_key");
  remote_sink_ = theirs.at("sink");
  remote_sink_key_ = theirs.at("sink_key");
  for (uint32_t i = 0; i < count; ++i) {
    connect(qps_[first + i], theirs.at("gid"), theirs.at("qpns").at(i));
  }
  peer.send("in RTS");
  (void)peer.receive();
}

ibv_sge VerbsEndpoint::source_at(uint64_t offset, uint64_t length) const {
  return {.addr = reinterpret_cast<uintptr_t>(source_.data()) + offset,
          .length = static_cast<uint32_t>(length),
          .lkey = source_mr_->lkey};
}

ibv_sge VerbsEndpoint::sink_at(uint64_t offset, uint64_t length) const {
  return {.addr = reinterpret_cast<uintptr_t>(sink_.data()) + offset,
          .length = static_cast<uint32_t>(length),
          .lkey = sink_mr_->lkey};
}

ibv_sge VerbsEndpoint::header_place() const {
  return {.addr = reinterpret_cast<uintptr_t>(header_.data()),
          .length = static_cast<uint32_t>(header_.size()),
          .lkey = header_mr_->lkey};
}

ibv_sge VerbsEndpoint::note_place(size_t i) const {
  return {.addr = reinterpret_cast<uintptr_t>(&notes_[i]),
          .length = sizeof(Note),
          .lkey = notes_mr_->lkey};
}

void VerbsEndpoint::post_send(ibv_send_wr* list, size_t qp) {
  ibv_send_wr* bad = nullptr;
  needed(ibv_post_send(qps_[qp], list, &bad), "ibv_post_send");
}

void VerbsEndpoint::post_receive(ibv_recv_wr* list) {
  ibv_recv_wr* bad = nullptr;
  needed(ibv_post_recv(qps_[0], list, &bad), "ibv_post_recv");
}

int VerbsEndpoint::poll(uint64_t* lost) {
  const int n = ibv_poll_cq(cq_, kBatch, wc_.data());
  if (n < 0) throw Failure{"ibv_poll_cq failed"};
  for (int i = 0; i < n; ++i) {
    const ibv_wc& wc = wc_[static_cast<size_t>(i)];
    if (wc.status == IBV_WC_SUCCESS) continue;
    if (lost == nullptr || wc.status != IBV_WC_RETRY_EXC_ERR) {
      throw Failure{std::string{"a completion reports: "} + verbs_.wc_status_str(wc.status)};
    }
    ++*lost;
  }
  return n;
}

std::span<const ibv_wc> VerbsEndpoint::completions_now(uint64_t* lost) {
  return {wc_.data(), static_cast<size_t>(poll(lost))};
}

bool VerbsEndpoint::sleep(int other_fd, int most_ms) {
  if (!armed_) {
    sleep();
    return true;
  }
  std::array<pollfd, 2> fds{{{.fd = channel_->fd, .events = POLLIN, .revents = 0},
                             {.fd = other_fd, .events = POLLIN, .revents = 0}}};
  if (::poll(fds.data(), fds.size(), most_ms) < 0 && errno != EINTR) throw system_failure("poll");
  if (fds[0].revents == 0) return false;
  sleep();
  return fds[1].revents == 0;
}

// What completes between looking and arming makes no event, so the queue is looked at once more.
void VerbsEndpoint::sleep() {
  if (!armed_) {
    needed(ibv_req_notify_cq(cq_, 0), "ibv_req_notify_cq");
    armed_ = true;
    return;
  }
  ibv_cq* cq = nullptr;
  void* cookie = nullptr;
  if (verbs_.get_cq_event(channel_, &cq, &cookie) != 0) {
    if (errno == EINTR) return;
    throw system_failure("ibv_get_cq_event");
  }
  verbs_.ack_cq_events(cq, 1);
  armed_ = false;
}

std::span<const ibv_wc> VerbsEndpoint::completions(uint64_t* lost) {
  for (;;) {
    if (const int n = poll(lost); n > 0) return {wc_.data(), static_cast<size_t>(n)};
    if (needs_.wait == Wait::event) sleep();
  }
}

}  // namespace weft::bench
