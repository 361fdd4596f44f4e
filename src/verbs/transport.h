// How a queue pair reaches its peer, or its peers: one kind for each type of queue pair
// (qp_types.h).
#pragma once

#include <memory>
#include <optional>

#include "drive/rd_bytes.h"
#include "engine/event_handler.h"
#include "port/tcp_stream.h"
#include "rdmap/limits.h"
#include "shared/segment.h"
#include "verbs/types.h"
#include "wdp/wdp_socket.h"
#include "wire/rd_offer.h"
#include "work/consumer.h"

namespace weft::drive {
class UcLink;
}  // namespace weft::drive

namespace weft::verbs {

class QueuePair;

// A stream whose MPA start-up is done.
struct EstablishedStream {
  port::TcpStream tcp;
  std::optional<shared::Segment> segment;  // memory that the ends share
  std::optional<wire::RdOffers> rd;        // they would go by datagrams
  std::unique_ptr<drive::RdBytes> bytes;   // they do, and there is no TCP connection
  std::optional<port::Address> loop;       // the queue pair, which is here, is its own peer
  rdmap::StreamConfig config;
  // A host that answers nothing, not even TCP, is given up after 30 s at rest. That is far longer
  // than retries take on InfiniBand: networks that carry TCP have longer pauses than others.
  Keepalive keepalive;
  Bytes early;  // bytes that came behind the start-up frame; read during the call
};

// Of a transport whose connection is a stream that others start. Engine holder.
class StreamAdopter {
 public:
  // The stream is the queue pair's from now on.
  virtual void adopt(engine::Token& token, EstablishedStream&& stream) = 0;
  // Of the stream there is, if any. It is valid.
  virtual void keep_alive(const Keepalive& keepalive) = 0;

 protected:
  ~StreamAdopter() = default;
};

// Of a transport whose connection is a session of WDP. The handshake may be on any driver of the
// queue pair's engine. The ConnectionObserver hears of its outcome. Engine holder.
class DatagramCaller {
 public:
  // What the queue pair brings to a handshake over this path, on that driver's socket.
  virtual wdp::Offer offer(const drive::DatagramDriver& driver, const wdp::Path& path) const = 0;
  virtual void call(engine::Token& token, drive::DatagramDriver& driver, const wdp::Offer& offer,
                    const wdp::Path& path, Qpn destination, bool ib_style) = 0;
  // Of one that called the driver's port. False: it is not there any more.
  virtual bool accept(engine::Token& token, drive::DatagramDriver& driver,
                      const wdp::RequestKey& key, const wdp::Offer& offer) = 0;
  // A connection that waits for a peer that calls the queue pair's own port, in place of the one
  // there was.
  virtual wdp::UcConnection& expect_call(engine::Token& token) = 0;
  // A session that needs no handshake, on the queue pair's own port. `from`: where its datagrams
  // come from.
  virtual void adopt(engine::Token& token, const wdp::UcParameters& session,
                     const wdp::Endpoint& from) = 0;
  // nullptr: there is no connection, and none is being set up.
  virtual drive::UcLink* link() const = 0;
  // That of the queue pair's own port.
  virtual drive::DatagramDriver& driver() const = 0;

 protected:
  ~DatagramCaller() = default;
};

// Of a transport that hears multicast groups. Errors: invalid (no group), system. Engine holder.
class GroupMember {
 public:
  virtual Outcome<Ok> attach(engine::Token& token, const Gid& mgid) = 0;
  // False: it was not attached.
  virtual bool detach(engine::Token& token, const Gid& mgid) = 0;
  // To any.
  virtual bool attached() const = 0;

 protected:
  ~GroupMember() = default;
};

// Engine holder only. Owned by its queue pair.
class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  // What this kind can do besides; nullptr: it cannot.
  virtual StreamAdopter* stream_adopter() { return nullptr; }
  virtual DatagramCaller* datagram_caller() { return nullptr; }
  virtual GroupMember* group_member() { return nullptr; }

  // The bell rang: requests were posted, or receives that somebody waits for.
  virtual void posted(engine::Token& token) = 0;
  // The program changed attributes or the state; it is neither RESET nor ERR.
  virtual void changed(engine::Token& token, QpState from) = 0;
  virtual void on_deadline(engine::Token&) {}
  // A window of the program's has been closed, from inside a call into the connection: the peer is
  // not to read what comes into its memory from now on.
  virtual void window_closed() {}

  virtual bool connected() const = 0;
  // In error already, and still has something to say.
  virtual bool draining() const { return false; }
  // Every request that was begun is complete.
  virtual bool idle() const = 0;

  // Orderly end: what is posted by now still goes out. Connected ones only.
  virtual void close(engine::Token& token) = 0;
  // What there is of a connection goes away. `abort`: the program gave it up; else it just leaves.
  virtual void drop(engine::Token& token, bool abort) = 0;
  // The queue pair is in error, or reset: requests of the program's are not looked at any more, nor
  // its receives.
  virtual void stopped(engine::Token& token) = 0;
  // The queue pair is destroyed; it is stopped already. Last call.
  virtual void destroyed(engine::Token&) {}
  // In place of what the program asked for, what its peer and it agreed on; nothing changes where
  // there is no connection.
  virtual void tell_agreed(QpAttributes&) const {}
  // wr_id of the receive that a half-arrived message holds.
  virtual std::optional<uint64_t> abandon_receive() = 0;
};

}  // namespace weft::verbs
