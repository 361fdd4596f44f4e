// The start of an RC connection through a channel (spec/wdp-rd 7.5, 7.6): messages that reach a
// queue pair which has no connection yet, or a listener of rdma_cm.
#pragma once

#include <cstdint>
#include <vector>

#include "wdp/rd_message_writer.h"
#include "wire/rd_offer.h"
#include "wire/rd_word.h"

namespace weft::wdp {

// The largest of them: an offer, a frame of MPA and its private data.
inline constexpr uint32_t kMostOfStart = wire::RdOffer::kSize + 20 + 512;

// The index by which a listener of rdma_cm is called: its port has no queue pairs.
inline constexpr uint8_t kListenerIndex = 1;

// A Request, or that one is taken back.
struct RdStart {
  wire::RdStreamWord word{};
  SessionToken channel;  // by which it came
  uint8_t index = 0;     // of the one that it is for
  uint16_t caller = 0;   // by rdma_cm: the port of the id that calls, where it has one
  wire::RdOffer offer;   // of the queue pair that sent it
  std::vector<std::byte> frame;
};

// Is it such a message?
inline bool is_start(const wire::WdpData& d) {
  if (d.is_of_rd() || !d.has_immediate() || d.q_key() != QKey{}) return false;
  const auto word = static_cast<wire::RdStreamWord>(d.imm_or_read);
  return word == wire::RdStreamWord::request || word == wire::RdStreamWord::cancel;
}

// The message with which `own` says `word` to queue pair `to`. `session`: that of `to`, or 0 where
// it has none yet.
inline RdMessage start_message(Qpn own, Qpn to, uint32_t session, wire::RdStreamWord word,
                               uint32_t length) {
  return {.sidx = index_of(own),
          .didx = index_of(to),
          .q_key = QKey{session},
          .immediate = static_cast<uint32_t>(word),
          .length = length};
}

}  // namespace weft::wdp
