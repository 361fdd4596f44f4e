// Messages of a queue pair are counted where its transport tells of them, for the protocols that do
// not count by themselves (UC, UD, RD). Engine holder.
#pragma once

#include "stats/blocks.h"
#include "work/work_request.h"

namespace weft::verbs {

inline void count_sent(stats::QpCounters& c, const work::SendWqe& wqe, work::Status status) {
  if (status != work::Status::success || work::is_local(wqe.operation)) return;
  if (wqe.operation == work::Operation::read) {
    c.sent(stats::Kind::read);
    c.received(stats::Kind::read, wqe.length);
    return;
  }
  const auto kind = work::is_send(wqe.operation) ? stats::Kind::send : stats::Kind::write;
  c.sent(kind);
  c.sent(kind, wqe.length);
}

inline void count_received(stats::QpCounters& c, stats::Kind kind, uint32_t bytes,
                           work::Status status) {
  if (status != work::Status::success) return;
  c.received(kind);
  c.received(kind, bytes);
}

}  // namespace weft::verbs
