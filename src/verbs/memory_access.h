// Memory as one queue pair may use it: the protocol asks by STag or lkey, and gets a place or a
// fault. Also the requests that change the table of memory.
#pragma once

#include "verbs/memory_table.h"
#include "work/memory.h"
#include "work/work_request.h"

namespace weft::verbs {

class ProtectionDomain;
class QueuePair;
struct BindRequest;

// Owns nothing: the rights are the queue pair's, the regions are the table's. Engine holder.
class MemoryAccess final : public work::Memory {
 public:
  explicit MemoryAccess(const QueuePair& qp);

  Result<std::byte*, work::MemoryFault> local(Stag lkey, uint64_t address, uint64_t length,
                                              work::Access need) override;
  Result<std::byte*, work::MemoryFault> receive_buffer(Stag lkey, uint64_t address,
                                                       uint64_t length) override;
  Result<std::byte*, work::MemoryFault> remote(Stag stag, TaggedOffset to, uint64_t length,
                                               work::Access need) override;
  Result<Ok, work::MemoryFault> invalidate(Stag stag) override;

  // A request of the program's that is local: bind_window, local_invalidate.
  Status execute(work::SendWqe& wqe);

 private:
  Result<std::byte*, work::MemoryFault> local_in(const ProtectionDomain& pd, Stag lkey,
                                                 uint64_t address, uint64_t length,
                                                 uint32_t need) const;
  Status bind(const BindRequest& b);
  Result<Ok, work::MemoryFault> close_window(Stag stag);

  const QueuePair& qp_;
  MemoryTable& table_;
};

}  // namespace weft::verbs
