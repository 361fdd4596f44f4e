#include "cm/first_frame.h"

#include "wire/ddp_header.h"
#include "wire/rdmap_messages.h"

namespace weft::cm {

void write_empty_write(mpa::FpduWriter& writer, mpa::TxBatch& batch) {
  std::byte header[wire::TaggedHeader::kSize];
  wire::TaggedHeader{.control = {.tagged = true, .last = true, .opcode = wire::Opcode::write},
                     .stag = Stag{1}}
      .encode(header);
  writer.write(batch, header);
}

void write_first_frame(mpa::Rtr rtr, mpa::FpduWriter& writer, mpa::TxBatch& batch) {
  std::byte header[wire::UntaggedHeader::kSize + wire::ReadRequest::kSize];
  switch (rtr) {
    case mpa::Rtr::none:
    case mpa::Rtr::write:
      write_empty_write(writer, batch);
      break;
    case mpa::Rtr::read:
      wire::UntaggedHeader{.control = {.last = true, .opcode = wire::Opcode::read_request},
                           .qn = kReadRequestQueue,
                           .msn = Msn{1}}
          .encode(header);
      wire::ReadRequest{.source_stag = Stag{1}}.encode(header + wire::UntaggedHeader::kSize);
      writer.write(batch, header);
      break;
    case mpa::Rtr::fpdu:
      writer.write(batch, {});
      break;
  }
}

}  // namespace weft::cm
