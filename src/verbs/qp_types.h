// The types of queue pairs, a row for each: what they differ in. How one reaches its peers is its
// transport's.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "engine/event_handler.h"
#include "verbs/types.h"

namespace weft::verbs {

class QueuePair;
class Transport;

// "RTS" and the like, as in the verbs headers.
const char* name_of(QpState state);

// From a state to the next, and the attributes that go with it (bits of qp_mask).
struct QpTransition {
  QpState from{};
  QpState to{};
  uint32_t required = 0;
  uint32_t optional = 0;
};

constexpr uint32_t bit_of(work::Operation op) {
  return uint32_t{1} << static_cast<unsigned>(op);
}

struct QpTypeTraits {
  QpType type{};
  const char* name = "";
  uint32_t operations = 0;  // bit_of() each
  // Each send says where it goes, by an address handle. The others have a connection.
  bool addressed = false;
  // Bytes that a slot of the send queue has for that.
  uint32_t slot_extra = 0;
  // Until the program says otherwise; where it need not say it.
  uint32_t access = 0;
  uint8_t rnr_retry = 0;
  // All but those to RESET and ERR, which every state has.
  std::span<const QpTransition> transitions;
  // For the queue pair's life. Throws std::bad_alloc.
  std::unique_ptr<Transport> (*make_transport)(engine::Token& token, QueuePair& qp) = nullptr;

  bool has(work::Operation op) const { return (operations & bit_of(op)) != 0; }
  // nullptr: there is no such transition.
  const QpTransition* find(QpState from, QpState to) const;
  // Is `mask` right for going from `from` to `to`? It has all that is required, and nothing that is
  // neither required nor optional (InfiniBand 11.2.4.2, table 91).
  bool allows(QpState from, QpState to, uint32_t mask) const;
  // What is wrong with it where it is not right, for the user: the transition, or the attributes
  // that lack or are too many, by their names in the verbs headers. Throws std::bad_alloc.
  std::string why_not(QpState from, QpState to, uint32_t mask) const;
};

// The row of a type, by the number that programs give; nullptr: there is none.
const QpTypeTraits* find_type(int number);
inline const QpTypeTraits* find_type(QpType type) {
  return find_type(static_cast<int>(type));
}
// All of them.
std::span<const QpTypeTraits> qp_types();

}  // namespace weft::verbs
