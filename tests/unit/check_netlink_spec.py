#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compare the three descriptions of the netlink family.

uapi/linux/rmpool_netlink.h is what programs are compiled with, docs/rmpool.yaml
is what tools that read specifications believe, and kmod/netlink.c with
kmod/nlmsg.c is what happens. Prints one line for each group of comparisons and
exits with 1 when a group differs.

With --self-test each of a list of small changes is made to a copy in memory,
and the group that must notice it has to fail.
"""

import re
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
FILES = ["uapi/linux/rmpool_netlink.h", "uapi/linux/rmpool.h", "kmod/endpoint.h",
         "kmod/netlink.c", "kmod/nlmsg.c", "docs/rmpool.yaml", "docs/netlink.md"]

# The type that each function which puts an attribute gives it.
PUT_TYPES = {"nla_put_u8": "u8", "nla_put_u32": "u32", "nla_put_s32": "s32",
             "rmp_nl_put_u64": "u64", "nla_put_string": "string",
             "rmp_nl_put_text": "string", "rmp_nl_put_host": "string",
             "rmp_nl_put_endpoint": "string", "nla_put": "binary",
             "nla_put_flag": "flag", "nla_nest_start": "nest"}
# How the header words the types.
HEADER_TYPES = {"u8": "u8", "u32": "u32", "u64": "u64", "s32": "s32", "text": "string",
                "flag": "flag", "nest": "nest", "16 bytes": "binary"}
POLICY_TYPES = {"NLA_NUL_STRING": "string", "NLA_FLAG": "flag", "NLA_U8": "u8",
                "NLA_U32": "u32", "NLA_U64": "u64"}
OBJECTS = ["node", "device", "peer", "segment", "region"]


def upper(name):
    return name.upper().replace("-", "_")


def strip_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def one(pattern, text, what):
    found = re.search(pattern, text, re.S | re.M)
    if not found:
        raise LookupError(f"{what} is not found")
    return found[1]


def enum_body(text, name):
    return one(rf"^enum {name} \{{(.*?)^\}};", text, f"enum {name}")


def enum_values(text, name, prefix):
    """Names without prefix and numbers; only entries with a number count."""
    body = strip_comments(enum_body(text, name))
    entries = [e.strip() for e in body.split(",") if e.strip()]
    values = {}
    for entry in entries:
        if entry.startswith("__") or "- 1" in entry:
            continue
        found = re.fullmatch(rf"{prefix}(\w+)\s*=\s*(\d+)", entry)
        if not found:
            raise LookupError(f"enum {name}: cannot read {entry!r}")
        values[found[1]] = int(found[2])
    return values


def define(text, name):
    value = one(rf"^#define\s+{name}\s+(.*?)$", text, name)
    return strip_comments(value).strip()


def function_body(text, name):
    return one(rf"^(?:static )?\w+ \*?{name}\([^;{{]*\)\n(\{{.*?^\}})", text, f"{name}()")


def struct_inits(text, name):
    """The top-level initialisers {...} of an array, as texts."""
    body = one(rf"\b{name}\[\] = \{{\n(.*?)^\}};", text, name)
    return re.findall(r"^\t(?:\[\w+\] = )?\{\n(.*?)^\t\}", body, re.S | re.M)


def fields(init):
    return dict(re.findall(r"\.(\w+) = (.*?),?$", init, re.M))


def numbered(items, start=1):
    """Values of a list in which a number holds for what follows, too."""
    values, value = {}, start
    for item in items:
        if isinstance(item, str):
            item = {"name": item}
        value = item.get("value", value)
        values[upper(item["name"])] = value
        value += 1
    return values


class Comparison:
    """All that is known, and what differs within one group."""

    def __init__(self, files):
        self.header = files["uapi/linux/rmpool_netlink.h"]
        self.abi = files["uapi/linux/rmpool.h"]
        self.endpoint = files["kmod/endpoint.h"]
        self.code = strip_comments(files["kmod/netlink.c"])
        self.fill = strip_comments(files["kmod/nlmsg.c"])
        self.book = files["docs/netlink.md"]
        self.spec = yaml.safe_load(files["docs/rmpool.yaml"])
        self.ops = {upper(op["name"]): op for op in self.spec["operations"]["list"]}
        self.sets = {s["name"]: s for s in self.spec["attribute-sets"]}
        self.main = {upper(a["name"]): a for a in self.sets["main"]["attributes"]}
        self.differences = []

    def same(self, what, left, right):
        if left != right:
            self.differences.append(f"{what}: {left!r} is not {right!r}")

    def same_map(self, what, left, right):
        for key in left.keys() | right.keys():
            self.same(f"{what} {key}", left.get(key), right.get(key))

    def code_ops(self):
        ops = {}
        for init in struct_inits(self.code, "rmp_nl_ops"):
            values = fields(init)
            ops[values["cmd"].removeprefix("RMPOOL_CMD_")] = values
        return ops

    def filled(self, function):
        """Attributes that a function puts, with their types."""
        body = function_body(self.fill, function)
        puts = re.findall(r"\b(\w+)\(skb,\s*RMPOOL_A_(\w+)", body)
        if len(puts) != len(re.findall(r"RMPOOL_A_", body)):
            raise LookupError(f"{function}(): an attribute is put in an unknown way")
        attrs = {name: PUT_TYPES[put] for put, name in puts}
        for helper in ("rmp_nl_put_owner", "rmp_nl_put_cache", "rmp_nl_put_staging",
                       "rmp_nl_put_rights"):
            if f"{helper}(" in body:
                attrs |= self.filled(helper)
        for part in ("rmp_nl_put_rail", "rmp_nl_put_right"):
            if f"{part}(" in body and part != function:
                attrs |= {k: v for k, v in self.filled(part).items() if v == "nest"}
        return attrs

    def spec_types(self, names):
        return {upper(n): self.main.get(upper(n), {}).get("type") for n in names}

    # ------------------------------------------------------------ the groups

    def family(self):
        name = define(self.header, "RMPOOL_GENL_NAME").strip('"')
        version = int(define(self.header, "RMPOOL_GENL_VERSION"))
        group = define(self.header, "RMPOOL_GENL_EVENTS").strip('"')
        self.same("name", self.spec["name"], name)
        self.same("version", self.spec.get("version", 1), version)
        self.same("groups", self.spec["mcast-groups"]["list"],
                  [{"name": group, "flags": ["admin-perm"]}])
        family = fields(one(r"rmp_nl_family [^=]*= \{(.*?)^\};", self.code, "the family"))
        self.same("family .name", family.get("name"), "RMPOOL_GENL_NAME")
        self.same("family .version", family.get("version"), "RMPOOL_GENL_VERSION")
        # Initial namespace only, and strict validation of everything.
        for key in ("netnsok", "resv_start_op", "policy", "maxattr"):
            self.same(f"family .{key}", family.get(key), None)
        groups = [fields(g) for g in struct_inits(self.code, "rmp_nl_groups")]
        self.same("module's groups", groups, [{"name": "RMPOOL_GENL_EVENTS",
                                               "flags": "GENL_MCAST_CAP_NET_ADMIN"}])

    def commands(self):
        header = enum_values(self.header, "rmpool_cmd", "RMPOOL_CMD_")
        self.same("UNSPEC", header.pop("UNSPEC", None), 0)
        self.same_map("command", numbered(self.spec["operations"]["list"]), header)
        self.same("name of the enum", self.spec["operations"].get("enum-name"), "rmpool-cmd")

    def attributes(self):
        header = enum_values(self.header, "rmpool_attr", "RMPOOL_A_")
        self.same("UNSPEC", header.pop("UNSPEC", None), 0)
        self.same_map("attribute", numbered(self.sets["main"]["attributes"]), header)
        self.same("prefix", self.sets["main"]["name-prefix"], "rmpool-a-")
        self.same("name of the enum", self.sets["main"].get("enum-name"), "rmpool-attr")

    def types(self):
        words = "|".join(HEADER_TYPES)
        header = {name: HEADER_TYPES[word] for name, word in re.findall(
            rf"RMPOOL_A_(\w+) = \d+,\s*/\* ({words})\b", enum_body(self.header, "rmpool_attr"))}
        header["PAD"] = "pad"
        self.same_map("type of", {n: a["type"] for n, a in self.main.items()}, header)
        lengths = dict(re.findall(r"RMPOOL_A_(\w+) = \d+,\s*/\* (\d+) bytes",
                                  enum_body(self.header, "rmpool_attr")))
        self.same_map("length of", {n: str(a["checks"]["exact-len"])
                                    for n, a in self.main.items() if a["type"] == "binary"},
                      lengths)

    def enums(self):
        texts = {"reason": self.abi}
        prefixes = {"peer-state": "RMPOOL_PEER_", "rail-state": "RMPOOL_RAIL_"}
        defined = {d["name"]: d for d in self.spec["definitions"]}
        for name in ("event", "peer-state", "rail-state", "reason"):
            prefix = prefixes.get(name, f"RMPOOL_{upper(name)}_")
            enum = defined[name]
            header = enum_values(texts.get(name, self.header),
                                 "rmpool_" + name.replace("-", "_"), prefix)
            self.same_map(name, numbered(enum["entries"], enum.get("value-start", 0)), header)
            self.same(f"prefix of {name}",
                      upper(enum.get("name-prefix", f"rmpool-{name}-")), prefix)
        bits = {n: int(b, 16).bit_length() - 1 for n, b in re.findall(
            r"^#define RMPOOL_ACCESS_(\w+)\s+0x([0-9a-f]+)U", self.abi, re.M)}
        self.same_map("access", numbered(defined["access"]["entries"], 0), bits)
        # Which attribute is said to have which of them.
        said = {n: e.replace("_", "-") for n, e in re.findall(
            r"RMPOOL_A_(\w+) = \d+,\s*/\* \w+, enum rmpool_(\w+)", self.header)}
        said["REGION_ACCESS"] = "access"
        said["ALLOW_ACCESS"] = "access"
        # Reasons have gaps and may be added, which generated code cannot take.
        del said["PEER_REASON"]
        self.same_map("enum of", {n: a["enum"] for n, a in self.main.items() if "enum" in a}, said)

    def operations(self):
        code = self.code_ops()
        wanted = {n: op for n, op in self.ops.items() if "event" not in op}
        self.same("operations", sorted(code), sorted(wanted))
        comments = dict(re.findall(r"@RMPOOL_CMD_(\w+): (do|dump|event):", self.header))
        for name, op in self.ops.items():
            kind = next((k for k in ("do", "dump", "event") if k in op), None)
            self.same(f"{name} by the header", comments.get(name), kind)
            if name not in code or kind == "event":
                continue
            self.same(f"{name} do", "doit" in code[name], "do" in op)
            self.same(f"{name} dump", "dumpit" in code[name], "dump" in op)
            flags = ["admin-perm"] if code[name].get("flags") == "GENL_ADMIN_PERM" else []
            self.same(f"{name} flags", flags, op.get("flags", []))
            self.same(f"{name} dont-validate", code[name].get("validate"), None)
            # What changes something must not be open to everybody.
            changes = not name.endswith("_GET")
            self.same(f"{name} needs the capability", bool(flags), changes)

    def policies(self):
        limits = {"RMPOOL_NAME_MAX": int(define(self.abi, "RMPOOL_NAME_MAX")),
                  "RMP_ENDPOINT_MAX": int(define(self.endpoint, "RMP_ENDPOINT_MAX"))}
        for name, values in self.code_ops().items():
            op = self.ops.get(name, {})
            names = [a for k in ("do", "dump") for a in
                     op.get(k, {}).get("request", {}).get("attributes", [])]
            spec = {}
            for attr in names:
                checks = self.main[upper(attr)].get("checks", {})
                spec[upper(attr)] = (self.main[upper(attr)]["type"], checks.get("max-len"),
                                     checks.get("max"))
            code = {}
            if "policy" in values:
                table = values["policy"]
                self.same(f"{name} maxattr", values.get("maxattr"), f"ARRAY_SIZE({table}) - 1")
                body = one(rf"\b{table}\[\] = \{{\n(.*?)^\}};", self.code, table)
                for attr, text in re.findall(r"\[RMPOOL_A_(\w+)\] = (.*?),\n", body):
                    kind = POLICY_TYPES[one(r"(NLA_(?!POLICY)\w+)", text, f"{table}: {attr}")]
                    length = re.search(r"\.len = (\w+) - 1", text)
                    most = re.search(r"NLA_POLICY_MAX\(\w+, (\d+)\)", text)
                    code[attr] = (kind, limits[length[1]] - 1 if length else None,
                                  int(most[1]) if most else None)
            self.same_map(f"{name} takes", spec, code)

    def replies(self):
        for obj in OBJECTS:
            op = self.ops[f"{upper(obj)}_GET"]
            names = (op.get("do") or op.get("dump"))["reply"]["attributes"]
            self.same_map(f"{obj} message", self.spec_types(names),
                          self.filled(f"rmp_nl_fill_{obj}"))
            self.same(f"{obj} attributes named twice", len(set(names)), len(names))

    def nests(self):
        for name, nest in (("rail", "PEER_RAIL"), ("right", "SEGMENT_ALLOW")):
            filled = self.filled(f"rmp_nl_put_{name}")
            self.same(f"nest of {name}", filled.pop(nest, None), "nest")
            names = [a["name"] for a in self.sets[name]["attributes"] if a["name"] != "pad"]
            self.same_map(name, self.spec_types(names), filled)
            self.same("set of the nest", self.main[nest].get("nested-attributes"), name)
            self.same("subset", self.sets[name].get("subset-of"), "main")

    def events(self):
        events = {n: op for n, op in self.ops.items() if "event" in op}
        sent = set(re.findall(r"\.cmd = RMPOOL_CMD_(\w+_NTF)", self.code))
        self.same("events", sorted(events), sorted(sent))
        for name, op in events.items():
            self.same(f"{name} group", op.get("mcgrp"), "events")
            get = self.ops[name.replace("_NTF", "_GET")]
            names = (get.get("do") or get.get("dump"))["reply"]["attributes"]
            self.same(f"{name} attributes", op["event"]["attributes"], ["event"] + names)

    def reference(self):
        """docs/netlink.md names every command and attribute."""
        for name in self.ops:
            self.same(f"{name} in docs/netlink.md", f"RMPOOL_CMD_{name}" in self.book, True)
        for name in self.main.keys() - {"PAD"}:
            self.same(f"{name} in docs/netlink.md",
                      bool(re.search(rf"`{name}`", self.book)), True)
        for word in re.findall(r"`RMPOOL_(CMD_\w+)`", self.book):
            self.same(f"{word} in the spec", word.removeprefix("CMD_") in self.ops, True)


GROUPS = ["family", "commands", "attributes", "types", "enums", "operations", "policies",
          "replies", "nests", "events", "reference"]


def compare(files):
    """What differs, by group."""
    result = {}
    for group in GROUPS:
        try:
            comparison = Comparison(files)
            getattr(comparison, group)()
            result[group] = comparison.differences
        except (LookupError, TypeError, ValueError) as error:
            result[group] = [f"{type(error).__name__}: {error}"]
    return result


# group that must fail, file, what is replaced (once), by what
CHANGES = [
    ("family", "docs/rmpool.yaml", "version: 1", "version: 2"),
    ("family", "kmod/netlink.c", "\t.parallel_ops", "\t.netnsok = true,\n\t.parallel_ops"),
    ("family", "kmod/netlink.c", "GENL_MCAST_CAP_NET_ADMIN", "0"),
    ("family", "docs/rmpool.yaml", "name: events\n      flags: [ admin-perm ]", "name: events"),
    ("commands", "docs/rmpool.yaml", "name: peer-del", "name: peer-remove"),
    ("commands", "uapi/linux/rmpool_netlink.h",
     "RMPOOL_CMD_PEER_ADD = 5",
     "RMPOOL_CMD_PEER_ADD = 15"),
    ("attributes", "docs/rmpool.yaml",
     "name: device-numa\n        type",
     "name: device-node\n        type"),
    ("attributes", "uapi/linux/rmpool_netlink.h",
     "RMPOOL_A_OWNER_UID = 54",
     "RMPOOL_A_OWNER_UID = 64"),
    ("types", "docs/rmpool.yaml",
     "name: device-numa\n        type: s32",
     "name: device-numa\n        type: u32"),
    ("types", "uapi/linux/rmpool_netlink.h", "/* u64: Mbit/s */", "/* u32: Mbit/s */"),
    ("types", "docs/rmpool.yaml", "exact-len: 16", "exact-len: 20"),
    ("enums", "docs/rmpool.yaml", "value: 32", "value: 33"),
    ("enums", "uapi/linux/rmpool_netlink.h", "RMPOOL_RAIL_UP = 2", "RMPOOL_RAIL_UP = 3"),
    ("enums", "docs/rmpool.yaml", "enum: peer-state", "enum: rail-state"),
    ("operations", "kmod/netlink.c", "\t\t.flags = GENL_ADMIN_PERM,\n", ""),
    ("operations", "docs/rmpool.yaml", "flags: [ admin-perm ]\n      do", "do"),
    ("operations", "kmod/netlink.c", ".dumpit = rmp_nl_region_dump", ".doit = rmp_nl_region_dump"),
    ("policies", "kmod/netlink.c", "NLA_POLICY_MAX(NLA_U8, 1)", "NLA_POLICY_MAX(NLA_U8, 2)"),
    ("policies", "docs/rmpool.yaml", "max-len: 79", "max-len: 80"),
    ("policies", "kmod/netlink.c", "\t[RMPOOL_A_ALLOW_LOOPBACK] = { .type = NLA_FLAG },\n", ""),
    ("policies", "uapi/linux/rmpool.h",
     "#define RMPOOL_NAME_MAX\t\t64",
     "#define RMPOOL_NAME_MAX\t\t32"),
    ("replies", "docs/rmpool.yaml", "            - device-why\n", ""),
    ("replies", "kmod/nlmsg.c",
     "nla_put_u8(skb, RMPOOL_A_NODE_ACCEPT_ANY",
     "nla_put_u32(skb, RMPOOL_A_NODE_ACCEPT_ANY"),
    ("replies", "kmod/nlmsg.c", "RMPOOL_A_OWNER_UID", "RMPOOL_A_SEGMENT_ID"),
    ("nests", "kmod/nlmsg.c",
     "rmp_nl_put_u64(skb, RMPOOL_A_RAIL_SLICES",
     "nla_put_u32(skb, RMPOOL_A_RAIL_SLICES"),
    ("nests", "docs/rmpool.yaml", "nested-attributes: rail", "nested-attributes: main"),
    ("nests", "docs/rmpool.yaml", "nested-attributes: right", "nested-attributes: main"),
    ("nests", "kmod/nlmsg.c",
     "nla_put_u32(skb, RMPOOL_A_ALLOW_ACCESS",
     "nla_put_u8(skb, RMPOOL_A_ALLOW_ACCESS"),
    ("events", "docs/rmpool.yaml",
     "          - event\n          - segment-name",
     "          - segment-name"),
    ("events", "kmod/netlink.c", ".cmd = RMPOOL_CMD_PEER_NTF", ".cmd = RMPOOL_CMD_NODE_NTF"),
    ("reference", "docs/netlink.md", "`RAIL_QPS`", "`RAIL_QP`"),
]


def self_test(files):
    missed = sum(map(bool, compare(files).values()))    # else noticing proves nothing
    print(f"{'not ok' if missed else 'ok'} - nothing is noticed without a change")
    for group, path, old, new in CHANGES:
        if old not in files[path]:
            verdict = "not in the file"
        elif compare(files | {path: files[path].replace(old, new, 1)})[group]:
            verdict = None
        else:
            verdict = "not noticed"
        missed += bool(verdict)
        print(f"{'not ok' if verdict else 'ok'} - {group} notices {path}: {old.strip()!r} -> "
              f"{new.strip()!r}{': ' + verdict if verdict else ''}")
    return missed


def main():
    files = {name: (ROOT / name).read_text(encoding="utf-8") for name in FILES}
    if sys.argv[1:] == ["--self-test"]:
        return 1 if self_test(files) else 0
    if sys.argv[1:]:
        sys.exit(f"usage: {sys.argv[0]} [--self-test]")
    failed = 0
    for group, differences in compare(files).items():
        failed += bool(differences)
        print(f"{'not ok' if differences else 'ok'} - netlink specification: {group}")
        for difference in differences:
            print(f"#   {difference}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
