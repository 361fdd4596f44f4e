#include "cm/start_request.h"

namespace weft::cm {

using stats::StartRefusal;

StartRefusal refusal_of(mpa::Responder::Error error) {
  using Error = mpa::Responder::Error;
  switch (error) {
    case Error::bad_key:
      return StartRefusal::bad_key;
    case Error::bad_revision:
      return StartRefusal::bad_revision;
    case Error::private_data_too_long:
      return StartRefusal::private_data_too_long;
    case Error::enhanced_block_missing:
      break;
  }
  return StartRefusal::enhanced_block_missing;
}

}  // namespace weft::cm
