#include "abi/ibverbs/file_hook.h"

#include <fcntl.h>
#include <net/if.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "abi/ibverbs/loaded_objects.h"
#include "abi/ibverbs/query.h"
#include "base/result.h"
#include "config/options.h"
#include "device/device.h"
#include "port/fd.h"

// The C library's, which its headers declare only where this is compiled with _FORTIFY_SOURCE, too.
extern "C" char* weft_realpath_chk(const char* path, char* resolved,
                                   size_t size) __asm__("__realpath_chk");

namespace weft::abi {
namespace {

// ---- Which paths are weft's, and what stands there.

// Constants, for libraries open files until the process has ended.
constexpr std::string_view kDeviceFolder = "/dev/infiniband/";
constexpr std::string_view kGidAttributes = "/sys/class/infiniband/weft0/ports/1/gid_attrs/";
constexpr std::string_view kDeviceLink = "/sys/class/infiniband/weft0";
constexpr char kDeviceTarget[] = "/sys/devices/virtual/infiniband/weft0";
static_assert(device::kDeviceName == std::string_view{"weft0"} && device::kPort == 1);

// The path to use instead. A null pointer is the C library's matter.
const char* real_path(const char* path) {
  if (path == nullptr) return path;
  std::string_view p = path;
  if (!p.starts_with(kDeviceFolder)) return path;
  p.remove_prefix(kDeviceFolder.size());
  return p == kDeviceFile ? kDriver : path;
}

bool is_gid_attribute(const char* path) {
  return path != nullptr && std::string_view{path}.starts_with(kGidAttributes);
}

// Behind the folder of weft0; nothing where the path leads elsewhere.
std::optional<std::string_view> path_in_device(const char* path) {
  if (path == nullptr) return {};
  std::string_view p = path;
  if (!p.starts_with(kDeviceLink)) return {};
  p.remove_prefix(kDeviceLink.size());
  if (!p.empty() && p.front() != '/') return {};
  return p;
}

// realpath(3) of a path that leads through the folder of weft0, which is a link, as that of any
// software adapter: to its folder among the virtual devices, or what stands above. There is nothing
// below.
char* resolve_in_device(std::string_view rest, char* resolved) try {
  const std::filesystem::path device{kDeviceTarget};
  const std::filesystem::path named = (std::string{kDeviceTarget} + std::string{rest});
  const std::filesystem::path real = named.lexically_normal();
  const auto below = real.lexically_relative(device);
  if (below.empty() || *below.begin() == "..") return ::realpath(real.c_str(), resolved);
  if (below != ".") {
    errno = ENOENT;
    return nullptr;
  }
  if (resolved == nullptr) return ::strdup(kDeviceTarget);
  std::memcpy(resolved, kDeviceTarget, sizeof kDeviceTarget);
  return resolved;
} catch (const std::exception&) {
  errno = ENOMEM;
  return nullptr;
}

int fails(int error) {
  errno = error;
  return -1;
}

// What the kernel has in the file `attribute` of GID `index`, or an error.
Result<std::string, int> gid_attribute(std::string_view attribute, std::string_view index) {
  unsigned n = 0;
  const auto [end, error] = std::from_chars(index.data(), index.data() + index.size(), n);
  if (error != std::errc{} || end != index.data() + index.size()) return fail(ENOENT);
  const device::Device device = device::query_device(config::options());
  if (n >= device.gids.size()) return fail(ENOENT);
  if (attribute == "types") {
    return std::string{gid_type(device) == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2\n" : "IB/RoCE v1\n"};
  }
  if (attribute != "ndevs") return fail(ENOENT);
  // As the kernel answers for a GID of no interface.
  char name[IF_NAMESIZE];
  if (::if_indextoname(device.gids[n].ifindex, name) == nullptr) return fail(EINVAL);
  return std::string{name} + '\n';
}

// A descriptor from which the attribute of a GID can be read that `path` names.
int open_gid_attribute(const char* path, int flags) try {
  std::string_view rest{path};
  rest.remove_prefix(kGidAttributes.size());
  const size_t slash = rest.find('/');
  if (slash == std::string_view::npos) return fails(ENOENT);
  const auto text = gid_attribute(rest.substr(0, slash), rest.substr(slash + 1));
  if (!text.ok()) return fails(text.error());
  if ((flags & O_ACCMODE) != O_RDONLY) return fails(EACCES);

  port::Fd fd{::memfd_create("weft-gid", (flags & O_CLOEXEC) != 0 ? MFD_CLOEXEC : 0)};
  if (!fd.valid()) return -1;
  if (::pwrite(fd.get(), text->data(), text->size(), 0) != static_cast<ssize_t>(text->size())) {
    return fails(EIO);
  }
  return fd.release();
} catch (const std::exception&) {
  return fails(ENOMEM);
}

// ---- What the libraries call. Each has the arguments and the result of its name in the C library;
// the variants for 64 bits are the same functions on these processors.
static_assert(sizeof(off_t) == 8);

int hooked_stat(const char* path, struct stat* to) {
  return ::stat(real_path(path), to);
}
int hooked_lstat(const char* path, struct stat* to) {
  const char* real = real_path(path);
  return real == path ? ::lstat(path, to) : ::stat(real, to);
}
// What stat(2) was called in programs that are older than glibc 2.33.
int hooked_xstat(int, const char* path, struct stat* to) {
  return hooked_stat(path, to);
}
int hooked_lxstat(int, const char* path, struct stat* to) {
  return hooked_lstat(path, to);
}
int hooked_fstatat(int folder, const char* path, struct stat* to, int flags) {
  return ::fstatat(folder, real_path(path), to, flags);
}

int hooked_access(const char* path, int mode) {
  return ::access(real_path(path), mode);
}
int hooked_eaccess(const char* path, int mode) {
  return ::eaccess(real_path(path), mode);
}
int hooked_faccessat(int folder, const char* path, int mode, int flags) {
  return ::faccessat(folder, real_path(path), mode, flags);
}

// The mode is there only for files that may be made.
#define WEFT_MODE_AFTER(last)         \
  mode_t mode = 0;                    \
  if (__OPEN_NEEDS_MODE(last)) {      \
    va_list arguments;                \
    va_start(arguments, last);        \
    mode = va_arg(arguments, mode_t); \
    va_end(arguments);                \
  }                                   \
  static_assert(sizeof(mode_t) >= sizeof(int))

int hooked_open(const char* path, int flags, ...) {
  WEFT_MODE_AFTER(flags);
  if (is_gid_attribute(path)) return open_gid_attribute(path, flags);
  return ::open(real_path(path), flags, mode);
}
int hooked_openat(int folder, const char* path, int flags, ...) {
  WEFT_MODE_AFTER(flags);
  if (is_gid_attribute(path)) return open_gid_attribute(path, flags);
  return ::openat(folder, real_path(path), flags, mode);
}
#undef WEFT_MODE_AFTER
// With _FORTIFY_SOURCE.
int hooked_open_2(const char* path, int flags) {
  return hooked_open(path, flags);
}
int hooked_openat_2(int folder, const char* path, int flags) {
  return hooked_openat(folder, path, flags);
}

FILE* hooked_fopen(const char* path, const char* mode) {
  if (!is_gid_attribute(path)) return ::fopen(real_path(path), mode);
  const bool reads = mode[0] == 'r' && std::strchr(mode, '+') == nullptr;
  port::Fd fd{open_gid_attribute(
      path, (reads ? O_RDONLY : O_RDWR) | (std::strchr(mode, 'e') != nullptr ? O_CLOEXEC : 0))};
  FILE* file = fd.valid() ? ::fdopen(fd.get(), mode) : nullptr;
  if (file != nullptr) (void)fd.release();
  return file;
}

char* hooked_realpath(const char* path, char* resolved) {
  const auto inside = path_in_device(path);
  return inside ? resolve_in_device(*inside, resolved) : ::realpath(path, resolved);
}
// With _FORTIFY_SOURCE; the size is that of `resolved`, which the C library looks at.
char* hooked_realpath_chk(const char* path, char* resolved, size_t size) {
  const auto inside = path_in_device(path);
  return inside ? resolve_in_device(*inside, resolved) : ::weft_realpath_chk(path, resolved, size);
}

void* replacement_of(std::string_view function) {
  static const Substitute all[] = {
      {"stat", hooked_stat},           {"stat64", hooked_stat},
      {"lstat", hooked_lstat},         {"lstat64", hooked_lstat},
      {"__xstat", hooked_xstat},       {"__xstat64", hooked_xstat},
      {"__lxstat", hooked_lxstat},     {"__lxstat64", hooked_lxstat},
      {"fstatat", hooked_fstatat},     {"fstatat64", hooked_fstatat},
      {"access", hooked_access},       {"eaccess", hooked_eaccess},
      {"euidaccess", hooked_eaccess},  {"faccessat", hooked_faccessat},
      {"open", hooked_open},           {"open64", hooked_open},
      {"__open_2", hooked_open_2},     {"__open64_2", hooked_open_2},
      {"openat", hooked_openat},       {"openat64", hooked_openat},
      {"__openat_2", hooked_openat_2}, {"__openat64_2", hooked_openat_2},
      {"fopen", hooked_fopen},         {"fopen64", hooked_fopen},
      {"realpath", hooked_realpath},   {"__realpath_chk", hooked_realpath_chk},
  };
  return target_of(all, function);
}

// ---- Which libraries are concerned.

// They load libibverbs while they run, or leave files to a library beside the one that does.
constexpr std::string_view kConcerned[] = {"libuc", "libmca", "libnccl", "librccl", "libtorch"};
// They use verbs, and ask for none of these files.
constexpr std::string_view kOwn[] = {"librdmacm.so", "libweft-sdp.so"};

bool begins_with_any(std::string_view file, std::span<const std::string_view> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view beginning) { return file.starts_with(beginning); });
}

bool is_concerned(const dl_phdr_info& object) {
  const std::string_view file = file_name(object);
  if (begins_with_any(file, kConcerned)) return true;
  return !begins_with_any(file, kOwn) && needs_library(object, "libibverbs.so");
}

}  // namespace

void hook_files() noexcept try {
  if (config::options().no_hook) return;
  replace_in_objects(is_concerned, replacement_of);
} catch (const std::exception&) {
  // No memory: UCX finds no device then, and goes without.
}

}  // namespace weft::abi
