// A connection whose MPA start-up is through, on its way to a queue pair.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "drive/rd_bytes.h"
#include "mpa/parameters.h"
#include "port/tcp_stream.h"
#include "shared/segment.h"
#include "wire/rd_offer.h"

namespace weft::cm {

struct Started {
  port::TcpStream tcp;
  mpa::Parameters parameters;
  std::vector<std::byte> private_data;     // the peer's, for the initiator
  std::vector<std::byte> early;            // bytes of the stream that came behind the Reply
  std::optional<shared::Segment> segment;  // memory that the two ends share; the Responder's is
                                           // used only if the Initiator says so
  std::optional<wire::RdOffers> rd;        // they would go by datagrams
  std::unique_ptr<drive::RdBytes> bytes;   // they do, and there is no TCP connection
  std::optional<port::Address> loop;       // the two ends are one, which is here
  bool owes_rtr = false;  // the peer, which is none of weft's, waits for our RTR frame
};

}  // namespace weft::cm
