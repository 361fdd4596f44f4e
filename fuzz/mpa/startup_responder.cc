// A Responder that waits for the Request, in each state that the beginning of a Request can bring
// it to, and its answers (spec/mpa 2.3.3, 2.4). First byte: Start. Second and third: what this side
// can do. Fourth: how many bytes of sizes follow. The rest is what the peer says next.

#include "fuzz/mpa/pieces.h"
#include "mpa/startup.h"
#include "wire/wfrc.h"

namespace {

using namespace weft;
using fuzz::Input;
using mpa::Offer;
using mpa::Responder;
using mpa::Rtr;

// What of the Request has come: the rest of it is the peer's to choose. `weft`: a whole Request as
// weft's own Initiator sends it, so that both sides' outcomes can be compared.
enum class Start : uint8_t { nothing, in_key, key, flags, revision, enhanced, weft, weft_wfrc };
constexpr Start kLastStart = Start::weft_wfrc;

std::vector<std::byte> beginning(Start start, Input& in) {
  std::vector<std::byte> request(wire::MpaStart::kSize + wire::MpaEnhanced::kSize);
  wire::MpaStart{.kind = wire::MpaStart::Kind::request,
                 .crc = true,
                 .enhanced = true,
                 .private_data_length = 12}
      .encode(request.data());
  wire::MpaEnhanced{.peer_to_peer = true, .rtr_write = true, .rtr_read = true, .ird = 16, .ord = 16}
      .encode(request.data() + wire::MpaStart::kSize);
  constexpr size_t kHave[] = {0, 9, 16, 17, 18, 24};
  request.resize(kHave[static_cast<size_t>(start)]);
  if (start >= Start::flags) request[16] = static_cast<std::byte>(in.u8());
  if (start >= Start::revision) request[17] = static_cast<std::byte>(in.u8() % 2 + 1);
  return request;
}

Offer offer_of(Input& in) {
  const uint8_t b = in.u8();
  const uint8_t reads = in.u8();
  return {.revision = static_cast<uint8_t>((b & 1) != 0 ? 1 : 2),
          .crc = (b & 2) == 0,
          .extension = (b & 4) == 0,
          .peer_to_peer = (b & 8) == 0,
          .ird = static_cast<uint16_t>(reads & 15),
          .ord = static_cast<uint16_t>(reads >> 4)};
}

struct Run {
  Responder responder;
  std::optional<Responder::Request> request;
  std::optional<Responder::Error> error;
  std::vector<std::byte> rest;
};

Run run(Bytes stream, Bytes sizes) {
  Run r;
  r.rest = fuzz::in_pieces(stream, sizes, [&](Bytes& piece) {
    auto result = r.responder.received(piece);
    if (!result.ok()) {
      r.error = result.error();
    } else if (*result) {
      r.request = std::move(**result);
    }
    return !r.error && !r.request;
  });
  return r;
}

// RFC 5044 section 7.1: how the frame was cut means nothing.
void check_same(const Run& a, const Run& b) {
  FUZZ_CHECK(a.error == b.error && a.request.has_value() == b.request.has_value());
  if (!a.request) return;
  FUZZ_CHECK(fuzz::same(a.rest, b.rest));
  FUZZ_CHECK(fuzz::same(a.request->private_data, b.request->private_data));
  FUZZ_CHECK(a.request->ird == b.request->ird && a.request->ord == b.request->ord);
}

// spec/mpa 2.3.4: the same revision, the same S and its block, R only when asked for.
std::optional<wire::MpaEnhanced> check_reply(const Run& run, Bytes stream, Bytes reply,
                                             bool rejected, size_t private_data) {
  FUZZ_CHECK(reply.size() >= wire::MpaStart::kSize);
  const auto f = wire::MpaStart::parse(wire::MpaStart::Kind::reply, reply.data());
  const auto asked = wire::MpaStart::parse(wire::MpaStart::Kind::request, stream.data());
  FUZZ_CHECK(f.ok() && asked.ok());
  FUZZ_CHECK(f->revision == asked->revision && f->enhanced == asked->enhanced);
  FUZZ_CHECK(f->rejected == rejected && !f->markers && !f->extension_requested);
  FUZZ_CHECK(f->crc || !asked->crc);
  FUZZ_CHECK(!f->extension_accepted || run.request->extension);
  const size_t block = f->enhanced ? wire::MpaEnhanced::kSize : 0;
  FUZZ_CHECK(f->private_data_length == block + private_data);
  FUZZ_CHECK(reply.size() == wire::MpaStart::kSize + f->private_data_length);
  if (!f->enhanced) return {};
  return wire::MpaEnhanced::parse(reply.data() + wire::MpaStart::kSize);
}

void check_accepted(const Run& run, const Offer& limits, const Responder::Reply& reply,
                    const std::optional<wire::MpaEnhanced>& block) {
  const mpa::Parameters& p = reply.parameters;
  FUZZ_CHECK(p.ird <= limits.ird && p.ord <= limits.ord);
  FUZZ_CHECK(p.peer_to_peer == run.request->peer_to_peer);
  FUZZ_CHECK(p.peer_to_peer == (p.rtr != Rtr::none));
  if (!block) return;
  // MUST NOT answer with an ORD greater than the Request's IRD; the true numbers are told.
  if (run.request->ird) FUZZ_CHECK(block->ord <= *run.request->ird);
  // What the Request leaves to the ULP the Reply leaves to it, too (RFC 6581 section 9.1).
  constexpr uint16_t kLeft = wire::MpaEnhanced::kNotNegotiated;
  FUZZ_CHECK(block->ird == (run.request->ord ? p.ird : kLeft));
  FUZZ_CHECK(block->ord == (run.request->ird ? p.ord : kLeft));
  // Exactly one kind of RTR, and only where the Request asks for one.
  FUZZ_CHECK(block->peer_to_peer == p.peer_to_peer);
  FUZZ_CHECK(block->rtr_fpdu + block->rtr_write + block->rtr_read == (p.peer_to_peer ? 1 : 0));
}

// Both sides are weft's: they must have understood the same.
void check_agreement(const Offer& asked, const Responder::Reply& reply) {
  mpa::Initiator initiator{asked};
  Bytes bytes{reply.bytes};
  const auto outcome = initiator.received(bytes);
  FUZZ_CHECK(outcome && outcome->accepted && bytes.empty());
  const mpa::Parameters& i = outcome->accepted->parameters;
  const mpa::Parameters& r = reply.parameters;
  FUZZ_CHECK(i.revision == r.revision && i.crc == r.crc && i.extension == r.extension);
  FUZZ_CHECK(i.peer_to_peer == r.peer_to_peer && i.rtr == r.rtr);
  if (i.revision == 2) FUZZ_CHECK(i.ord <= r.ird && r.ord <= i.ird);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input in{fuzz::as_bytes(data, size)};
  const auto start = in.choice(kLastStart);
  const Offer limits = offer_of(in);
  const Bytes sizes = in.take(in.u8() % 32);
  Offer asked;
  std::vector<std::byte> stream;
  std::vector<std::byte> private_data;
  if (start >= Start::weft) {
    asked = offer_of(in);
    private_data.resize(start == Start::weft_wfrc ? wire::Wfrc::kSize : in.u8() % 200);
    if (start == Start::weft_wfrc) {
      wire::Wfrc{.source_qpn = Qpn{0x4711}, .nonce = in.u16()}.encode(private_data.data());
    }
    stream = mpa::Initiator{asked}.request(private_data);
  } else {
    stream = beginning(start, in);
  }
  const Bytes said = in.take(in.size());
  stream.insert(stream.end(), said.begin(), said.end());

  const Run pieces = run(stream, sizes);
  check_same(pieces, run(stream, {}));
  if (!pieces.request) {
    FUZZ_CHECK(start < Start::weft);
    return 0;
  }
  const Bytes answer{private_data};
  const auto reply = pieces.responder.accept(limits, answer);
  check_accepted(pieces, limits, reply,
                 check_reply(pieces, stream, reply.bytes, false, answer.size()));
  const auto block =
      check_reply(pieces, stream, pieces.responder.reject(answer), true, answer.size());
  if (block) FUZZ_CHECK(block->ird == 0 && block->ord == 0 && !block->peer_to_peer);
  if (start < Start::weft) return 0;
  FUZZ_CHECK(fuzz::same(pieces.request->private_data, private_data));
  FUZZ_CHECK(fuzz::same(pieces.rest, said));
  FUZZ_CHECK(wire::Wfrc::parse(pieces.request->private_data).has_value() ==
             (start == Start::weft_wfrc));
  check_agreement(asked, reply);
  return 0;
}
