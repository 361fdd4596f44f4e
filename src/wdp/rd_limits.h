// Sizes and times of channels of reliable datagrams (spec/wdp-rd).
#pragma once

#include "wdp/limits.h"

namespace weft::wdp {

// spec/wdp-rd 4.2: datagrams that may be under way beyond CUM, which a receiver tells apart.
inline constexpr uint32_t kCsnWindow = 4096;
// What a datagram takes in a socket's buffer besides its bytes, in all sums that a window limits.
inline constexpr size_t kDatagramOverhead = 256;
// spec/wdp-rd 4.4: bytes that a receiver keeps for queue pairs that have no receive.
inline constexpr size_t kChannelHold = size_t{2} << 20;
// The same of channels that have ended, all of a socket's together.
inline constexpr size_t kMostLeft = size_t{32} << 20;
// Bytes that a sender keeps: what is under way, and what waits for a window.
inline constexpr size_t kChannelStore = size_t{3} << 20;

// spec/wdp-rd 4.5: windows on long paths. The largest one; what all of a socket have together
// beyond what each may keep at any time; from which round trip on they grow, for what is faster
// would wait in the socket's buffer; and how long nothing comes before they have their first size.
inline constexpr size_t kLongestWindow = size_t{8} << 20;
inline constexpr size_t kSocketExtra = size_t{32} << 20;
inline constexpr Duration kLongTrip = 4ms;
inline constexpr Duration kWindowRests = 5s;
// The same for memory that is of use while something passes.
inline constexpr Duration kMemoryRests = 1s;

// spec/wdp-rd 4.1: when what came is acknowledged, at the latest.
inline constexpr Duration kAckDelay = 100us;
inline constexpr uint32_t kAckEvery = 4;  // datagrams

// spec/wdp-rd 5.2, after RFC 9002 6.1. Trains of 64 are reordered as wholes: two of them.
inline constexpr uint64_t kReorderedDatagrams = 128;
inline constexpr Duration kLeastLossDelay = 250us;

// spec/wdp-rd 5.3, after RFC 9002 6.2.
inline constexpr Duration kFirstRoundTrip = 100ms;
inline constexpr Duration kProbeGranularity = 1ms;
inline constexpr Duration kMostProbePause = 1s;
inline constexpr uint32_t kMostProbes = 24;  // in a row without an answer: the peer is gone
// The same for a datagram that does not arrive while others do: the path does not carry its size.
inline constexpr uint32_t kMostCopies = 24;
inline constexpr Duration kMostPatience = 15s;
inline constexpr uint32_t kQuestionsToInquire = 2;  // whether the peer still has its port
inline constexpr uint32_t kProbesToAsk = 3;         // by KA, whether it knows the channel
inline constexpr uint32_t kProbesToCollapse = 3;    // congestion that persists

// spec/wdp-rd 2: a channel on which nothing happens ends, and its memory goes.
inline constexpr Duration kIdleChannel = 120s;
// spec/wdp-rd 2.5: one that is at rest is forgotten; how long its next message goes without a REQ
// before it, for its peer is taken to be there yet.
inline constexpr Duration kRestingChannel = std::chrono::minutes{20};
inline constexpr Duration kShortRest = 10s;
// spec/wdp-rd 2.4: that an end waits for what the peer has not acknowledged.
inline constexpr Duration kLastMessages = 1s;
// spec/wdp-rd 7.4: until the peer is asked for the first time after something has passed; each
// answer makes the next pause longer.
inline constexpr Duration kFirstRest = 250ms;
inline constexpr int kRestGrowth = 4;
// spec/wdp-rd 2.2: how often who has called asks until it hears something.
inline constexpr Duration kAskForPeer = 500ms;
// spec/wdp-rd 2.3: until a peer that has no reliable datagrams is asked again.
inline constexpr Duration kAskAgain = 60s;

// spec/wdp-rd 4.4: a queue pair that takes nothing for so many seconds, while what waits for it
// fills half of the hold, loses it.
inline constexpr Duration kPatienceTick = 1s;
inline constexpr uint32_t kPatience = 10;

// spec/wdp-rd 5.5: a datagram that was sent so often as a whole may be too large for the path.
inline constexpr uint32_t kWholeCopies = 2;
// spec/wdp-rd 5.5: that long messages wait to hear what the path carries.
inline constexpr Duration kPathIsFound = 1s;

// spec/wdp-rd 6: Reads and atomics that a flow has unanswered.
inline constexpr uint32_t kFlowReads = 16;
// spec/wdp-rd 6.4: answers that wait for room in the channel, before requests have to.
inline constexpr size_t kMostUnsaid = 4096;
// spec/wdp-rd 6.5: what a sender is told to wait for a receive, if it hears of none before: 10 ms.
inline constexpr uint8_t kRnrDelay = 10;
// spec/wdp-rd 6.5: ticks after which a message that does not go on loses its receive.
inline constexpr uint32_t kMessagePatience = 30;
// As rnr_retry: for ever.
inline constexpr uint8_t kRnrForEver = 7;

}  // namespace weft::wdp
