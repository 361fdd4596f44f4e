#include "sdp/wire/bsdh.h"

#include "sdp/wire/extended_headers.h"
#include "sdp/wire/hello.h"

namespace weft::sdp {

std::optional<Bsdh> Bsdh::parse(const std::byte* p) {
  const auto mid = static_cast<MessageId>(p[0]);
  if (*name(mid) == '\0') return std::nullopt;
  return Bsdh{.mid = mid,
              .flags = static_cast<uint8_t>(p[1]),
              .bufs = load_be<uint16_t>(p + 2),
              .length = load_be<uint32_t>(p + 4),
              .mseq = load_be<uint32_t>(p + 8),
              .mseq_ack = load_be<uint32_t>(p + 12)};
}

void Bsdh::encode(std::byte* p) const {
  p[0] = static_cast<std::byte>(mid);
  p[1] = static_cast<std::byte>(flags);
  store_be(p + 2, bufs);
  store_be(p + 4, length);
  store_be(p + 8, mseq);
  store_be(p + 12, mseq_ack);
}

uint32_t extended_header_size(MessageId mid) {
  switch (mid) {
    case MessageId::hello:
      return Hello::kSize - Bsdh::kSize;
    case MessageId::hello_ack:
      return HelloAck::kSize - Bsdh::kSize;
    case MessageId::rdma_wr_compl:
    case MessageId::rdma_rd_compl:
    case MessageId::ch_rcv_buf:
    case MessageId::ch_rcv_buf_ack:
      return LengthHeader::kSize;
    case MessageId::mode_change:
      return ModeChange::kSize;
    case MessageId::susp_comm:
      return SuspendHeader::kSize;
    case MessageId::sink_avail:
      return SinkAvail::kSize;
    case MessageId::src_avail:
      return SrcAvail::kSize;
    default:
      return 0;
  }
}

const char* name(MessageId mid) {
  switch (mid) {
    case MessageId::hello:
      return "Hello";
    case MessageId::hello_ack:
      return "HelloAck";
    case MessageId::dis_conn:
      return "DisConn";
    case MessageId::abort_conn:
      return "AbortConn";
    case MessageId::send_sm:
      return "SendSm";
    case MessageId::rdma_wr_compl:
      return "RdmaWrCompl";
    case MessageId::rdma_rd_compl:
      return "RdmaRdCompl";
    case MessageId::mode_change:
      return "ModeChange";
    case MessageId::src_avail_cancel:
      return "SrcAvailCancel";
    case MessageId::sink_avail_cancel:
      return "SinkAvailCancel";
    case MessageId::sink_cancel_ack:
      return "SinkCancelAck";
    case MessageId::ch_rcv_buf:
      return "ChRcvBuf";
    case MessageId::ch_rcv_buf_ack:
      return "ChRcvBufAck";
    case MessageId::susp_comm:
      return "SuspComm";
    case MessageId::susp_comm_ack:
      return "SuspCommAck";
    case MessageId::sink_avail:
      return "SinkAvail";
    case MessageId::src_avail:
      return "SrcAvail";
    case MessageId::data:
      return "Data";
  }
  return "";
}

}  // namespace weft::sdp
