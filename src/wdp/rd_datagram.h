// A datagram of data that came by a channel: one message of class 3, or a bundle of several, and
// perhaps an RDACK behind them (spec/wdp-rd 4, 6.7). It is right as a whole, or nothing of it is
// looked at.
#pragma once

#include <optional>
#include <utility>

#include "wdp/rd_limits.h"
#include "wire/wdp_ack.h"
#include "wire/wdp_bundle.h"
#include "wire/wdp_data.h"

namespace weft::wdp {

// Is it a RESP, records of what became of messages? Ends of messages have the same opcode.
inline bool is_resp(const wire::WdpData& d) {
  return d.opcode == wire::Opcode::terminate && !d.is_end();
}

// What both ends of a channel are agreed on.
struct RdTerms {
  bool crc = false;        // in data, both ways
  bool responses = false;  // messages of queue pairs of type RD, and bundles
  bool starts = false;     // connections of RC begin in it
};

// Refers to the bytes, which stay as they are while it lives.
class RdDatagram {
 public:
  // Of class 3 or 5, as `common` says.
  RdDatagram(const wire::WdpCommon& common, Bytes bytes) : common_(common), bytes_(bytes) {}

  // Is it right? What is not is dropped, and nothing below may be called.
  Result<Ok, wire::WdpDrop> check(const RdTerms& terms);

  // Several messages, or one with an RDACK.
  bool is_bundle() const { return common_.wdp_class == wire::WdpBundle::kClass; }
  Csn csn() const { return Csn{common_.class_word}; }
  // Bytes behind the header.
  size_t content() const {
    return bytes_.size() - (is_bundle() ? wire::WdpBundle::kSize : wire::WdpData::kSize);
  }
  // As its sender counts it: bytes, and what each datagram takes besides.
  size_t weight() const { return weight_; }
  bool asks_for_ack() const { return common_.flags.ack_requested; }
  // Messages of it that get no RESP: their sender waits for the RDACK.
  uint32_t messages_of_ud() const { return messages_of_ud_; }
  // A message of it wants a RESP.
  bool wants_response() const { return wants_response_; }
  const std::optional<wire::WdpAck>& ack() const { return ack_; }
  // Calls f(const WdpData&, Bytes payload) for each message, in order.
  template <class F>
  void each_message(F&& f) const {
    if (messages_ > 0) f(first_, payload_);
    if (messages_ < 2) return;
    Bytes rest = bytes_.subspan(wire::WdpBundle::kSize);
    (void)wire::WdpBundle::take(rest);
    for (size_t i = 1; i < messages_; ++i) {
      const Bytes part = *wire::WdpBundle::take(rest);
      wire::WdpCommon front;
      wire::WdpData message;
      front.decode(part.data());
      message.decode(front, part.data());
      f(std::as_const(message), part.subspan(wire::WdpData::kSize));
    }
  }

 private:
  Result<Ok, wire::WdpDrop> check_crc(const RdTerms& terms) const;
  Result<Ok, wire::WdpDrop> check_one(const RdTerms& terms);
  Result<Ok, wire::WdpDrop> check_bundle(const RdTerms& terms);

  const wire::WdpCommon& common_;
  const Bytes bytes_;
  // Of those that a bundle has, or the only one. Others of a bundle are decoded anew.
  size_t messages_ = 0;
  wire::WdpData first_;
  Bytes payload_;  // of the first one
  size_t weight_ = 0;
  uint32_t messages_of_ud_ = 0;
  bool wants_response_ = false;
  std::optional<wire::WdpAck> ack_;
};

}  // namespace weft::wdp
