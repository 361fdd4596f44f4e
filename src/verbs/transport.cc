#include "verbs/transport.h"

#include "verbs/rc_transport.h"
#include "verbs/uc_transport.h"
#include "verbs/ud_transport.h"

namespace weft::verbs {

std::unique_ptr<Transport> make_transport(engine::Token& token, QueuePair& qp) {
  switch (qp.type()) {
    case QpType::rc:
      break;
    case QpType::uc:
      return std::make_unique<UcTransport>(qp, qp.adapter().datagrams(token, qp.number()));
    case QpType::ud:
      return std::make_unique<UdTransport>(qp, qp.adapter().datagrams(token, qp.number()));
  }
  return std::make_unique<RcTransport>(qp);
}

}  // namespace weft::verbs
