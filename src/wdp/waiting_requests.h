// REQs to the listeners of a port that wait for a program to decide (spec/wdp 4.3, 4.5), and
// questions for UD queue pairs that it has answered: copies of these get the same answer for 2 s
// (spec/wdp 4.8).
#pragma once

#include <deque>
#include <map>
#include <memory>

#include "wdp/demux.h"
#include "wdp/port_answers.h"

namespace weft::wdp {

// One for each port. Engine holder only.
class WaitingRequests {
 public:
  static constexpr size_t kMost = 1024;
  static constexpr size_t kMostTold = 16 * kMost;

  WaitingRequests(Demux& demux, PortAnswers& outbox) : demux_(demux), outbox_(outbox) {}
  WaitingRequests(const WaitingRequests&) = delete;
  WaitingRequests& operator=(const WaitingRequests&) = delete;

  bool full() const {
    return handshakes_.size() - told_.size() >= kMost || told_.size() >= kMostTold;
  }
  // Not while full(). It is in Handshake::State::req_received.
  void add(const RequestKey& key, std::unique_ptr<Handshake> handshake);
  // The program accepts it: it waits no more. Null: it does not wait, or is a question for tell().
  std::unique_ptr<Handshake> take(const RequestKey& key);
  // False: it does not wait.
  bool reject(const RequestKey& key, wire::RejReason reason, Bytes private_data);
  // The queue pair's QPN, and its Q_Key for `first_psn`. False: it is no question that waits.
  bool tell(const RequestKey& key, const Offer& offer, Time now);

  // When the first of the answered questions is forgotten.
  Time deadline() const { return told_.empty() ? Time::never() : told_.front().until; }
  void tick(Time now);

 private:
  // A question that was answered. All live equally long.
  struct Told {
    RequestKey key;
    Time until;
  };

  Demux& demux_;
  PortAnswers& outbox_;
  std::map<RequestKey, std::unique_ptr<Handshake>> handshakes_;  // those that were told, too
  std::deque<Told> told_;
};

}  // namespace weft::wdp
