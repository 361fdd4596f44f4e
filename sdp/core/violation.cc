#include "sdp/core/violation.h"

namespace weft::sdp {

const char* text(Violation violation) {
  switch (violation) {
    case Violation::length:
      return "a message is not as long as it says";
    case Violation::identifier:
      return "a message has no place here";
    case Violation::number:
      return "a message has a wrong number";
    case Violation::mode:
      return "a message is not allowed in the mode of its half connection";
    case Violation::advert:
      return "a message speaks of a buffer that is not advertised, or advertises a useless one";
    case Violation::after_end:
      return "data came behind the end of the data";
  }
  return "";
}

}  // namespace weft::sdp
