#include "cm/bring_up_block.h"

namespace weft::cm {

using engine::Token;
using stats::BringUpRefusal;
using wire::Wfrc;

std::vector<std::byte> encode(const Wfrc& block) {
  std::vector<std::byte> bytes(Wfrc::kSize);
  block.encode(bytes.data());
  return bytes;
}

void refuse(Token& token, StartRequest& start, const Wfrc& request, Wfrc::Code code,
            BringUpRefusal why) {
  Wfrc reply = request;
  reply.version = Wfrc::kVersion;
  reply.code = code;
  std::swap(reply.source_qpn, reply.destination_qpn);
  std::swap(reply.source_gid, reply.destination_gid);
  const auto bytes = encode(reply);  // may find no memory, which is a reason of its own
  stats::count(token.runtime().counters().bring_up_refused, why);
  start.reject(token, bytes);
}

}  // namespace weft::cm
