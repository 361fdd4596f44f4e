// What the peer is yet to be told of its messages: RESPs of queue pairs of type RD
// (spec/wdp-rd 6.4). They wait for company, for 100 us at most, and share a message.
//
//   add() ─► wait ─ 100 us, say(), others go, enough for a message ─► due ─ room ─► written
#pragma once

#include <vector>

#include "wdp/rd_message_writer.h"
#include "wire/wdp_messages.h"

namespace weft::wdp {

// Records in a RESP at most: a datagram that each path carries (PathProbe::least()).
inline constexpr size_t kMostResponses = 41;

// Of one channel. Engine holder only.
class RdAnswers {
 public:
  // Both are kept.
  RdAnswers(RdMessageWriter& writer, RdSendPath& sender) : writer_(writer), sender_(sender) {}
  RdAnswers(const RdAnswers&) = delete;
  RdAnswers& operator=(const RdAnswers&) = delete;

  // Makes sure that there is memory for one more. Throws std::bad_alloc.
  void reserve();
  // After reserve() throws nothing; else perhaps std::bad_alloc, and nothing has changed then. It
  // waits from `since` on, if it is the first.
  void add(const wire::WdpResponse& response, Time since);

  bool empty() const { return unsaid_.empty(); }
  // A peer that does not acknowledge its answers must not make us keep more of them.
  bool full() const { return unsaid_.size() >= kMostUnsaid; }
  // Is there something that waits for company?
  bool wait() const { return !unsaid_.empty() && !due_; }
  // It waits no longer.
  void say() { due_ = true; }

  // Writes those that are due, as far as there is room; all of them where others go: `company`, or
  // what was not sent yet. `most`: bytes of a datagram that several messages share. True: there
  // were some.
  bool write(bool company, size_t most, Time now);

  // None, and memory for some, which rest() gives back.
  bool may_rest() const { return unsaid_.empty() && unsaid_.capacity() > 0; }
  void rest() { std::vector<wire::WdpResponse>{}.swap(unsaid_); }

  // When they wait no longer.
  Time deadline() const { return until_; }
  // True: they are due now.
  bool tick(Time now);

 private:
  bool write_all(size_t most);
  void write_one(size_t records, size_t most);

  RdMessageWriter& writer_;
  RdSendPath& sender_;
  std::vector<wire::WdpResponse> unsaid_;
  bool due_ = false;
  Time until_ = Time::never();
};

}  // namespace weft::wdp
