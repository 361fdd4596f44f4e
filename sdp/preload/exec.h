// Another program in the place of the caller's.
#pragma once

namespace weft::sdp {

// It may come to nothing, and what is there now goes on.
void about_to_execute();

}  // namespace weft::sdp
