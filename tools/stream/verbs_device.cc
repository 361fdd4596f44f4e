#include "stream/verbs_device.h"

#include <arpa/inet.h>
#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "bench/failure.h"

namespace weft::stream {
namespace {

constexpr uint8_t kPort = 1;

template <class T>
T* needed(T* object, const char* what) {
  if (object == nullptr) throw bench::system_failure(what);
  return object;
}

void needed(int result, const char* what) {
  if (result == 0) return;
  errno = result;
  throw bench::system_failure(what);
}

ibv_context* open_first(const bench::VerbsLibrary& verbs) {
  int count = 0;
  ibv_device** list = needed(verbs.get_device_list(&count), "ibv_get_device_list");
  ibv_context* context = count > 0 ? verbs.open_device(list[0]) : nullptr;
  verbs.free_device_list(list);
  if (count == 0) throw bench::Failure{"the library shows no device; see 'weft doctor'"};
  return needed(context, "ibv_open_device");
}

}  // namespace

void prefer_address(const std::string& address) {
  const char* named = std::getenv("WEFT_IP");
  if (named == nullptr || *named == '\0') ::setenv("WEFT_IP", address.c_str(), 1);
}

VerbsDevice::VerbsDevice(const std::string& library, uint32_t entries, bool events)
    : verbs_(library), context_(open_first(verbs_)) {
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
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = kPort;
  attr.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  needed(verbs_.modify_qp(qp, &attr,
                          IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
         "ibv_modify_qp to INIT");
  return qp;
}

void VerbsDevice::destroy(ibv_qp* qp) {
  verbs_.destroy_qp(qp);
}

nlohmann::json VerbsDevice::address_of(const ibv_qp* qp) const {
  ibv_gid gid{};
  needed(verbs_.query_gid(context_, kPort, 0, &gid), "ibv_query_gid");
  return {{"gid", std::to_array(gid.raw)}, {"qpn", qp->qp_num}};
}

nlohmann::json VerbsDevice::address_of_circuit(const std::string& address) {
  std::array<uint8_t, 16> gid{};
  gid[10] = gid[11] = 0xff;  // as IPv6 has IPv4
  if (::inet_pton(AF_INET, address.c_str(), &gid[12]) != 1 &&
      ::inet_pton(AF_INET6, address.c_str(), gid.data()) != 1) {
    throw bench::Failure{address + " is no address"};
  }
  // A circuit has no queue pair; its number only has to be one.
  return {{"gid", gid}, {"qpn", 1}};
}

void VerbsDevice::connect(ibv_qp* qp, const nlohmann::json& peer) {
  const bool reliable = qp->qp_type == IBV_QPT_RC;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = peer.at("qpn");
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = 12;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = kPort;
  attr.ah_attr.grh.hop_limit = 64;
  const auto gid = peer.at("gid").get<std::array<uint8_t, 16>>();
  std::copy(gid.begin(), gid.end(), attr.ah_attr.grh.dgid.raw);
  const int both = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  const int own = reliable ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0;
  needed(verbs_.modify_qp(qp, &attr, both | own), "ibv_modify_qp to RTR");
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 14;
  attr.retry_cnt = 7;
  attr.rnr_retry = 7;
  attr.max_rd_atomic = 1;
  const int patience =
      reliable ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0;
  needed(verbs_.modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | patience),
         "ibv_modify_qp to RTS");
}

int VerbsDevice::poll(std::span<ibv_wc> into) {
  const int n = ibv_poll_cq(cq_, static_cast<int>(into.size()), into.data());
  if (n < 0) throw bench::Failure{"ibv_poll_cq failed"};
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
