// The requesting half of a UC session: takes work requests from the send queue, cuts messages into
// datagrams, and completes requests in order. A Write or Send is complete when the kernel has its
// datagrams (spec/wdp-uc 4.1: WR completes when the last segment is handed to the kernel); a Read
// when its last byte is placed, or when it is given up, and neither ends the session.
#pragma once

#include <optional>

#include "wdp/counters.h"
#include "wdp/uc_consumer.h"
#include "wdp/uc_writer.h"

namespace weft::wdp {

class ReadRequester;

class UcSendPath {
 public:
  UcSendPath(UcConsumer& consumer, const UcParameters& parameters, UcWriter& writer,
             ReadRequester& reads, UcCounters& counters);

  // Is there a datagram that could go out now? Carries out local operations, and hands Reads on, on
  // the way, but for local operations that would have to wait for what `train` refers to.
  bool ready(const Train* train = nullptr);
  // Adds datagrams until the train takes no more or nothing is left.
  void fill(Train& train);
  // The kernel has all that was written so far.
  void llp_took_all();
  // Completes what can be, from the head of the queue. To be called when a Read was answered.
  void complete();

  // Nothing is begun while held; the message in progress is finished (InfiniBand's SQD).
  void hold(bool on) { held_ = on; }
  // What is posted from now on is not sent.
  void close() { end_ = queue_.tail(); }
  // Every request that was begun is complete.
  bool idle() const { return stopped_ || (queue_.head() == next_ && !in_message_); }
  // All that is to be sent is sent.
  bool drained() const { return stopped_ || (next_ == end() && !in_message_); }
  // The path carries less than the message in progress was cut for: the rest of it is not sent.
  void give_up_message();

  // A request was at fault itself and stands at the head of the queue with its status.
  bool failed() const { return failed_; }
  // The queue is being flushed, by its owner: no request of it is begun or completed here.
  void stop();
  bool stopped() const { return stopped_; }
  // All was flushed; what is posted from now on is sent.
  void resume();
  // The kernel could not reach memory of the program's (EFAULT). It has the train up to there, so
  // the requests before the one at fault are complete. False: nothing of ours was in the train.
  bool own_memory_lost();

 private:
  uint64_t end() const { return end_ < queue_.tail() ? end_ : queue_.tail(); }
  bool start(const Train* train);
  bool execute(work::SendWqe& w);
  work::Status acceptable(const work::SendWqe& w);
  bool write_segment(work::SendWqe& w, Train& train);
  void lose_source();
  void finish_message();
  void drop_message();
  void poison(work::Status status);

  UcConsumer& consumer_;
  work::SendQueue& queue_;
  const UcParameters& parameters_;
  UcWriter& writer_;
  ReadRequester& reads_;
  UcCounters& counters_;

  uint64_t next_;      // request being sent, or to be sent next
  uint64_t llp_took_;  // requests before this index are with the kernel
  uint64_t end_ = UINT64_MAX;
  bool held_ = false;
  bool in_message_ = false;
  bool in_train_ = false;  // something was written that the kernel does not have
  uint16_t stride_ = 0;    // of the message in progress
  Msn msn_;                // of it
  uint32_t offset_ = 0;    // bytes of it that are in datagrams
  // How the request next_ will fail once those before it are complete.
  std::optional<work::Status> poison_;
  bool failed_ = false;
  bool stopped_ = false;
};

}  // namespace weft::wdp
