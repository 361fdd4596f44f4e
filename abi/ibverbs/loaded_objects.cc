#include "abi/ibverbs/loaded_objects.h"

#include <dlfcn.h>
#include <link.h>

#include <cstring>
#include <new>
#include <string>
#include <vector>

namespace weft::abi {
namespace {

struct Wanted {
  Concerned concerned;
  std::vector<std::string> paths;
  bool no_memory = false;
};

std::vector<std::string> paths_of(Concerned concerned) {
  Wanted wanted{.concerned = concerned, .paths = {}};
  ::dl_iterate_phdr(
      [](dl_phdr_info* object, size_t, void* to) {
        auto& w = *static_cast<Wanted*>(to);
        try {
          if (w.concerned(*object)) w.paths.emplace_back(object->dlpi_name);
          return 0;
        } catch (const std::bad_alloc&) {
          w.no_memory = true;  // no exception may pass through the loader
          return 1;
        }
      },
      &wanted);
  if (wanted.no_memory) throw std::bad_alloc{};
  return std::move(wanted.paths);
}

// Waits until whoever loads it has finished, because relocation would undo what is done here, and
// keeps it loaded.
class Pin {
 public:
  explicit Pin(const std::string& path)
      : handle_(::dlopen(path.empty() ? nullptr : path.c_str(), RTLD_NOLOAD | RTLD_LAZY)) {}
  ~Pin() {
    if (handle_ != nullptr) ::dlclose(handle_);
  }
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;

  const link_map* map() const { return static_cast<const link_map*>(handle_); }

 private:
  void* handle_;
};

struct Visit {
  const link_map& object;
  Replacement replacement;
};

void replace(const Visit& visit) {
  ::dl_iterate_phdr(
      [](dl_phdr_info* object, size_t, void* of) {
        const auto& v = *static_cast<const Visit*>(of);
        if (object->dlpi_addr != v.object.l_addr ||
            std::strcmp(object->dlpi_name, v.object.l_name) != 0) {
          return 0;
        }
        replace_imports(*object, v.replacement);
        return 1;
      },
      const_cast<Visit*>(&visit));
}

}  // namespace

void replace_in_objects(Concerned concerned, Replacement replacement) {
  for (const std::string& path : paths_of(concerned)) {
    const Pin object{path};
    // Unloaded meanwhile.
    if (object.map() != nullptr) replace({*object.map(), replacement});
  }
}

}  // namespace weft::abi
