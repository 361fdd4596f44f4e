#include "kit/launch.h"

#include <fmt/format.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "config/options.h"

namespace weft::kit {
namespace {

constexpr const char* kDefaultSearchPath = "/bin:/usr/bin";  // execvp(3) without PATH
constexpr const char* kLog = "WEFT_LOG";
constexpr const char* kUcxConnects = "UCX_SOCKADDR_TLS_PRIORITY";

std::optional<Refusal> check_libraries(const std::string& folder, bool sdp) {
  if (const auto objection = objection_to(folder)) {
    return Refusal{kStatusOwnFailure, objection->what + "; " + objection->remedy};
  }
  std::vector<std::string> libraries(kLibraries.begin(), kLibraries.end());
  if (sdp) libraries.emplace_back(kSdpLibrary);
  for (const std::string& library : libraries) {
    const std::string path = fmt::format("{}/{}", folder, library);
    if (access(path.c_str(), R_OK) != 0) {
      return Refusal{
          kStatusOwnFailure,
          fmt::format("{}: {}; the program would silently use the system's library. Build "
                      "or install weft again, and see 'weft doctor'",
                      path, std::strerror(errno))};
    }
  }
  return std::nullopt;
}

Result<Ok, Refusal> set_requested(const std::vector<std::string>& assignments, LaunchPlan& plan) {
  for (const std::string& assignment : assignments) {
    const size_t equals = assignment.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return fail(
          Refusal{kStatusOwnFailure, fmt::format("--env {}: write it as NAME=VALUE", assignment)});
    }
    plan.environment[assignment.substr(0, equals)] = assignment.substr(equals + 1);
  }
  return Ok{};
}

std::string current_value(const LaunchPlan& plan, const Environment& inherited,
                          const std::string& name) {
  const auto set = plan.environment.find(name);
  if (set != plan.environment.end()) return set->second;
  const auto found = inherited.find(name);
  return found != inherited.end() ? found->second : "";
}

// UCX listens by rdma_cm and by TCP on one number, and fails where one of them is refused. weft's
// rdma_cm is found by TCP, so it is one of the two: rdma_cm, unless the user has told UCX to do
// without RDMA.
std::string ucx_connects_by(std::string_view transports) {
  if (transports.empty() || transports.front() == '^') return "rdmacm";
  while (!transports.empty()) {
    const size_t end = std::min(transports.find(','), transports.size());
    const std::string_view one = transports.substr(0, end);
    for (const std::string_view rdma : {"rc", "ud", "dc", "ib", "all"}) {
      if (one.starts_with(rdma)) return "rdmacm";
    }
    transports.remove_prefix(std::min(end + 1, transports.size()));
  }
  return "tcp";
}

// An option that is not taken would change what the program's results mean: a run without the
// faults that were asked for looks like a good one.
std::optional<Refusal> check_options(const LaunchPlan& plan, const Environment& inherited) {
  Environment all = plan.environment;
  all.insert(inherited.begin(), inherited.end());
  for (const auto& [name, value] : all) {
    const std::string objection = config::objection(name, value);
    if (objection.empty()) continue;
    const char* end = objection.ends_with('?') ? "" : ".";
    return Refusal{kStatusOwnFailure, objection + end + " Correct it, or unset it"};
  }
  return std::nullopt;
}

}  // namespace

std::string own_library_folder() {
  // Without /proc: the name that it was executed by.
  const auto* const name = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  for (const char* link : {"/proc/self/exe", name != nullptr ? name : ""}) {
    std::error_code error;
    const std::filesystem::path self = std::filesystem::canonical(link, error);
    if (!error) return (self.parent_path().parent_path() / "lib" / "weft").string();
  }
  return {};
}

std::optional<FolderObjection> objection_to(const std::string& library_folder) {
  if (library_folder.empty()) {
    return FolderObjection{"cannot tell where weft is installed: /proc/self/exe is not readable",
                           "mount /proc"};
  }
  // ld.so splits LD_LIBRARY_PATH at ':' and ';', LD_PRELOAD at ':' and ' ', and expands '$'.
  if (library_folder.find_first_of(":; $") == std::string::npos) return std::nullopt;
  return FolderObjection{fmt::format("the loader cannot take libraries from '{}': its name holds "
                                     "one of ':', ';', '$' or a space",
                                     library_folder),
                         "move weft to another folder"};
}

std::string put_in_front(const std::string& first, const std::string& list) {
  std::string result = first;
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find(':', at), list.size());
    const std::string element = list.substr(at, end - at);
    if (element != first && !element.empty()) result += ":" + element;
    at = end + 1;
  }
  return result;
}

Result<LaunchPlan, Refusal> plan_launch(const LaunchRequest& request,
                                        const std::string& library_folder,
                                        const Environment& inherited) {
  LaunchPlan plan;
  if (auto refusal = check_libraries(library_folder, request.sdp)) return fail(*refusal);
  if (auto set = set_requested(request.environment, plan); !set) return fail(set.error());
  if (auto refusal = check_options(plan, inherited)) return fail(*refusal);

  const std::string path_given = current_value(plan, inherited, "PATH");
  const std::string search_path = path_given.empty() ? kDefaultSearchPath : path_given;
  const std::string& name = request.command.front();
  auto found = find_program(name, search_path);
  if (!found) return fail(found.error());
  plan.path = *found;

  plan.environment["LD_LIBRARY_PATH"] =
      put_in_front(library_folder, current_value(plan, inherited, "LD_LIBRARY_PATH"));

  const auto preload = [&](const char* library) {
    plan.environment["LD_PRELOAD"] = put_in_front(fmt::format("{}/{}", library_folder, library),
                                                  current_value(plan, inherited, "LD_PRELOAD"));
  };
  if (request.sdp) {
    preload(kSdpLibrary);
    // What a sockets program prints is its own: a port that rdma_cm does not get, for one, only
    // means that a connection is TCP's.
    if (current_value(plan, inherited, kLog).empty()) plan.environment[kLog] = "error";
  }

  if (current_value(plan, inherited, kUcxConnects).empty()) {
    plan.environment[kUcxConnects] = ucx_connects_by(current_value(plan, inherited, "UCX_TLS"));
  }

  const std::string loaded = follow_interpreters(plan.path, search_path);
  if (const auto reason = secure_execution_reason(loaded, geteuid(), getegid())) {
    plan.warnings.push_back(fmt::format(
        "{} has {}: the loader then ignores LD_LIBRARY_PATH and LD_PRELOAD, and the program "
        "gets the system's libraries. Run a copy of it, made by you with cp",
        loaded, *reason == "file capabilities" ? *reason : "the " + *reason + " bit"));
  }
  const auto facts = inspect_program(loaded);
  if (!facts) return plan;
  if (!*facts) {
    const std::string sentence = fmt::format("{} {}", loaded, describe(facts->error()));
    switch (facts->error()) {
      case ElfError::not_elf:  // the kernel may know it all the same (binfmt_misc), or a shell
        return plan;
      case ElfError::malformed:
        plan.warnings.push_back(sentence);
        return plan;
      default:
        return fail(Refusal{kStatusNotExecutable, sentence});
    }
  }
  if (!(*facts)->has_interpreter) {
    plan.warnings.push_back(fmt::format(
        "{} is linked statically: it loads no libraries, so weft cannot serve it (programs "
        "that it starts are served)",
        loaded));
  }
  if ((*facts)->rpath_counts()) {
    for (auto library = kLibraries.rbegin(); library != kLibraries.rend(); ++library) {
      preload(*library);
    }
  }
  return plan;
}

std::optional<std::string> raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return fmt::format("cannot read the limit of open files: {}", std::strerror(errno));
  }
  if (limit.rlim_cur == limit.rlim_max) return std::nullopt;
  const rlim_t soft = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) == 0) return std::nullopt;
  return fmt::format(
      "cannot raise the limit of open files from {} to {}: {}; many QPs may need more", soft,
      limit.rlim_max, std::strerror(errno));
}

}  // namespace weft::kit
