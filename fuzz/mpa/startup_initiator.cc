// An Initiator that waits for the Reply, in each state that its own offer and the beginning of the
// Reply can bring it to (spec/mpa 2.3.3, 2.4). First byte: Start. Second: the offer. Third: how
// many bytes of sizes follow. The rest is what the peer says next.

#include "fuzz/mpa/pieces.h"
#include "mpa/startup.h"

namespace {

using namespace weft;
using fuzz::Input;
using mpa::Initiator;
using mpa::Offer;
using mpa::Rtr;

// What of the Reply has come: the rest of it is the peer's to choose.
enum class Start : uint8_t { nothing, in_key, key, flags, revision_2, enhanced, private_data };
constexpr Start kLastStart = Start::private_data;

// A Reply of revision 2 with an enhanced block and eight bytes of private data.
std::vector<std::byte> beginning(Start start, uint8_t flags) {
  constexpr uint8_t kSize = wire::MpaEnhanced::kSize + 8;
  std::vector<std::byte> reply(wire::MpaStart::kSize + wire::MpaEnhanced::kSize);
  wire::MpaStart{.kind = wire::MpaStart::Kind::reply,
                 .crc = true,
                 .enhanced = true,
                 .extension_accepted = true,
                 .private_data_length = kSize}
      .encode(reply.data());
  wire::MpaEnhanced{.peer_to_peer = true, .rtr_write = true, .ird = 16, .ord = 16}.encode(
      reply.data() + wire::MpaStart::kSize);
  constexpr size_t kHave[] = {0, 9, 16, 17, 18, 20, 24};
  reply.resize(kHave[static_cast<size_t>(start)]);
  if (start >= Start::flags) reply[16] = static_cast<std::byte>(flags);
  return reply;
}

Offer offer_of(uint8_t b) {
  return {.revision = static_cast<uint8_t>((b & 1) != 0 ? 1 : 2),
          .crc = (b & 2) == 0,
          .extension = (b & 4) == 0,
          .peer_to_peer = (b & 8) == 0,
          .ird = static_cast<uint16_t>(b >> 4),
          .ord = static_cast<uint16_t>(b >> 4)};
}

void check(const Offer& offer, const Initiator::Outcome& o) {
  FUZZ_CHECK(o.accepted.has_value() + o.rejected.has_value() + o.refused.has_value() +
                 o.retry_revision_1 ==
             1);
  if (o.retry_revision_1) FUZZ_CHECK(offer.revision == 2);  // once, and never twice
  if (o.refused) {
    const wire::TermError e = o.refused->error;
    FUZZ_CHECK(e == wire::term::kMpaBadFrame || e == wire::term::kMpaInsufficientIrd ||
               e == wire::term::kMpaNoMatchingRtr);
  }
  if (!o.accepted) return;
  const mpa::Parameters& p = o.accepted->parameters;
  FUZZ_CHECK(o.accepted->private_data.size() <= wire::MpaStart::kMaxPrivateData);
  FUZZ_CHECK(p.revision == 1 || p.revision == 2);
  FUZZ_CHECK(p.revision <= offer.revision);
  FUZZ_CHECK(p.crc || !offer.crc);  // who wants CRC gets it
  // Nothing is agreed on that was not offered.
  FUZZ_CHECK(!p.extension || (offer.extension && offer.revision == 2));
  FUZZ_CHECK(!p.peer_to_peer || (offer.peer_to_peer && offer.revision == 2));
  FUZZ_CHECK(p.peer_to_peer == (p.rtr != Rtr::none));
  FUZZ_CHECK(p.ord <= offer.ord);
  FUZZ_CHECK(p.ird >= offer.ird && p.ird <= std::max(offer.ird, mpa::kMostIrdOrd));
}

struct Run {
  std::optional<Initiator::Outcome> outcome;
  std::vector<std::byte> rest;
};

Run run(const Offer& offer, Bytes stream, Bytes sizes) {
  Initiator initiator{offer};
  Run r;
  bool any = false;
  r.rest = fuzz::in_pieces(stream, sizes, [&](Bytes& piece) {
    any = true;
    r.outcome = initiator.received(piece);
    return !r.outcome;
  });
  FUZZ_CHECK(initiator.reply_started() == any);
  return r;
}

bool equal(const mpa::Parameters& a, const mpa::Parameters& b) {
  return a.revision == b.revision && a.crc == b.crc && a.send_markers == b.send_markers &&
         a.extension == b.extension && a.peer_to_peer == b.peer_to_peer && a.rtr == b.rtr &&
         a.ird == b.ird && a.ord == b.ord;
}

// RFC 5044 section 7.1: how the frame was cut means nothing.
void check_same(const Run& a, const Run& b) {
  FUZZ_CHECK(a.outcome.has_value() == b.outcome.has_value());
  if (!a.outcome) return;
  FUZZ_CHECK(a.outcome->accepted.has_value() == b.outcome->accepted.has_value());
  FUZZ_CHECK(a.outcome->rejected.has_value() == b.outcome->rejected.has_value());
  FUZZ_CHECK(a.outcome->retry_revision_1 == b.outcome->retry_revision_1);
  if (a.outcome->refused) FUZZ_CHECK(a.outcome->refused->error == b.outcome->refused->error);
  // What follows the Reply is the stream's (spec/mpa 2.5.4); after an error there is none.
  if (!a.outcome->refused) FUZZ_CHECK(fuzz::same(a.rest, b.rest));
  if (a.outcome->accepted) {
    FUZZ_CHECK(equal(a.outcome->accepted->parameters, b.outcome->accepted->parameters));
    FUZZ_CHECK(fuzz::same(a.outcome->accepted->private_data, b.outcome->accepted->private_data));
  }
  if (a.outcome->rejected) {
    FUZZ_CHECK(fuzz::same(a.outcome->rejected->private_data, b.outcome->rejected->private_data));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input in{fuzz::as_bytes(data, size)};
  const auto start = in.choice(kLastStart);
  const Offer offer = offer_of(in.u8());
  const Bytes sizes = in.take(in.u8() % 32);
  std::vector<std::byte> stream = beginning(start, start >= Start::flags ? in.u8() : 0);
  const Bytes said = in.take(in.size());
  stream.insert(stream.end(), said.begin(), said.end());

  const Run pieces = run(offer, stream, sizes);
  check_same(pieces, run(offer, stream, {}));
  if (pieces.outcome) check(offer, *pieces.outcome);
  return 0;
}
