#include "cm/farewell.h"

#include "mpa/fpdu_writer.h"
#include "rdmap/limits.h"
#include "wire/ddp_header.h"
#include "wire/rdmap_messages.h"

namespace weft::cm {
namespace {

void write_rtr(const mpa::Parameters& p, mpa::TxBatch& batch) {
  mpa::FpduWriter writer;
  writer.configure(p.crc, p.send_markers);
  std::byte header[wire::UntaggedHeader::kSize + wire::ReadRequest::kSize];
  switch (p.rtr) {
    case mpa::Rtr::write:
      wire::TaggedHeader{.control = {.tagged = true, .last = true, .opcode = wire::Opcode::write},
                         .stag = Stag{1}}
          .encode(header);
      writer.write(batch, Bytes{header, wire::TaggedHeader::kSize}, {});
      break;
    case mpa::Rtr::read:
      wire::UntaggedHeader{.control = {.last = true, .opcode = wire::Opcode::read_request},
                           .qn = kReadRequestQueue,
                           .msn = Msn{1}}
          .encode(header);
      wire::ReadRequest{.source_stag = Stag{1}}.encode(header + wire::UntaggedHeader::kSize);
      writer.write(batch, header, {});
      break;
    case mpa::Rtr::fpdu:
      writer.write(batch, {}, {});
      break;
    case mpa::Rtr::none:
      break;
  }
}

}  // namespace

using engine::Token;

void Farewell::give_up(Token& token, Started started) {
  if (!started.owes_rtr) {
    started.tcp.close();
    return;
  }
  token.engine().guard(
      token,
      [&] {
        mpa::TxBatch batch;
        write_rtr(started.parameters, batch);
        // A fresh socket takes it at once, or is broken.
        (void)started.tcp.send(batch.pieces());
        auto owned = std::unique_ptr<Farewell>{new Farewell(std::move(started.tcp))};
        Farewell& f = *owned;
        const Time when = token.now() + rdmap::kRtrSettles;
        token.engine().add(token, std::move(owned), -1, false, false);
        token.engine().set_deadline(token, f, when);
        token.engine().closes_at(token, when);
      },
      [&] { started.tcp.close(); });
}

void Farewell::on_deadline(Token& token) {
  token.engine().remove(token, *this);
  tcp_.close();
}

}  // namespace weft::cm
