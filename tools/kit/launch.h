// How a program is given weft's libraries instead of the system's (spec/abi 5): by LD_LIBRARY_PATH,
// which its children inherit, and by LD_PRELOAD where a DT_RPATH would win over that. Sockets go by
// SDP with a library that LD_PRELOAD names (design/27).
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "kit/program.h"

namespace weft::kit {

// When weft itself cannot do its part, as env(1) and timeout(1) end.
inline constexpr int kStatusOwnFailure = 125;

// weft's libraries, in the order in which they can be loaded.
inline constexpr std::array<const char*, 2> kLibraries = {"libibverbs.so.1", "librdmacm.so.1"};

// The library of sockets, beside them.
inline constexpr const char* kSdpLibrary = "libweft-sdp.so";

struct LaunchRequest {
  std::vector<std::string> environment;  // NAME=VALUE, set for the program
  std::vector<std::string> command;      // the program and its arguments; never empty
  bool sdp = false;                      // its stream sockets go by SDP where they can
};

struct LaunchPlan {
  std::string path;                                // what to execute
  std::map<std::string, std::string> environment;  // to set on top of the inherited one
  std::vector<std::string> warnings;               // sentences for the user
};

// The folder of weft's libraries: ../lib/weft as seen from the folder of the running program,
// without symbolic links. Empty when neither /proc nor the kernel's word tells where that is.
std::string own_library_folder();

// Why the loader takes no libraries from such a folder, and what is to be done about it.
struct FolderObjection {
  std::string what;
  std::string remedy;
};
std::optional<FolderObjection> objection_to(const std::string& library_folder);

// "FIRST:REST" for a list of folders or libraries, with `first` once and in front. ld.so(8)
// separates both kinds of list by colons.
std::string put_in_front(const std::string& first, const std::string& list);

// Decides how to start `request` in the environment `inherited`; weft's libraries lie in
// `library_folder`. Changes nothing.
using Environment = std::map<std::string, std::string>;
Result<LaunchPlan, Refusal> plan_launch(const LaunchRequest& request,
                                        const std::string& library_folder,
                                        const Environment& inherited);

// Raises the soft limit of open files to the hard one: each connected QP is a descriptor (spec/abi
// 5). A sentence when the kernel refuses.
std::optional<std::string> raise_descriptor_limit();

}  // namespace weft::kit
