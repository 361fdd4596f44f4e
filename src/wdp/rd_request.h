// A request of an RD queue pair as its peer sees it (spec/wdp-rd 6): what the segments of its
// message say, what answers it, and where the answer goes.
#pragma once

#include "wdp/ud_consumer.h"
#include "wire/wdp_data.h"
#include "wire/wdp_messages.h"

namespace weft::wdp {

// Which segment of a flow's messages it is.
struct RdSegment {
  uint8_t didx = 0;
  uint8_t sidx = 0;
  Msn msn;              // none before the first one is sent
  uint32_t offset = 0;  // in its message
  uint16_t stride = 0;
  bool opens = false;  // its message says F
};

// Bytes behind the headers of all segments of the request.
uint32_t message_length(const work::SendWqe& w);
// `to` and the queue pair's `own_key` are for the Q_Key that a Send says.
wire::WdpData request_header(const work::SendWqe& w, const RdSegment& segment,
                             const UdDestination& to, QKey own_key);
// The payload of the segment that has this header. False: memory of the request is not there.
bool write_request(work::Memory& memory, work::SendWqe& w, const wire::WdpData& header,
                   std::byte* at);
// The message is given up in front of this segment.
wire::WdpData message_end(const RdSegment& segment);

// The request that this segment of an answer is for.
Msn answered_request(const wire::WdpData& header, Bytes payload);
// Is it what answers this request?
bool answers(const wire::WdpData& header, const work::SendWqe& w);
// Puts it where the request wants it. False: memory of the request is not there.
bool place_answer(work::Memory& memory, work::SendWqe& w, const wire::WdpData& header,
                  Bytes payload);

// How a request that the peer refuses for good completes.
work::Status status_of(wire::WdpResponse::Code code);

}  // namespace weft::wdp
