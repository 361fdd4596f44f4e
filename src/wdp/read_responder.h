// The other side of UC Reads (spec/wdp-uc 5.3): answers ranges in the order of their requests.
// Keeps nothing but where each answer stands, and the last requests it knows.
#pragma once

#include <array>
#include <optional>

#include "base/fixed_ring.h"
#include "wdp/counters.h"
#include "wdp/error_reporter.h"
#include "wdp/uc_consumer.h"
#include "wdp/uc_writer.h"
#include "wire/wdp_messages.h"

namespace weft::wdp {

class ReadResponder {
 public:
  ReadResponder(UcConsumer& consumer, const UcParameters& parameters, UcWriter& writer,
                ErrorReporter& errors, UcCounters& counters)
      : consumer_(consumer),
        parameters_(parameters),
        writer_(writer),
        errors_(errors),
        counters_(counters),
        answers_(parameters.ird + kMostReRequests) {}

  Result<Ok, wire::WdpDrop> received(const wire::WdpData& d, Bytes payload);
  bool ready() const { return !answers_.empty(); }
  void fill(Train& train);
  void llp_took_all() { in_train_.reset(); }
  // The program unmapped what the peer reads, and the train is gone.
  void own_memory_lost();
  void trim() { answers_.trim(); }

 private:
  // A wish below this is not granted: the headers would be more than the data.
  static constexpr uint16_t kLeastStride = 256;

  struct Answer {
    wire::WdpData request;
    uint16_t stride = 0;
    uint32_t asked = 0;  // bytes; rounded to the stride it is somewhat more
    uint32_t next = 0;
    uint32_t end = 0;
    bool done = false;
  };
  struct Known {
    ReadId id;
    uint32_t attempt = 0;
    MessageOffset mo;
    friend constexpr bool operator==(const Known&, const Known&) = default;
  };

  bool write_segment(Answer& a, Msn msn, Train& train);
  bool known(const Known& k) const;

  UcConsumer& consumer_;
  const UcParameters& parameters_;
  UcWriter& writer_;
  ErrorReporter& errors_;
  UcCounters& counters_;
  FixedRing<Answer> answers_;
  uint64_t queued_ = 0;                    // bytes that are asked for
  std::optional<wire::WdpData> in_train_;  // the last that is answered in it
  std::array<Known, kRememberedRequests> last_{};
  size_t remembered_ = 0;
};

}  // namespace weft::wdp
