#include "base/gid.h"

#include <arpa/inet.h>

namespace weft {

std::string Gid::to_string() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (is_ipv4()) {
    inet_ntop(AF_INET, raw.data() + 12, text, sizeof text);
  } else {
    inet_ntop(AF_INET6, raw.data(), text, sizeof text);
  }
  return text;
}

}  // namespace weft
