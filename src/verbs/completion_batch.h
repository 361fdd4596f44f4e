// The completions of one visit of a queue pair. They go to their queues at its end, when all state
// is consistent.
#pragma once

#include <vector>

#include "verbs/completion_queue.h"
#include "work/consumer.h"

namespace weft::verbs {

// Engine holder.
class CompletionBatch {
 public:
  CompletionBatch(CompletionQueue& sends, CompletionQueue& receives)
      : send_cq_(sends), recv_cq_(receives) {}

  void sent(const Completion& c) { add(sent_, send_cq_, {c, false}); }
  void received(const Completion& c, bool solicited) { add(received_, recv_cq_, {c, solicited}); }
  // False: there was no room for one of them, which is lost.
  bool publish() { return (sent_.empty() && received_.empty() && !lost_room_) || publish_all(); }
  // Forgets those of this visit.
  void clear();

 private:
  bool publish_all();
  void add(std::vector<CompletionQueue::Entry>& to, CompletionQueue& queue,
           const CompletionQueue::Entry& entry);

  CompletionQueue& send_cq_;
  CompletionQueue& recv_cq_;
  bool lost_room_ = false;  // in this visit
  std::vector<CompletionQueue::Entry> sent_;
  std::vector<CompletionQueue::Entry> received_;
};

// What a request or a receive says of its end, but for the number of the queue pair.
Completion completion_of(const work::SendWqe& wqe, Status status);
Completion completion_of(const work::Receive& r, Status status, const work::Arrival& a);

}  // namespace weft::verbs
