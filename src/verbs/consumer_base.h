// What every protocol asks of the queue pair, and the queue pair answers by itself.
#pragma once

#include "verbs/queue_pair.h"

namespace weft::verbs {

// `Consumer`: work::Consumer or one that asks for the same and more.
template <class Consumer>
class ConsumerBase : public Consumer {
 protected:
  explicit ConsumerBase(QueuePair& qp) : qp_(qp) {}
  work::Memory& memory() final { return qp_.memory(); }
  work::SendQueue& send_queue() final { return qp_.send_queue(); }
  bool take_receive(work::Receive& out) override { return qp_.receives().take(out); }

  QueuePair& qp_;
};

}  // namespace weft::verbs
