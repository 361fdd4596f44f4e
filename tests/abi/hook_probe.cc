// A library that looks for files, for hook_test.cc. It stands for those of UCX under a name like
// theirs, and once more under another name. With WEFT_PROBE_ASKS it uses verbs itself.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#ifdef WEFT_PROBE_ASKS
#include <infiniband/verbs.h>
#endif

#define WEFT_PROBE extern "C" __attribute__((visibility("default")))

WEFT_PROBE int probe_stat(const char* path, struct stat* to) {
  return stat(path, to);
}

WEFT_PROBE int probe_access(const char* path, int mode) {
  return access(path, mode);
}

WEFT_PROBE int probe_open(const char* path, int flags, mode_t mode) {
  return open(path, flags, mode);
}

WEFT_PROBE FILE* probe_fopen(const char* path, const char* mode) {
  return fopen(path, mode);
}

WEFT_PROBE char* probe_realpath(const char* path, char* resolved) {
  return realpath(path, resolved);
}

#ifdef WEFT_PROBE_ASKS
WEFT_PROBE void probe_devices() {
  ibv_free_device_list(ibv_get_device_list(nullptr));
}
#endif
