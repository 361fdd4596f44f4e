// The first FPDU of an Initiator that has no queue pair for its connection, and what may follow it.
#pragma once

#include "mpa/fpdu_writer.h"
#include "mpa/parameters.h"

namespace weft::cm {

// An empty RDMA Write, as an Initiator sends it that has nothing to send (spec/mpa 2.4), and as a
// kick (2.5.5). The batch has room for it.
void write_empty_write(mpa::FpduWriter& writer, mpa::TxBatch& batch);

// The frame of the agreed kind; without one an empty Write. The batch has room for it.
void write_first_frame(mpa::Rtr rtr, mpa::FpduWriter& writer, mpa::TxBatch& batch);

}  // namespace weft::cm
