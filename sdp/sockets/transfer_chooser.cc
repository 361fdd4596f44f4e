#include "sdp/sockets/transfer_chooser.h"

#include <algorithm>
#include <bit>

#include "sdp/sockets/variable.h"

namespace weft::sdp {
namespace {

constexpr const char* kVariable = "WEFT_SDP_ZCOPY_THRESH";

// What is copied first fills the buffers of both sides, and costs less than it will; what goes in
// place first waits until they are empty.
constexpr std::array<size_t, 2> kSettling{2 << 20, 256 << 10};
// Measured at a time.
constexpr size_t kTurn = 4 << 20;
// A trial that has cost so many times what the other transfer does ends early.
constexpr size_t kShortTurn = 256 << 10;
constexpr double kHopeless = 2;
constexpr uint32_t kLongestInterval = 256;
// In place costs less of the processor, so it may take a little longer.
constexpr double kBonus = 1.1;

constexpr Transfer other(Transfer transfer) {
  return transfer == Transfer::copied ? Transfer::in_place : Transfer::copied;
}

constexpr size_t index(Transfer transfer) {
  return static_cast<size_t>(transfer);
}

}  // namespace

std::optional<ZcopyThreshold> ZcopyThreshold::parse(std::string_view text) {
  return text == "auto" ? ZcopyThreshold{kByCost} : parse_bytes<ZcopyThreshold>(text);
}

ZcopyThreshold ZcopyThreshold::of_process() {
  return threshold_of_process<ZcopyThreshold>(kVariable);
}

std::optional<std::string> ZcopyThreshold::wrong_in_process() {
  return sdp::wrong_in_process<ZcopyThreshold>(
      kVariable, "0, auto or a number of bytes from 4096 on; taken for auto");
}

size_t TransferChooser::size_class(size_t bytes) {
  const auto log = static_cast<size_t>(std::bit_width(bytes / kLeast));
  return std::min(log, kSizes) - 1;
}

size_t TransferChooser::least() const {
  if (threshold_.bytes == ZcopyThreshold::kNever) return SIZE_MAX;
  return threshold_.bytes == ZcopyThreshold::kByCost ? kLeast
                                                     : static_cast<size_t>(threshold_.bytes);
}

Transfer TransferChooser::choose(size_t bytes) const {
  if (bytes < least()) return Transfer::copied;
  const bool by_cost = threshold_.bytes == ZcopyThreshold::kByCost;
  return by_cost ? records_[size_class(bytes)].transfer : Transfer::in_place;
}

void TransferChooser::go(Record& record, Transfer transfer, bool tried) {
  if (record.transfer != transfer) record.bytes = 0;
  record.transfer = transfer;
  record.tried = tried;
}

void TransferChooser::end_turn(Record& record) {
  const Transfer alternative = other(record.transfer);
  record.cost[index(record.transfer)] =
      record.measured_ns / static_cast<double>(record.measured_bytes);
  record.measured_ns = 0;
  record.measured_bytes = 0;
  if (record.cost[index(alternative)] == 0) return go(record, alternative, true);
  if (!record.tried && record.turns > 0) {
    --record.turns;
    return;
  }
  if (!record.tried) return go(record, alternative, true);
  // The trial is over.
  const bool in_place =
      record.cost[index(Transfer::in_place)] <= kBonus * record.cost[index(Transfer::copied)];
  const Transfer better = in_place ? Transfer::in_place : Transfer::copied;
  record.interval = better == record.transfer ? 1 : std::min(record.interval * 2, kLongestInterval);
  record.turns = record.interval;
  go(record, better, false);
}

void TransferChooser::record(Transfer transfer, size_t bytes, std::chrono::nanoseconds time) {
  if (threshold_.bytes != ZcopyThreshold::kByCost || bytes < kLeast) return;
  Record& record = records_[size_class(bytes)];
  if (transfer != record.transfer) return;
  record.bytes += bytes;
  if (record.bytes <= kSettling[index(transfer)]) return;
  record.measured_ns += static_cast<double>(time.count());
  record.measured_bytes += bytes;
  const double best = record.cost[index(other(transfer))];
  const bool hopeless =
      record.tried && best > 0 && record.measured_bytes >= kShortTurn &&
      record.measured_ns > kHopeless * best * static_cast<double>(record.measured_bytes);
  if (hopeless || record.measured_bytes >= kTurn) end_turn(record);
}

}  // namespace weft::sdp
