// The header in front of every SDP message (spec/sdp 2).
//
//    0     1       2      4            8              12             16
//   +-----+-------+------+------------+--------------+--------------+
//   | MID | Flags | Bufs | Len        | MSeq         | MSeqAck      |
//   +-----+-------+------+------------+--------------+--------------+
#pragma once

#include <optional>

#include "base/bytes.h"

namespace weft::sdp {

enum class MessageId : uint8_t {
  hello = 0x00,
  hello_ack = 0x01,
  dis_conn = 0x02,
  abort_conn = 0x03,
  send_sm = 0x04,
  rdma_wr_compl = 0x05,
  rdma_rd_compl = 0x06,
  mode_change = 0x07,
  src_avail_cancel = 0x08,
  sink_avail_cancel = 0x09,
  sink_cancel_ack = 0x0a,
  ch_rcv_buf = 0x0b,
  ch_rcv_buf_ack = 0x0c,
  susp_comm = 0x0d,
  susp_comm_ack = 0x0e,
  sink_avail = 0xfd,
  src_avail = 0xfe,
  data = 0xff,
};

struct Bsdh {
  static constexpr uint32_t kSize = 16;
  static constexpr uint8_t kOobPresent = 0x01;
  static constexpr uint8_t kOobPending = 0x02;
  static constexpr uint8_t kRequestPipelined = 0x04;

  MessageId mid{};
  uint8_t flags = 0;
  uint16_t bufs = 0;      // receives that the sender has posted
  uint32_t length = 0;    // of the whole message, this header included
  uint32_t mseq = 0;      // number of this message among its sender's
  uint32_t mseq_ack = 0;  // number of the last message that its sender took

  // Reads kSize bytes. Nothing for an identifier that spec/sdp 2.1 does not have.
  static std::optional<Bsdh> parse(const std::byte* p);
  void encode(std::byte* p) const;
};

// Bytes between the header and the payload of such a message; Hello and HelloAck whole.
uint32_t extended_header_size(MessageId mid);
const char* name(MessageId mid);

}  // namespace weft::sdp
