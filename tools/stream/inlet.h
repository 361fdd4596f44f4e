// The receiver's end of a transport: brings what arrives to its lane.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "stream/control.h"
#include "stream/lane.h"
#include "stream/multicast.h"

namespace weft::stream {

// What an inlet keeps of a sender.
struct Ends {
  Ends() = default;
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;
  virtual ~Ends() = default;
};

// A sender that says hello.
// NOLINTNEXTLINE(bugprone-exception-escape): of JSON, whose end does not throw
struct ConnectedSender {
  uint64_t session = 0;
  std::vector<uint32_t> streams;
  Shape shape;              // of its packets
  uint32_t group = 1;       // packets of a Write
  std::string address;      // of the sender
  std::string own_address;  // that the sender has connected to
  nlohmann::json ends;      // what the sender told of its own
  std::shared_ptr<Ends> kept;
};

// All functions throw kit::Failure.
class Inlet {
 public:
  Inlet() = default;
  Inlet(const Inlet&) = delete;
  Inlet& operator=(const Inlet&) = delete;
  virtual ~Inlet() = default;

  // --- in the thread of a control connection
  // Makes ready for a sender; what to tell it, a document for each of its streams.
  virtual nlohmann::json offer(ConnectedSender& sender) = 0;
  // The sender connects at this moment.
  virtual void connect(ConnectedSender& sender) = 0;

  // --- in the thread of the lanes
  // The sender's packets may come from now on. Its lanes have begun.
  virtual void begin(const ConnectedSender& sender) = 0;
  // They are not wanted any more.
  virtual void end(const ConnectedSender& sender) = 0;
  // Sleeps until something comes, at most so long, or until `waker` turns readable.
  virtual void wait(int most_ms) = 0;
  // Takes what has come, some of it at least. False when there was nothing.
  virtual bool take(int64_t now_ns) = 0;
  // A stream has been silent, or ends: what waits for more of it is judged now.
  virtual void settle(uint32_t, int64_t) {}
  // What senders that are circuits have to be told, a document for each stream.
  virtual std::vector<nlohmann::json> circuits() const { return {}; }
  // What the kernel dropped because nobody took it.
  virtual uint64_t dropped_by_kernel() { return 0; }
};

struct InletOptions {
  Transport transport = Transport::uc;
  Shape shape;
  std::string address;    // to listen at; empty: all
  uint16_t udp_port = 0;  // of the first stream's socket; 0: any, as the sender is told
  // UDP: multicast groups to join, by the interface of `address`. As many as there are streams: one
  // each, all at udp_port; else all of them for every socket.
  std::vector<Group> groups;
  std::vector<std::string> circuits;  // UC: addresses of senders that are circuits, of each stream;
                                      // empty: senders say hello
  std::string library;                // the libibverbs
  int waker = -1;                     // a descriptor that ends wait(); -1: none
  // Takes events of streams. Unset: nobody wants to know.
  std::function<void(const nlohmann::json&)> tell;
};

std::unique_ptr<Inlet> make_socket_inlet(const InletOptions& options, Lanes& lanes);
std::unique_ptr<Inlet> make_verbs_inlet(const InletOptions& options, Lanes& lanes, Ring& ring);

}  // namespace weft::stream
