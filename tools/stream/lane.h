// One stream in the receiver.
#pragma once

#include <deque>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "stream/continuity.h"
#include "stream/invalid_packet.h"
#include "stream/ledger.h"

namespace weft::stream {

struct Lane {
  Lane(BlockStore& its_store, const LedgerRules& rules)
      : store(its_store),
        ledger(its_store, rules),
        continuity(uint64_t{its_store.blocks()} * its_store.packets()) {}

  // Packets of a sender that nobody announced agree about where they are: the stream begins there,
  // or goes on. A count that fell or jumped is told as the event `jump`. True where it begins.
  bool believe(uint32_t stream, const Continuity::Judgement& judgement,
               const std::function<void(const nlohmann::json&)>& tell);

  BlockStore& store;
  Ledger ledger;
  Continuity continuity;
  // Packets wait in its intake until there are enough to tell how they are to be read.
  bool undecided = false;
  // The first packet that was invalid.
  std::optional<InvalidPacket> first_invalid;
  // The sender that feeds it; 0: none.
  uint64_t session = 0;
  // How far the sender says that it got; what is on its way may still come.
  std::optional<uint64_t> end;
  // Where it will go on behind that; what lies between is missing.
  std::optional<uint64_t> goes_on;
  int64_t last_arrival_ns = 0;
  // When its last sender was through; long ago at first.
  int64_t ended_ns = std::numeric_limits<int64_t>::min() / 2;
  // What came waits, in the transport, for the consumer to release a block.
  bool blocked = false;
};
// A Lane does not move.
using Lanes = std::deque<Lane>;

}  // namespace weft::stream
