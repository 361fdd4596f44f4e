#!/usr/bin/env python3
"""Feeds layering.py small trees, one violation each, and one clean tree."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
UNFINISHED_WORD = "TO" + "DO"

CLEAN = {
    "src/base/CMakeLists.txt": "weft_layer(base LIBRARIES Threads::Threads)",
    "src/base/gid.h": "#pragma once\n#include <cstdint>\n",
    "src/base/gid.cc": '#include "base/gid.h"\n#include <arpa/inet.h>\n',
    "src/wire/CMakeLists.txt": "weft_layer(wire DEPENDS base)",
    "src/wire/fpdu.h": '#pragma once\n#include "base/gid.h"\n#include <sys/uio.h>\n',
    "src/port/CMakeLists.txt": "# sockets\nweft_layer(port DEPENDS base wire)",
    "src/port/stream.cc": '#include "wire/fpdu.h"\n#include "base/gid.h"\n'
                          "#include <sys/socket.h>\n#include <netinet/tcp.h>\n",
    "src/device/CMakeLists.txt": "weft_layer(device DEPENDS base)",
    "src/device/netdev.cc": '#include "base/gid.h"\n#include <ifaddrs.h>\n',
    "src/engine/CMakeLists.txt": "weft_layer(engine\n  DEPENDS base port)",
    "src/engine/helper.cc": "#include <thread>\n#include <sys/epoll.h>\n"
                            '#include "base/gid.h"\n// extern "C" lives in abi/\n',
    "tools/kit/CMakeLists.txt": "weft_tool_layer(kit LAYERS base\n  LIBRARIES x)",
    "tools/kit/failure.h": '#pragma once\n#include "base/gid.h"\n',
    "tools/bench/CMakeLists.txt": "weft_tool_layer(bench TARGET b EXCEPT main.cc DEPENDS kit LAYERS base)",
    "tools/bench/part/work.cc": '#include "kit/failure.h"\n#include "base/gid.h"\n#include <thread>\n',
    "tools/format/CMakeLists.txt": "add_library(format STATIC format.cc)",
    "abi/ibverbs/list.cc": '#include <infiniband/verbs.h>\nextern "C" int f() { return 0; }\n',
}


class LayeringTest(unittest.TestCase):
    def run_on(self, changes: dict) -> subprocess.CompletedProcess:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {**CLEAN, **changes}.items():
                if text is None:
                    continue
                path = pathlib.Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return subprocess.run([sys.executable, str(HERE / "layering.py"), folder],
                                  capture_output=True, text=True, check=False)

    def expect_errors(self, changes: dict, *sentences: str) -> None:
        result = self.run_on(changes)
        errors = [line for line in result.stdout.splitlines() if line.startswith("error:")]
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertEqual(len(errors), len(sentences), result.stdout)
        for error, sentence in zip(errors, sentences):
            self.assertIn(sentence, error)

    def test_clean_tree_passes(self):
        result = self.run_on({})
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("0 errors", result.stdout)

    def test_upward_include(self):
        self.expect_errors({"src/wire/fpdu.h": '\n#include "port/stream.h"\n'},
                           'src/wire/fpdu.h:2: includes "port/stream.h", but layer wire does not '
                           "declare DEPENDS port")

    def test_depends_is_not_transitive(self):
        self.expect_errors({"src/engine/helper.cc": '#include "wire/fpdu.h"\n'},
                           "layer engine does not declare DEPENDS wire")

    def test_include_without_layer(self):
        self.expect_errors({"src/base/gid.cc": '#include "gid.h"\n'}, 'write it as "base/gid.h"')

    def test_include_of_missing_file(self):
        self.expect_errors({"src/wire/fpdu.h": '#include "base/gone.h"\n'},
                           "does not exist under src/")

    def test_tool_includes_another(self):
        self.expect_errors({"tools/kit/failure.h": '#include "bench/work.h"\n'},
                           'tools/kit/failure.h:1: includes "bench/work.h", but kit does not declare DEPENDS bench')

    def test_tool_includes_layer(self):
        self.expect_errors({"tools/bench/part/work.cc": '#include "kit/failure.h"\n#include "wire/fpdu.h"\n'},
                           'tools/bench/part/work.cc:2: includes "wire/fpdu.h", but bench does not declare LAYERS wire')

    def test_tool_without_declaration(self):
        self.expect_errors({"tools/kit/CMakeLists.txt": ""}, "declares 0 layers", "DEPENDS names 'kit', which is no layer")

    def test_tools_in_a_circle(self):
        self.expect_errors({"tools/kit/CMakeLists.txt": "weft_tool_layer(kit DEPENDS bench LAYERS base)"}, "cycle: bench -> kit -> bench")

    def test_tool_names_unknown_layer(self):
        self.expect_errors({"tools/kit/CMakeLists.txt": "weft_tool_layer(kit LAYERS base verb)"}, "LAYERS names 'verb', which is no layer of src/ or sdp_... of sdp/")

    def test_cycle(self):
        self.expect_errors({"src/base/CMakeLists.txt": "weft_layer(base DEPENDS wire)"},
                           "cycle: base -> wire -> base")

    def test_unknown_layer(self):
        self.expect_errors({"src/wire/CMakeLists.txt": "weft_layer(wire DEPENDS base bases)"},
                           "DEPENDS names 'bases', which is no layer")

    def test_depends_on_itself(self):
        self.expect_errors({"src/wire/CMakeLists.txt": "weft_layer(wire DEPENDS base wire)"},
                           "layer 'wire' depends on itself")

    def test_layer_with_another_name(self):
        self.expect_errors({"src/device/CMakeLists.txt": "weft_layer(devices DEPENDS base)"},
                           "layer 'devices' does not bear its folder's name",
                           "src/device: has no weft_layer(...)")

    def test_folder_without_declaration(self):
        self.expect_errors({"src/cm/event.h": "#pragma once\n"},
                           "src/cm: has no weft_layer(...)")

    def test_file_beside_the_layers(self):
        self.expect_errors({"src/stray.h": "#pragma once\n"}, "src/stray.h: lies in no layer")

    def test_abi_from_src(self):
        self.expect_errors({"src/port/stream.cc": '#include "abi/ibverbs/list.h"\n'},
                           "nothing under src/ may know abi/")

    def test_verbs_headers_from_src(self):
        self.expect_errors({"src/port/stream.cc": "#include <infiniband/verbs.h>\n"
                                                  "#include <rdma/rdma_cma.h>\n"},
                           "includes <infiniband/verbs.h>", "includes <rdma/rdma_cma.h>")

    def test_socket_outside_port(self):
        self.expect_errors({"src/engine/helper.cc": "# include <netinet/in.h>\n"},
                           "only src/port knows sockets")

    def test_exceptions_are_narrow(self):
        self.expect_errors({"src/base/gid.h": "#include <arpa/inet.h>\n",
                            "src/device/netdev.cc": "#include <netinet/tcp.h>\n"},
                           "src/base/gid.h:1: includes <arpa/inet.h>",
                           "src/device/netdev.cc:1: includes <netinet/tcp.h>")

    def test_thread_outside_engine(self):
        self.expect_errors({"src/port/stream.cc": "#include <thread>\n#include <sys/epoll.h>\n"},
                           "includes <thread>", "includes <sys/epoll.h>")

    def test_drivers_see_interfaces_alone(self):
        drive = {"src/engine/engine.h": "", "src/engine/runtime.h": "", "src/port/udp_socket.h": "",
                 "src/drive/CMakeLists.txt": "weft_layer(drive DEPENDS engine port)"}
        self.expect_errors({**drive, "src/drive/uc_link.cc": '#include "engine/engine.h"\n#include "engine/runtime.h"\n'
                                                             '#include "port/udp_socket.h"\n'},
                           'includes "engine/engine.h"; a driver knows engine::Runtime',
                           'includes "port/udp_socket.h"; a driver knows')

    def test_core_calls_no_operating_system(self):
        self.expect_errors({"src/wire/fpdu.h": "#include <unistd.h>\n"
                                               "auto t = std::chrono::steady_clock::now();\n"},
                           "src/wire/fpdu.h:1: includes <unistd.h>",
                           "src/wire/fpdu.h:2: calls steady_clock::now")

    def test_extern_c_outside_abi(self):
        self.expect_errors({"src/port/stream.cc": '\n\nextern "C" void f() {}\n'},
                           "src/port/stream.cc:3: has extern")

    def test_comments_are_not_code(self):
        result = self.run_on({"src/port/stream.cc": '/* #include <thread>\n extern "C" {} */\n'
                                                    'const char* s = "/*"; // #include <thread>\n'})
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_string_does_not_open_a_comment(self):
        self.expect_errors({"src/port/stream.cc": 'const char* s = "/*";\n#include <thread>\n'},
                           "src/port/stream.cc:2: includes <thread>")

    def test_long_files(self):
        result = self.run_on({"src/port/stream.cc": "int x;\n" * 401})
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("note: src/port/stream.cc: has 401 lines", result.stdout)
        self.expect_errors({"src/port/stream.cc": "int x;\n" * 701}, "has 701 lines")

    def test_long_classes(self):
        header = "#pragma once\n\nclass Stream {\n public:\n  int read();\n  int write();\n};\n"
        files = {"src/port/stream.h": header,
                 "src/port/stream.cc": '#include "port/stream.h"\nint Stream::read() {}\n' + "int x;\n" * 196,
                 "src/port/output.cc": '#include "base/gid.h"\n#include "port/stream.h"\nint Stream::write() {}\n' + "int x;\n" * 192,
                 "src/port/user.cc": '#include "port/stream.h"\nint f(Stream& s) { return s.read(); }\n' + "int x;\n" * 300}
        self.expect_errors({**files, "src/port/stream.h": header + "int f();\n"}, "src/port/stream.h: has 401 lines with its sources")
        for passes in (header, header + "// One subject.\n// Above 400 lines with its sources: one machine.\n"):
            result = self.run_on({**files, "src/port/stream.h": passes})
            self.assertEqual(result.returncode, 0, result.stdout)

    def test_many_members(self):
        def header(members: int) -> str:
            return ("class Stream {\n  int f() {\n    return a0_;\n  }\n  void g(int x_);\n"
                    + "".join(f"  int a{i}_ = {{}};\n" for i in range(members - 2)) + "  Type b_;\n  int c_[4]{1, 2};  // bytes\n};\n")
        self.expect_errors({"src/port/stream.h": header(26)}, "gives Stream 26 members")
        for passes in (header(25), "// More than 25 members: one machine.\n" + header(26)):
            result = self.run_on({"src/port/stream.h": passes})
            self.assertEqual(result.returncode, 0, result.stdout)

    def test_unfinished_words(self):
        self.expect_errors({"scripts/setup": f"# {UNFINISHED_WORD}: more\n"},
                           f"scripts/setup:1: says {UNFINISHED_WORD}")

    def test_unused_dependency_is_a_note(self):
        result = self.run_on({"src/port/stream.cc": '#include "base/gid.h"\n'})
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("DEPENDS wire is declared and not used", result.stdout)

    def test_wrong_folder(self):
        result = subprocess.run([sys.executable, str(HERE / "layering.py"), str(HERE)],
                                capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 2)


if __name__ == "__main__":
    unittest.main()
