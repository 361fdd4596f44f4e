// Messages of a queue pair are counted where its transport tells of them, for the protocols that do
// not count by themselves (UC, UD). Engine holder.
#pragma once

#include "rdmap/work_request.h"
#include "stats/blocks.h"

namespace weft::verbs {

inline void count_sent(stats::QpCounters& c, const rdmap::SendWqe& wqe, rdmap::Status status) {
  if (status != rdmap::Status::success || rdmap::is_local(wqe.operation)) return;
  if (wqe.operation == rdmap::Operation::read) {
    c.sent(stats::Kind::read);
    c.received(stats::Kind::read, wqe.length);
    return;
  }
  const auto kind = rdmap::is_send(wqe.operation) ? stats::Kind::send : stats::Kind::write;
  c.sent(kind);
  c.sent(kind, wqe.length);
}

inline void count_received(stats::QpCounters& c, stats::Kind kind, uint32_t bytes,
                           rdmap::Status status) {
  if (status != rdmap::Status::success) return;
  c.received(kind);
  c.received(kind, bytes);
}

}  // namespace weft::verbs
