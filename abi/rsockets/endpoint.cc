#include "abi/rsockets/endpoint.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace weft::rsockets {
namespace {

// What a completion says of its request. Of a receive: its index.
constexpr uint64_t kReceive = uint64_t{1} << 63;
constexpr uint64_t kMapped = uint64_t{1} << 62;

constexpr uint32_t kMessageSize = sizeof(uint32_t);
constexpr uint16_t kSmallestQueue = 16;

Verbs<ibv_mr> writable(ibv_pd* pd, void* at, size_t size) {
  return Verbs<ibv_mr>{ibv_reg_mr(pd, at, size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)};
}

constexpr size_t kTargetsSize = kTargets * sizeof(Target);

}  // namespace

Endpoint::~Endpoint() {
  if (cq_ != nullptr && events_ > 0) ibv_ack_cq_events(cq_.get(), events_);
  if (id_ != nullptr && id_->qp != nullptr) rdma_destroy_qp(id_);
}

int Endpoint::open(rdma_cm_id* id, const Sizes& sizes) {
  ibv_device_attr device{};
  if (const int error = ibv_query_device(id->verbs, &device); error != 0) return error;
  const auto most =
      static_cast<uint16_t>(std::clamp(device.max_qp_wr, int{kSmallestQueue}, 0xFFFE));
  sizes_ = sizes;
  sizes_.send_queue = std::clamp(sizes.send_queue, kSmallestQueue, most);
  sizes_.receive_queue = std::clamp(sizes.receive_queue, kSmallestQueue, most);
  sizes_.inline_data = std::max<uint16_t>(sizes.inline_data, sizeof(MappedTarget));

  channel_.reset(ibv_create_comp_channel(id->verbs));
  if (channel_ == nullptr) return errno;
  cq_.reset(ibv_create_cq(id->verbs, sizes_.send_queue + sizes_.receive_queue, nullptr,
                          channel_.get(), 0));
  if (cq_ == nullptr) return errno;

  ibv_qp_init_attr qp{};
  qp.send_cq = qp.recv_cq = cq_.get();
  qp.qp_type = IBV_QPT_RC;
  qp.cap.max_send_wr = sizes_.send_queue;
  qp.cap.max_recv_wr = sizes_.receive_queue;
  qp.cap.max_send_sge = 2;
  qp.cap.max_recv_sge = 1;
  qp.cap.max_inline_data = sizes_.inline_data;
  if (rdma_create_qp(id, nullptr, &qp) != 0) return errno;
  id_ = id;

  send_memory_.resize(sizes_.send_buffer);
  receive_memory_.resize(sizes_.receive_buffer + sizes_.receive_queue * kMessageSize);
  lists_memory_.resize(kTargetsSize + sizes_.mapped_slots * sizeof(MappedTarget));
  // An int: the macro of the header combines it with values of another enumeration.
  constexpr int kLocalWrite = IBV_ACCESS_LOCAL_WRITE;
  send_mr_.reset(ibv_reg_mr(id->pd, send_memory_.data(), send_memory_.size(), kLocalWrite));
  receive_mr_ = writable(id->pd, receive_memory_.data(), receive_memory_.size());
  lists_mr_ = writable(id->pd, lists_memory_.data(), lists_memory_.size());
  if (send_mr_ == nullptr || receive_mr_ == nullptr || lists_mr_ == nullptr) return errno;

  for (uint32_t i = 0; i < sizes_.receive_queue; ++i) {
    if (const int error = post_receive(i); error != 0) return error;
  }
  return 0;
}

ConnectData Endpoint::connect_data() const {
  ConnectData d;
  d.credits = credits();
  d.mapped_slots = sizes_.mapped_slots;
  d.list = {reinterpret_cast<uint64_t>(lists_memory_.data()), lists_mr_->rkey, kTargets};
  d.buffer = half(0);
  return d;
}

Target Endpoint::half(uint32_t offset) const {
  return {reinterpret_cast<uint64_t>(receive_memory_.data() + offset), receive_mr_->rkey,
          sizes_.receive_buffer / 2};
}

Target Endpoint::take_target(uint32_t index) {
  std::byte* entry = lists_memory_.data() + index * sizeof(Target);
  Target t;
  std::memcpy(&t, entry, sizeof t);
  // The message that was taken may have told of credits alone, while the peer's Write is under way:
  // it is there when no word of it is missing.
  if (t.address == 0 || t.length == 0) return {};
  std::memset(entry, 0, sizeof t);
  return t;
}

MappedTarget Endpoint::mapped_target(uint32_t index) const {
  MappedTarget t;
  std::memcpy(&t, lists_memory_.data() + kTargetsSize + index * sizeof t, sizeof t);
  return t;
}

int Endpoint::post_receive(uint32_t index) {
  ibv_sge word{reinterpret_cast<uint64_t>(receive_memory_.data()) + sizes_.receive_buffer +
                   index * kMessageSize,
               kMessageSize, receive_mr_->lkey};
  ibv_recv_wr wr{};
  wr.wr_id = kReceive | index;
  wr.sg_list = &word;
  wr.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  return ibv_post_recv(id_->qp, &wr, &bad);
}

int Endpoint::post(ibv_send_wr& wr) {
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(id_->qp, &wr, &bad);
}

int Endpoint::post_with_message(ibv_send_wr* write, Message message) {
  uint32_t word = message.word();
  ibv_sge sge{reinterpret_cast<uint64_t>(&word), sizeof word, 0};
  ibv_send_wr wr{};
  wr.wr_id = word;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
  if (write == nullptr) return post(wr);
  write->next = &wr;
  return post(*write);
}

Endpoint::PieceWrite::PieceWrite(const Endpoint& from, const SendWindow::Piece& piece) {
  const auto base = reinterpret_cast<uint64_t>(from.send_memory_.data());
  parts[0] = {base + piece.offset, piece.until_end, from.send_mr_->lkey};
  parts[1] = {base, piece.from_start, from.send_mr_->lkey};
  wr.sg_list = parts;
  wr.num_sge = piece.from_start > 0 ? 2 : 1;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.wr.rdma = {piece.address, piece.key};
}

int Endpoint::write(const SendWindow::Piece& piece, Message message) {
  PieceWrite write{*this, piece};
  return post_with_message(&write.wr, message);
}

int Endpoint::write_small(const void* bytes, uint32_t size, uint64_t address, uint32_t key,
                          Message message) {
  ibv_sge sge{reinterpret_cast<uint64_t>(bytes), size, 0};
  ibv_send_wr wr{};
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_INLINE;
  wr.wr.rdma = {address, key};
  return post_with_message(&wr, message);
}

int Endpoint::send(Message message) {
  return post_with_message(nullptr, message);
}

int Endpoint::write_mapped(const SendWindow::Piece& piece) {
  PieceWrite write{*this, piece};
  write.wr.wr_id = kMapped | (piece.until_end + piece.from_start);
  write.wr.send_flags = IBV_SEND_SIGNALED;
  return post(write.wr);
}

std::optional<Endpoint::Completion> Endpoint::poll() {
  ibv_wc wc{};
  const int count = ibv_poll_cq(cq_.get(), 1, &wc);
  if (count == 0) return std::nullopt;
  Completion c;
  c.failed = count < 0 || wc.status != IBV_WC_SUCCESS;
  if (count < 0 || (c.failed && wc.wr_id == 0))
    return c;  // of a Write whose message is not told of
  if ((wc.wr_id & kReceive) == 0) {
    c.is_sent = true;
    c.mapped = (wc.wr_id & kMapped) != 0;
    c.sent = Message::of(static_cast<uint32_t>(wc.wr_id));
    return c;
  }
  // What is shorter than a message is none that this side knows.
  c.failed = c.failed || wc.byte_len != kMessageSize;
  if (c.failed) return c;
  const auto index = static_cast<uint32_t>(wc.wr_id);
  uint32_t word = 0;
  std::memcpy(&word, receive_memory_.data() + sizes_.receive_buffer + index * kMessageSize,
              kMessageSize);
  c.received = Message::of(word);
  (void)post_receive(index);  // fails where the connection has ended, of which a completion tells
  return c;
}

int Endpoint::arm() {
  return ibv_req_notify_cq(cq_.get(), 0);
}

int Endpoint::wait() {
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  if (ibv_get_cq_event(channel_.get(), &cq, &context) != 0) return errno;
  ++events_;
  return 0;
}

void Endpoint::drain_events() {
  pollfd p{channel_->fd, POLLIN, 0};
  while (::poll(&p, 1, 0) == 1 && wait() == 0) {
  }
}

}  // namespace weft::rsockets
