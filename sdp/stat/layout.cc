#include "sdp/stat/layout.h"

namespace weft::sdp {

const char* text(Fallback reason) {
  switch (reason) {
    case Fallback::none:
      return "";
    case Fallback::rules:
      return "the rules say so";
    case Fallback::no_adapter:
      return "this host has no adapter";
    case Fallback::no_port:
      return "no port of SDP stands beside this one";
    case Fallback::refused:
      return "nobody hears SDP there";
    case Fallback::silent:
      return "SDP was not answered in time";
    case Fallback::unreachable:
      return "the adapter knows no way there";
    case Fallback::stranger:
      return "what answered there does not speak SDP";
    case Fallback::remembered:
      return "SDP was not there a moment ago";
    case Fallback::local:
      return "this process had no memory or descriptors for SDP";
    case Fallback::peer:
      return "the client came by TCP";
    case Fallback::copied:
      return "the socket had copies before";
  }
  return "";
}

}  // namespace weft::sdp
