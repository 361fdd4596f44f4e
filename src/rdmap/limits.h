// Sizes and times that RDMAP over a byte stream works with.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

#include "base/time.h"
#include "mpa/parameters.h"
#include "stats/blocks.h"
#include "wire/ddp_header.h"
#include "wire/fpdu.h"

namespace weft::rdmap {

// What the stream has to know besides the outcome of the start-up.
struct StreamConfig {
  mpa::Parameters mpa;
  bool initiator = false;
  bool by_memory = false;       // the bytes go through memory that both ends share
  bool own_peer = false;        // what it sends is what it receives (spec/addressing 4)
  bool llp_completion = false;  // option completion=llp
  bool big_fpdu = false;        // option big_fpdu: 64 KiB FPDUs towards any peer
  uint8_t rnr_retry = 7;        // 7: for ever
  uint8_t min_rnr_timer = 12;   // code of the time that we ask the peer to wait
  uint32_t emss = 1448;         // bytes of TCP payload per segment
  Duration rnr_wait =
      std::chrono::seconds{10};  // plain peer: how long its Send may wait for a receive
  Duration responder_wait{};     // plain peer: how long a Responder is silent for want of the first
                                 // FPDU; 0: for ever
  stats::Where counters = stats::nowhere();
};

// Ending: how long a stream waits for its Terminate to go out and for the peer's FIN (spec/errors
// 4, spec/rdmap 5), and, closing in good order, for a peer that takes no bytes.
inline constexpr Duration kLinger = std::chrono::seconds{1};
inline constexpr Duration kDrainStuck = std::chrono::seconds{10};

// siw may sleep over the Initiator's first FPDU until another segment comes (spec/mpa 2.5.5).
// So long after it a kick, an empty Write, goes out, unless something was received.
inline constexpr std::array<Duration, 4> kKickAfter = {
    std::chrono::milliseconds{5}, std::chrono::milliseconds{20}, std::chrono::milliseconds{80},
    std::chrono::milliseconds{320}};

// A kernel with siw dies of a connection that closes, or is terminated, between the Reply and the
// RTR or too soon after it (spec/mpa 2.5.6). Three kicks go out before: of an RTR that siw
// sleeps over it dies as well.
inline constexpr Duration kRtrSettles = std::chrono::milliseconds{150};

// Towards a plain peer, from its last byte to our FIN. siw gives up a request whose bytes are all
// out when the FIN comes before its transmitting thread has come back from the kernel's send; with
// an answer right behind that happens often.
inline constexpr Duration kFinSettles = std::chrono::milliseconds{20};

// Towards a plain peer that has said nothing yet, from the Initiator's first FPDU to its FIN. siw
// may have slept over what came (spec/mpa 2.5.5), and loses it when the FIN is what wakes it:
// two kicks go out before.
inline constexpr Duration kUnheardSettles = std::chrono::milliseconds{50};

// Receiver-not-ready timer codes of InfiniBand, in units of 10 us.
inline constexpr std::array<uint32_t, 32> kRnrTimer10us = {
    65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
    48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
    2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
constexpr Duration rnr_time(uint8_t code) {
  return std::chrono::microseconds{10} * kRnrTimer10us[code & 31];
}

// Send payload that may be on its way without being covered by a Delivered, and that a receiver
// keeps for want of a receive (spec/rdmap 4.6).
inline constexpr uint64_t kSendCredit = 4U << 20;

// Payload of one FPDU between two wefts: 15 pages, so that each FPDU of a message that begins on a
// page does too, and the kernel copies whole pages.
inline constexpr uint32_t kBigPayload = 61440;
static_assert(kBigPayload + wire::UntaggedHeader::kSize <= wire::kMaxUlpdu);
// Through memory that both ends share: what the peer pulls in one call. Each call costs some
// microseconds, whatever it moves; and nobody else has the engine meanwhile.
inline constexpr uint32_t kMemoryPayload = 1U << 20;
static_assert(kMemoryPayload + wire::UntaggedHeader::kSize <= wire::FpduForm::kMostInMemory);

// Largest payload per FPDU with this header. RFC 5044 section 5.1: an FPDU fits the EMSS, rounded
// down to 8 as siw does (spec/mpa 3.1); with markers section 4.5 takes its share.
uint32_t max_payload(const StreamConfig& config, size_t header);
// What TCP puts into a segment, where an FPDU is to be whole in one; 0 where that is no matter. A
// receiver may need it: siw finds the CRC wrong when TCP has cut pad and CRC (spec/mpa 2.5.8).
uint32_t fpdu_segment(const StreamConfig& config);

}  // namespace weft::rdmap
