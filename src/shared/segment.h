// The memory that two processes of one host share for a connection: a sealed memfd, made by the
// Responder of MPA's start-up and opened by the Initiator (spec/same-host 2, 3.1).
#pragma once

#include <memory>
#include <optional>

#include "base/result.h"
#include "port/fd.h"
#include "port/system_error.h"
#include "shared/own_end.h"
#include "shared/ring.h"
#include "stats/reasons.h"
#include "wire/host_offer.h"

namespace weft::shared {

class Segment {
 public:
  // For the Responder: a new one, with a nonce that nobody can guess.
  static Result<Segment, port::SystemError> make();
  // For the Initiator: that of the offer. `network_namespace`: the cookie of the own socket's.
  // Refused where it is not a process of the same user in the same namespace that offers, or where
  // the kernel does not let this one in.
  static Result<Segment, stats::SameHostRefusal> join(const wire::HostOffer& offer,
                                                      uint64_t network_namespace);
  Segment(Segment&&) noexcept = default;
  Segment& operator=(Segment&&) noexcept = default;

  // It is for this connection. Before its own and the other end's peer() are asked for.
  void belongs_to(const port::TcpStream& tcp) { own_end_ = std::make_unique<OwnEnd>(nonce_, tcp); }
  // What the Responder says of it. It keeps the descriptor until close_descriptor().
  wire::HostOffer offer(uint64_t network_namespace) const;
  void close_descriptor() { fd_.reset(); }
  // False in a child of fork(2): the memory is not there.
  bool mapped() const;
  // Has an Initiator joined?
  bool joined() const;

  // This side's ends of the two rings.
  RingPlace outgoing() const { return ring(initiator_ ? 0 : 1); }
  RingPlace incoming() const { return ring(initiator_ ? 1 : 0); }
  // The process at the other end; of the Responder's side once it has joined. Nothing: it says that
  // it is this process, and is not.
  std::optional<PeerMemory> peer() const;

 private:
  struct Layout;
  // Unmaps; not in a child of fork(2), which has no such mapping.
  struct Unmap {
    void operator()(Layout* p) const;
    int pid;
  };
  using Mapping = std::unique_ptr<Layout, Unmap>;
  Segment(port::Fd fd, Mapping mapping, const wire::HostOffer::Nonce& nonce)
      : fd_(std::move(fd)), mapping_(std::move(mapping)), nonce_(nonce) {}
  static Result<Mapping, port::SystemError> map(const port::Fd& fd);
  RingPlace ring(size_t i) const;

  port::Fd fd_;
  Mapping mapping_;
  std::unique_ptr<OwnEnd> own_end_;
  wire::HostOffer::Nonce nonce_;  // what stands in the memory, the peer can change
  bool initiator_ = false;
  int responder_pid_ = 0;  // of the offer, on the Initiator's side
  uint64_t responder_address_ = 0;
};

}  // namespace weft::shared
