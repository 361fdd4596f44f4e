#include "bench/verbs_endpoint.h"

#include <poll.h>

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "kit/failure.h"

namespace weft::bench {
namespace {

using kit::needed;

constexpr uint8_t kReads = 16;  // in flight, each way
constexpr uint32_t kQKey = 0x77656674;

ibv_qp_type type_of(Service service) {
  switch (service) {
    case Service::uc:
      return IBV_QPT_UC;
    case Service::ud:
      return IBV_QPT_UD;
    case Service::rd:
      return IBV_QPT_DRIVER;
    case Service::rc:
      break;
  }
  return IBV_QPT_RC;
}

// The address so many behind that one, which is IPv4's.
kit::RawGid address_behind(kit::RawGid gid, uint32_t steps) {
  const uint32_t address = load_be<uint32_t>(reinterpret_cast<const std::byte*>(&gid[12])) + steps;
  store_be(reinterpret_cast<std::byte*>(&gid[12]), address);
  return gid;
}

}  // namespace

VerbsEndpoint::VerbsEndpoint(const std::string& library, const EndpointNeeds& needs)
    : verbs_(library),
      needs_(needs),
      source_(needs.message, needs.slots),
      sink_(needs.message, needs.slots),
      context_(kit::open_first_device(verbs_)) {
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
  drop_queue_pairs();
  for (ibv_ah* ah : ahs_) verbs_.destroy_ah(ah);
  if (cq_ != nullptr) verbs_.destroy_cq(cq_);
  if (channel_ != nullptr) verbs_.destroy_comp_channel(channel_);
  if (notes_mr_ != nullptr) verbs_.dereg_mr(notes_mr_);
  if (header_mr_ != nullptr) verbs_.dereg_mr(header_mr_);
  if (sink_mr_ != nullptr) verbs_.dereg_mr(sink_mr_);
  if (source_mr_ != nullptr) verbs_.dereg_mr(source_mr_);
  if (pd_ != nullptr) verbs_.dealloc_pd(pd_);
  if (context_ != nullptr) verbs_.close_device(context_);
}

void VerbsEndpoint::drop_queue_pairs() {
  for (ibv_qp* qp : qps_) verbs_.destroy_qp(qp);
  qps_.clear();
}

ibv_qp* VerbsEndpoint::make_queue_pair() {
  ibv_qp_init_attr_ex init{};
  init.send_cq = cq_;
  init.recv_cq = cq_;
  init.qp_type = type_of(needs_.service);
  init.pd = pd_;
  init.cap = {.max_send_wr = needs_.send_requests,
              .max_recv_wr = needs_.receives,
              .max_send_sge = 1,
              .max_recv_sge = 2,
              .max_inline_data = needs_.inline_bytes};
  if (needs_.service != Service::rd) {
    return verbs_.create_qp(pd_, reinterpret_cast<ibv_qp_init_attr*>(&init));
  }
  init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  init.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                        IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ;
  // What ibv_create_qp_ex(3) does.
  const verbs_context* const context = verbs_get_ctx_op(context_, create_qp_ex);
  if (context == nullptr) throw kit::Failure{"the library has no ibv_create_qp_ex"};
  return context->create_qp_ex(context_, &init);
}

void VerbsEndpoint::create_queue_pair() {
  ibv_qp* const qp = needed(make_queue_pair(), "ibv_create_qp");
  qps_.push_back(qp);
  unsigned access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  if (needs_.service != Service::ud) access |= IBV_ACCESS_REMOTE_READ;
  kit::to_init(verbs_, qp, access, kQKey);
}

void VerbsEndpoint::address(ibv_send_wr& request, size_t peer) const {
  request.wr.ud.ah = ahs_[peer];
  request.wr.ud.remote_qpn = peer_qpn_;
  request.wr.ud.remote_qkey = kQKey;
}

void VerbsEndpoint::connect(ibv_qp* qp, const kit::RawGid& peer_gid, uint32_t peer_qpn) {
  peer_qpn_ = peer_qpn;
  kit::to_rts(verbs_, qp, peer_gid, peer_qpn, kReads);
  if (needs_.service != Service::ud && needs_.service != Service::rd) return;
  // It knows no peer; each request names one.
  for (uint32_t i = 0; i < std::max(needs_.peers, 1U); ++i) {
    ibv_ah_attr path = kit::path_to(address_behind(peer_gid, i));
    ahs_.push_back(needed(verbs_.create_ah(pd_, &path), "ibv_create_ah"));
  }
}

void VerbsEndpoint::add_queue_pairs(const Channel& peer, uint32_t count) {
  const size_t first = qps_.size();
  auto numbers = nlohmann::json::array();
  for (uint32_t i = 0; i < count; ++i) {
    create_queue_pair();
    numbers.push_back(qps_.back()->qp_num);
  }
  peer.send({{"gid", kit::own_gid(verbs_, context_)},
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
    const uint32_t behind = needs_.peers > 0 ? static_cast<uint32_t>(first + i) : 0;
    const auto gid = address_behind(theirs.at("gid").get<kit::RawGid>(), behind);
    connect(qps_[first + i], gid, theirs.at("qpns").at(i));
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

// A work request of ibv_post_send(3) has no room for both addresses of a Write.
void VerbsEndpoint::post_one_by_one(const ibv_send_wr* list) {
  ibv_qp_ex* const qp = verbs_.qp_to_qp_ex(qps_[0]);
  ibv_wr_start(qp);
  for (const ibv_send_wr* wr = list; wr != nullptr; wr = wr->next) {
    qp->wr_id = wr->wr_id;
    qp->wr_flags = wr->send_flags;
    switch (wr->opcode) {
      case IBV_WR_RDMA_WRITE:
        ibv_wr_rdma_write(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
        break;
      case IBV_WR_RDMA_READ:
        ibv_wr_rdma_read(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
        break;
      case IBV_WR_SEND_WITH_IMM:
        ibv_wr_send_imm(qp, wr->imm_data);
        break;
      default:
        ibv_wr_send(qp);
    }
    ibv_wr_set_ud_addr(qp, ahs_[0], peer_qpn_, kQKey);
    const ibv_sge& place = wr->sg_list[0];
    if ((wr->send_flags & IBV_SEND_INLINE) != 0) {
      // NOLINTNEXTLINE(performance-no-int-to-ptr): an address as verbs has it
      ibv_wr_set_inline_data(qp, reinterpret_cast<void*>(place.addr), place.length);
    } else {
      ibv_wr_set_sge(qp, place.lkey, place.addr, place.length);
    }
  }
  needed(ibv_wr_complete(qp), "ibv_wr_complete");
}

void VerbsEndpoint::post_send(ibv_send_wr* list, size_t qp) {
  if (needs_.service == Service::rd) return post_one_by_one(list);
  ibv_send_wr* bad = nullptr;
  needed(ibv_post_send(qps_[qp], list, &bad), "ibv_post_send");
}

void VerbsEndpoint::post_receive(ibv_recv_wr* list) {
  ibv_recv_wr* bad = nullptr;
  needed(ibv_post_recv(qps_[0], list, &bad), "ibv_post_recv");
}

int VerbsEndpoint::poll(uint64_t* lost) {
  const int n = ibv_poll_cq(cq_, kBatch, wc_.data());
  if (n < 0) throw kit::Failure{"ibv_poll_cq failed"};
  for (int i = 0; i < n; ++i) {
    const ibv_wc& wc = wc_[static_cast<size_t>(i)];
    if (wc.status == IBV_WC_SUCCESS) continue;
    if (lost == nullptr || wc.status != IBV_WC_RETRY_EXC_ERR) {
      throw kit::Failure{std::string{"a completion reports: "} + verbs_.wc_status_str(wc.status)};
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
  if (::poll(fds.data(), fds.size(), most_ms) < 0 && errno != EINTR)
    throw kit::system_failure("poll");
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
    throw kit::system_failure("ibv_get_cq_event");
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
