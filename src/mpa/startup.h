// MPA start-up without I/O: RFC 5044 section 7.1, RFC 6581 (spec/mpa 2).
//
//   Initiator:  IDLE --request()--> bytes out --received()--> more | accepted | rejected | error
//   Responder:  received() --> more | request there | error;  accept() or reject() --> bytes out
//
// Both take the peer's bytes in any pieces. Neither reads past its frame: what follows the Reply is
// the stream's.
//
// Above 400 lines with its source: both roles read and write the same frames.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "mpa/parameters.h"
#include "wire/host_offer.h"
#include "wire/mpa_start.h"
#include "wire/rd_offer.h"
#include "wire/terminate.h"

namespace weft::mpa {

// Collects one start-up frame and its private data from the stream.
class FrameReader {
 public:
  explicit FrameReader(wire::MpaStart::Kind kind) : kind_(kind) {}
  struct Frame {
    wire::MpaStart start;
    std::optional<wire::MpaEnhanced> enhanced;
    std::optional<wire::HostOffer> host;
    std::optional<wire::RdOffer> rd;
    std::vector<std::byte> private_data;  // without the blocks
  };
  enum class Error : uint8_t {
    bad_key,
    bad_revision,
    private_data_too_long,
    enhanced_block_missing
  };
  // Takes what belongs to the frame off the front of `bytes`. Nothing while the frame is
  // incomplete.
  Result<std::optional<Frame>, Error> received(Bytes& bytes);
  bool started() const { return !have_.empty(); }
  // The fixed part of the frame, as soon as it is there and right.
  std::optional<wire::MpaStart> start() const;

 private:
  wire::MpaStart::Kind kind_;
  std::vector<std::byte> have_;
};
const char* to_string(FrameReader::Error e);

class Initiator {
 public:
  explicit Initiator(const Offer& offer) : offer_(offer) {}

  // The Request to send, once. Private data of at most 508 bytes. `same_host`: asks for memory that
  // a Responder on this host would share (spec/same-host 2.1). `rd`: asks for another way, that by
  // datagrams (spec/wdp-rd 7.1).
  std::vector<std::byte> request(Bytes private_data, bool same_host = false, bool rd = false);

  struct Accepted {
    Parameters parameters;
    std::vector<std::byte> private_data;
  };
  struct Rejected {
    std::vector<std::byte> private_data;
  };
  // The Reply cannot be lived with: send the Terminate and close.
  struct Refused {
    wire::TermError error;
    std::optional<FrameReader::Error> frame = {};  // what is wrong with the frame as such
    Parameters parameters = {};  // agreed all the same; an RTR frame named there is still owed
  };
  struct Outcome {
    std::optional<Accepted> accepted;
    std::optional<Rejected> rejected;
    std::optional<Refused> refused;
    // The Responder has offered memory, and waits to be told whether it is taken (spec/same-host
    // 2.2), whatever the outcome. `host`: where it can be understood.
    bool host_offered = false;
    std::optional<wire::HostOffer> host = {};
    // The same of the way by datagrams.
    bool rd_offered = false;
    std::optional<wire::RdOffer> rd = {};
    // The peer answered with revision 1: try once more on a new connection (spec/mpa 2.3.4).
    bool retry_revision_1 = false;
  };
  // Nothing while the Reply is incomplete.
  std::optional<Outcome> received(Bytes& bytes);
  bool reply_started() const { return reader_.started(); }

 private:
  Outcome judge(FrameReader::Frame& reply) const;

  Offer offer_;
  bool asked_host_ = false;
  bool asked_rd_ = false;
  FrameReader reader_{wire::MpaStart::Kind::reply};
};

class Responder {
 public:
  struct Request {
    std::vector<std::byte> private_data;
    std::optional<uint16_t>
        ird;  // of the Initiator; nothing where it was not told (revision 1, 0x3FFF)
    std::optional<uint16_t> ord;
    bool peer_to_peer = false;
    bool extension = false;
  };
  using Error = FrameReader::Error;
  // Nothing while the Request is incomplete. On error: close without a reply (spec/mpa 2.1).
  Result<std::optional<Request>, Error> received(Bytes& bytes);

  struct Reply {
    std::vector<std::byte> bytes;
    Parameters parameters;
  };
  // After the request came. `limits`: what this side can do; markers towards the peer are always
  // granted.
  // `host`: memory that is shared; only where may_offer_host() said so. `rd`: where this end wants
  // datagrams; only where may_offer_rd() said so. One of the two at most.
  Reply accept(const Offer& limits, Bytes private_data,
               const std::optional<wire::HostOffer>& host = {},
               const std::optional<wire::RdOffer>& rd = {}) const;
  // Did the Initiator ask for memory of this host, and has the Reply room to speak of it?
  bool may_offer_host(const Offer& limits, size_t private_data) const;
  // And for the way by datagrams?
  bool may_offer_rd(const Offer& limits, size_t private_data) const;
  // Its fixed part says all that a rejection needs; nothing while that is incomplete.
  std::optional<wire::MpaStart> asked() const { return reader_.start(); }
  // After asked() was there.
  std::vector<std::byte> reject(Bytes private_data) const;

 private:
  FrameReader reader_{wire::MpaStart::Kind::request};
  wire::MpaStart start_;
  std::optional<wire::MpaEnhanced> enhanced_;
};

}  // namespace weft::mpa
