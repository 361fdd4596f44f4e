#include "stream/verbs_device.h"

#include <arpa/inet.h>
#include <fcntl.h>

#include <cstdlib>

#include "kit/json_numbers.h"
#include "kit/queue_pair.h"

namespace weft::stream {
namespace {

using kit::needed;

}  // namespace

void prefer_address(const std::string& address) {
  const char* named = std::getenv("WEFT_IP");
  if (named == nullptr || *named == '\0') ::setenv("WEFT_IP", address.c_str(), 1);
}

VerbsDevice::VerbsDevice(const std::string& library, uint32_t entries, bool events)
    : verbs_(library), context_(kit::open_first_device(verbs_)) {
  pd_ = needed(verbs_.alloc_pd(context_), "ibv_alloc_pd");
  if (events) {
    channel_ = needed(verbs_.create_comp_channel(context_), "ibv_create_comp_channel");
    ::fcntl(channel_->fd, F_SETFL, ::fcntl(channel_->fd, F_GETFL) | O_NONBLOCK);
  }
  cq_ = needed(verbs_.create_cq(context_, static_cast<int>(entries), nullptr, channel_, 0),
               "ibv_create_cq");
}

VerbsDevice::~VerbsDevice() {
  if (cq_ != nullptr) verbs_.destroy_cq(cq_);
  if (channel_ != nullptr) verbs_.destroy_comp_channel(channel_);
  if (pd_ != nullptr) verbs_.dealloc_pd(pd_);
  verbs_.close_device(context_);
}

ibv_mr* VerbsDevice::add_memory(std::byte* at, uint64_t size, bool remote_writes) {
  const int access = remote_writes ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE : 0;
  return needed(verbs_.reg_mr(pd_, at, size, access), "ibv_reg_mr");
}

ibv_mr* VerbsDevice::add_memory_from_0(std::byte* at, uint64_t size) {
  return needed(
      verbs_.reg_mr_iova(pd_, at, size, 0, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE),
      "ibv_reg_mr_iova");
}

void VerbsDevice::remove_memory(ibv_mr* memory) {
  verbs_.dereg_mr(memory);
}

ibv_qp* VerbsDevice::create(const QueueNeeds& needs) {
  ibv_qp_init_attr init{};
  init.send_cq = cq_;
  init.recv_cq = cq_;
  init.qp_type = needs.reliable ? IBV_QPT_RC : IBV_QPT_UC;
  init.cap.max_send_wr = std::max(needs.sends, 1U);
  init.cap.max_recv_wr = std::max(needs.receives, 1U);
  init.cap.max_send_sge = needs.send_pieces;
  init.cap.max_recv_sge = 1;
  init.cap.max_inline_data = 16;
  ibv_qp* qp = needed(verbs_.create_qp(pd_, &init), "ibv_create_qp");
  kit::to_init(verbs_, qp, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  return qp;
}

void VerbsDevice::destroy(ibv_qp* qp) {
  verbs_.destroy_qp(qp);
}

nlohmann::json VerbsDevice::address_of(const ibv_qp* qp) const {
  return {{"gid", kit::own_gid(verbs_, context_)}, {"qpn", qp->qp_num}};
}

nlohmann::json VerbsDevice::address_of_circuit(const std::string& address) {
  kit::RawGid gid{};
  gid[10] = gid[11] = 0xff;  // as IPv6 has IPv4
  if (::inet_pton(AF_INET, address.c_str(), &gid[12]) != 1 &&
      ::inet_pton(AF_INET6, address.c_str(), gid.data()) != 1) {
    throw kit::Failure{address + " is no address"};
  }
  // A circuit has no queue pair; its number only has to be one.
  return {{"gid", gid}, {"qpn", 1}};
}

void VerbsDevice::connect(ibv_qp* qp, const nlohmann::json& peer) {
  kit::to_rts(verbs_, qp, peer.at("gid").get<kit::RawGid>(), kit::number_at<uint32_t>(peer, "qpn"));
}

int VerbsDevice::poll(std::span<ibv_wc> into) {
  const int n = ibv_poll_cq(cq_, static_cast<int>(into.size()), into.data());
  if (n < 0) throw kit::Failure{"ibv_poll_cq failed"};
  return n;
}

void VerbsDevice::arm() {
  needed(ibv_req_notify_cq(cq_, 0), "ibv_req_notify_cq");
}

void VerbsDevice::take_event() {
  ibv_cq* cq = nullptr;
  void* cookie = nullptr;
  if (verbs_.get_cq_event(channel_, &cq, &cookie) == 0) verbs_.ack_cq_events(cq, 1);
}

}  // namespace weft::stream
