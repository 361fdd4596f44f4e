// The one table of all counters: name, block, and one sentence. `weft stat` prints from it,
// docs/counters.md is made from it. Names never change their meaning.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "stats/blocks.h"

namespace weft::stats {

// Who counts it. What a queue pair counts is known of its engine too, as a sum, and what an engine
// counts is known of the device.
enum class Scope : uint8_t { queue_pair, engine, device };

struct Row {
  Scope scope{};
  std::string family;    // "refused"
  std::string kind;      // "crc", or empty where the family is one counter
  std::string sentence;  // what one more of it means
  std::string about;     // what all of the family have in common
  size_t offset = 0;     // of the cell in the block of its scope, bytes

  // What it counts: "bytes", "messages", "FPDUs", "datagrams" or "times".
  const char* unit() const;
  // "refused.crc"
  std::string name() const { return kind.empty() ? family : family + "." + kind; }
};

// Rows of queue pairs first, then of engines, then of the device. So the values of a queue pair are
// a beginning of those of an engine, and these of the device's. Any thread.
std::span<const Row> table();
// How many values there are of a thing of this scope.
size_t row_count(Scope scope);

// Adds the values of a block to `values`, where its rows are. The span has row_count() of a scope
// that includes the block's.
void add_values(const QpCounters& block, std::span<uint64_t> values);
void add_values(const EngineCounters& block, std::span<uint64_t> values);
void add_values(const DeviceCounters& block, std::span<uint64_t> values);

// Changes whenever the table does: tells whether a reader knows what a process counts.
uint64_t fingerprint();

}  // namespace weft::stats
