#include "stream/landed_packets.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/crc32c.h"

namespace weft::stream {
namespace {

constexpr int64_t kSilenceNs = 1'000'000'000;
constexpr unsigned kMostTurns = 4096;  // of the immediate's bits, that a sender may be ahead

}  // namespace

void LandedPackets::begin(uint32_t stream, const Shape& shape, bool trailers) {
  Lane& lane = lanes_[stream];
  lane.ledger.in_place = [&lane, shape](uint64_t number) {
    return read_header(shape, ConstPacket{lane.store.landed(number), shape.packet_bytes()});
  };
  lane.ledger.recover = nullptr;
  if (trailers) {
    lane.ledger.recover = [this, &lane](uint64_t number) { return intact(lane, number); };
  }
}

// What a Write has to be, whoever sent it.
bool LandedPackets::account_for(uint32_t stream, uint32_t group, const Mark& mark, uint32_t bytes,
                                int64_t now_ns) {
  Lane& lane = lanes_[stream];
  const uint32_t packets = lane.store.packets();
  const uint32_t expected = group > 1 ? mark.packets * slot_bytes_ : options_.shape.packet_bytes();
  if (bytes != expected || mark.packets > group) {
    refuse(lane, mark,
           fmt::format("a Write of {} bytes and {} packets, not of {} bytes", bytes, mark.packets,
                       expected));
    return false;
  }
  if (!options_.circuits.empty()) return account_for_circuit(stream, mark, now_ns);
  const uint64_t first = number_of(lane, mark, now_ns);
  if (first / packets != (first + mark.packets - 1) / packets) {
    refuse(lane, mark, "a Write beyond the end of its block");
    return false;
  }
  for (uint32_t i = 0; i < mark.packets; ++i) (void)lane.ledger.arrive(first + i);
  lane.last_arrival_ns = now_ns;
  return true;
}

// Keeps the first one for people. `reason`: where it is not what lies in the slot.
void LandedPackets::refuse(Lane& lane, const Mark& mark, const std::string& reason) const {
  if (lane.first_invalid) return;
  // Slots repeat with the mark's bits.
  const ConstPacket there{lane.store.landed(mark.number), options_.shape.packet_bytes()};
  lane.first_invalid = invalid_packet(options_.shape, there);
  if (!reason.empty()) lane.first_invalid->reason = reason;
}

// Whether the slot holds the whole packet, though nothing told of it.
bool LandedPackets::intact(const Lane& lane, uint64_t number) const {
  const std::byte* slot = lane.store.landed(number);
  const uint32_t size = options_.shape.packet_bytes();
  const Trailer trailer = read_trailer(slot + slot_bytes_ - sizeof(Trailer));
  return trailer.number == number && trailer.crc == crc32c({slot, size});
}

// The immediate has the low bits. After a silence, or when they say something strange, the packet's
// header has to agree: a sender that paused may have gone on by more than those bits.
uint64_t LandedPackets::number_of(const Lane& lane, const Mark& mark, int64_t now_ns) {
  const uint64_t near = lane.ledger.complete_number(mark.number, kMarkBits);
  const uint64_t ring = uint64_t{lane.store.blocks()} * lane.store.packets();
  const uint64_t next = lane.ledger.next();
  const bool usual = near + ring >= next && near < next + ring;
  if (!lane.ledger.in_place || (usual && now_ns - lane.last_arrival_ns < kSilenceNs)) return near;
  uint64_t candidate = near;
  for (unsigned turn = 0; turn < kMostTurns; ++turn, candidate += uint64_t{1} << kMarkBits) {
    if (lane.ledger.in_place(candidate).is(candidate)) return candidate;
  }
  return near;
}

// A circuit says nothing before its first packet, nor when it begins anew: the header in the slot
// has the whole number. Slots repeat with the low bits (the ring's size divides 2^24).
bool LandedPackets::account_for_circuit(uint32_t stream, const Mark& mark, int64_t now_ns) {
  Lane& lane = lanes_[stream];
  Ledger& ledger = lane.ledger;
  const uint64_t near = ledger.complete_number(mark.number, kMarkBits);
  if (ledger.running() && lane.continuity.goes_on(near, ledger.next())) {
    lane.continuity.went_on();
    ledger.count_invalid(lane.continuity.take_given_up());
    (void)ledger.arrive(near);
    lane.last_arrival_ns = now_ns;
    return true;
  }
  Header told = ledger.in_place(mark.number);
  // A counter of fewer bits than the immediate's says less.
  const unsigned bits = std::min(told.bits, kMarkBits);
  const uint64_t common = (uint64_t{1} << bits) - 1;
  if (!told.has_number()) {
    refuse(lane, mark, {});
    return false;
  }
  if (((told.number ^ mark.number) & common) != 0) {
    refuse(lane, mark,
           fmt::format("its header has the number {:#x}, and its immediate {:#x}",
                       told.number & common, mark.number & common));
    return false;
  }
  if (told.bits < kMarkBits) {
    told.number = mark.number;
    told.bits = kMarkBits;
  }
  if (told.bits < 64) {
    told.number = ledger.complete_number(told.number, told.bits, Continuity::kLongestOutage);
  }
  const auto next = ledger.running() ? std::optional{ledger.next()} : std::nullopt;
  const Continuity::Judgement judgement = lane.continuity.judge(told, next);
  ledger.count_invalid(lane.continuity.take_given_up());
  if (judgement.answer == Continuity::Answer::foreign) ledger.count_foreign();
  if (judgement.answer == Continuity::Answer::believed) believe(stream, judgement, now_ns);
  lane.last_arrival_ns = now_ns;
  return true;
}

// The packets lie in their places already.
void LandedPackets::believe(uint32_t stream, const Continuity::Judgement& judgement,
                            int64_t now_ns) {
  Lane& lane = lanes_[stream];
  (void)lane.believe(stream, judgement, options_.tell);
  for (const Continuity::Taken& t : lane.continuity.taken()) (void)lane.ledger.arrive(t.number);
  lane.last_arrival_ns = now_ns;
}

void LandedPackets::settle(uint32_t stream, int64_t now_ns) {
  Lane& lane = lanes_[stream];
  const auto next = lane.ledger.running() ? std::optional{lane.ledger.next()} : std::nullopt;
  const auto judgement = lane.continuity.settle(next, lane.end);
  lane.ledger.count_invalid(lane.continuity.take_given_up());
  if (judgement) believe(stream, *judgement, now_ns);
}

}  // namespace weft::stream
