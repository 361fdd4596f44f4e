// The memory of this side that the program has mapped for its peer (riomap), and what of it the
// peer has not been told yet.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "abi/rsockets/connection.h"
#include "abi/rsockets/verbs_objects.h"

namespace weft::rsockets {

// One user at a time.
class Mappings {
 public:
  // Maps `size` bytes for the peer at the offset that is wanted, or at their address. 0, or an
  // errno value: ENOMEM when the peer has no slot left. With `remote` false nobody but this side
  // knows of it.
  int add(Connection& connection, void* memory, size_t size, bool remote,
          std::optional<uint64_t> wanted, uint64_t& offset);
  // EINVAL for what is not mapped. The peer is not told; its Writes there end the connection from
  // then on.
  int remove(void* memory, size_t size);
  // Tells the peer of what it does not know yet. False when something has to wait for progress.
  bool tell(Connection& connection);

 private:
  struct Mapping {
    void* memory;
    size_t size;
    uint64_t offset;
    std::optional<uint32_t> slot;  // at the peer
    Verbs<ibv_mr> region;
    bool told;
  };
  std::optional<uint32_t> free_slot(uint32_t slots) const;

  std::vector<Mapping> all_;
};

}  // namespace weft::rsockets
