# SPDX-License-Identifier: Apache-2.0
"""Rules that read what the compiler made of protocol/: the objects that both drivers link."""
import os
import pathlib
import platform
import re
import subprocess

from tree import Finding

# What the core may import, besides its own fb_ symbols. The last group is what compilers call
# on their own: stack protector, 64-bit division on 32-bit machines, position-independent code.
IMPORTS = re.compile(
    r"memcpy|memset|memcmp|bcmp|memmove|strlen"
    r"|blake3_\w+"
    r"|fb_assert_failed"
    r"|__stack_chk_fail\w*|__(?:u?div|u?mod)[dt]i[34]|_GLOBAL_OFFSET_TABLE_|__tls_get_addr"
    r"|__(?:memcpy|memset|memmove)_chk")


def _run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=True,
                          env={**os.environ, "LC_ALL": "C"})
    return done.stdout


def _symbols(archive):
    """(kind, name) of nm. Objects for link-time optimisation carry machine code as well; without
    the plugin nm reads that."""
    for line in _run("nm", "--plugin=/dev/null", "--no-demangle", str(archive)).splitlines():
        match = re.match(r"^(?:[0-9a-f]+)?\s+([A-Za-z?])\s+(\S+)$", line)
        if match:
            yield match.groups()


def core_imports(archive):
    """Objects of protocol/ import nothing but the listed symbols."""
    symbols = list(_symbols(archive))
    own = {name for kind, name in symbols if kind not in "Uw"}
    for name in sorted({name for kind, name in symbols if kind in "Uw"} - own):
        if not IMPORTS.fullmatch(name):
            yield Finding(str(archive), 0, f"imports {name}")


def core_exports(archive):
    """What objects of protocol/ export begins with fb_."""
    for kind, name in sorted(set(_symbols(archive))):
        if kind in "TDBRCVW" and not name.startswith("fb_"):
            yield Finding(str(archive), 0, f"exports {name}")


def core_state(archive):
    """Objects of protocol/ have no writable data: constant tables only, no globals."""
    for line in _run("objdump", "-t", str(archive)).splitlines():
        match = re.match(r"^[0-9a-f]+ .{7} (\.data|\.bss|\.tdata|\.tbss|\*COM\*)(\S*)\s+"
                         r"[0-9a-f]+ (?:\.hidden )?(\S+)$", line)
        if match and not match.group(2).startswith(".rel.ro") and match.group(3) != match.group(1):
            yield Finding(str(archive), 0, f"writable data: {match.group(3)}")


def planted_bug(archive):
    """What ships neither chooses a planted bug nor could."""
    for _, name in sorted(set(_symbols(archive))):
        if "planted" in name:
            yield Finding(str(archive), 0, f"symbol {name}")


_FLOAT = re.compile(r"\t(v?(?:add|sub|mul|div|sqrt|min|max|fmadd\d*)[sp][sd]|v?cvt\w*|f(?:ld|st|add|mul|"
                    r"div|sub|ild|ist)\w*)\s")


def float_instruction(archive):
    """No floating-point instruction in objects of protocol/ and sim/ (read on x86-64)."""
    if platform.machine() != "x86_64":
        return
    where, seen = "", set()
    for line in _run("objdump", "-d", "--no-show-raw-insn", str(archive)).splitlines():
        match = re.match(r"^[0-9a-f]+ <(\S+)>:$", line)
        if match:
            where = match.group(1)
            continue
        match = _FLOAT.search(line)
        if match and where not in seen:
            seen.add(where)
            yield Finding(str(archive), 0, f"{where}: {match.group(1)}")


def simulator_needs(program):
    """The simulator's programs need libc and nothing else: no libsodium, no libuv, no libm."""
    for line in _run("readelf", "-d", str(program)).splitlines():
        match = re.search(r"\(NEEDED\).*\[(\S+)\]", line)
        if match and not match.group(1).startswith(("libc.", "ld-linux", "libblake3.")):
            yield Finding(str(program), 0, f"needs {match.group(1)}")


RULES = {
    core_imports: ("libfaberio_core.a",),
    core_exports: ("libfaberio_core.a",),
    core_state: ("libfaberio_core.a",),
    planted_bug: ("libfaberio_core.a", "libfaberio_sim.a", "libfaberio_io.a", "faberio",
                  "faberio-sim"),
    float_instruction: ("libfaberio_core.a", "libfaberio_sim.a"),
    simulator_needs: ("faberio-sim", "faberio-sim-mutants"),
}


def check(build):
    """(rule, finding) for every archive and program that the build directory has."""
    build = pathlib.Path(build)
    if not (build / "libfaberio_core.a").exists():
        raise SystemExit(f"tidy: no libfaberio_core.a in {build}")
    for rule, names in RULES.items():
        for name in names:
            if (build / name).exists():
                for finding in rule(build / name):
                    yield rule, finding._replace(path=name)
