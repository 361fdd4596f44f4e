// Writes messages into what a channel sends: each with the next number of its flow
// (spec/wdp-rd 3, 6). The payload's place is the caller's to fill in.
#pragma once

#include <optional>
#include <utility>

#include "wdp/flow_table.h"
#include "wdp/rd_send_path.h"
#include "wire/wdp_data.h"

namespace weft::wdp {

// What a message of UD, or of a connection, says of itself.
struct RdMessage {
  uint8_t sidx = 0;
  uint8_t didx = 0;
  QKey q_key;
  bool solicited = false;
  std::optional<uint32_t> immediate;
  uint32_t number = 0;  // of a connection's (spec/wdp-rd 7.2)
  uint32_t length = 0;  // bytes of payload
};

// Of one channel. Engine holder only.
class RdMessageWriter {
 public:
  // The reference is kept.
  explicit RdMessageWriter(RdSendPath& sender) : sender_(sender) {}
  RdMessageWriter(const RdMessageWriter&) = delete;
  RdMessageWriter& operator=(const RdMessageWriter&) = delete;

  // Of a channel that rests, or was at rest.
  FlowTable&& take_flows() { return std::move(flows_); }
  void go_on_with(FlowTable&& flows) { flows_ = std::move(flows); }

  // Does a message, or a segment, with so many bytes of payload find room?
  bool has_room(size_t length) const { return sender_.has_room(wire::WdpData::kSize + length); }

  // The place for the payload; has_room() said yes. What became of it the client hears. Throws
  // std::bad_alloc; then nothing has changed.
  std::byte* write(const RdMessage& message, ClientId client, uint64_t request);
  // The same, but it may share a datagram of `most` bytes with those that its client has written
  // before it, if their requests lead up to this one.
  std::byte* write_shared(const RdMessage& message, ClientId client, uint64_t request, size_t most);
  // The last one is not wanted after all; nothing was called since.
  void take_back(const RdMessage& message);

  // The place for the payload of a segment of type RD; has_room() said yes, or it has none. The
  // first one of a message is given its MSN, which the others repeat. Class and CSN are filled in.
  // It may share a datagram of `most` bytes. Throws std::bad_alloc; then nothing has changed.
  std::byte* write(wire::WdpData& segment, bool first, size_t most);
  // The last segment is not wanted after all; nothing was called since.
  void take_back(const wire::WdpData& segment, bool first);

 private:
  static size_t size_of(const RdMessage& m) { return wire::WdpData::kSize + size_t{m.length}; }
  std::byte* encode(const RdMessage& message, Csn csn, std::byte* at);
  Msn& next_of(const RdMessage& m) { return flows_.next_of(FlowTable::flow_of(m.sidx, m.didx)); }
  Msn& next_of(const wire::WdpData& d) {
    return flows_.next_of(FlowTable::flow_of(d.sidx, d.didx, d.is_response()));
  }

  RdSendPath& sender_;
  FlowTable flows_;
};

}  // namespace weft::wdp
