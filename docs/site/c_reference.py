# SPDX-License-Identifier: Apache-2.0
"""The C API's reference as Markdown, from include/ccom/ccom.h.

The header is regular, clang-format keeps it so: sections begin with "/* ---- Name ---- */", a comment stands in front
of what it describes, or behind a field or an enumerator. What does not fit is an error, and so is a function without a
comment; nothing is left out in silence.
"""
import re

SECTION = re.compile(r"/\* -{4} (.+?) -{4,} \*/")
NAME_IN_TEXT = re.compile(r"(?<![\w.])((?:ccom|CCOM_)\w+(?:\.\w+)?|docs/\w+\.md)")
ENUMERATOR = re.compile(r"(\w+) = (\w+),?$")


def without_marks(comment):
    """The text of a C comment, line by line."""
    body = comment.strip()[2:-2]
    first, *others = body.split("\n")
    lines = [first.strip()] + [re.sub(r"^\s*\* ?", "", line).rstrip() for line in others]
    return "\n".join(lines).strip("\n").split("\n")


def tokens(header):
    """(kind, text) of what lies within extern "C", in order: section, text (of the section), comment, code."""
    body = header[header.index('extern "C" {'):header.rindex("#ifdef __cplusplus")]
    body = body[body.index("#endif") + len("#endif"):]
    position = 0
    pattern = re.compile(r"\s*(?:(/\*.*?\*/)|(#if.*?\n#endif)|(#define(?:[^\n]*\\\n)*[^\n]*)|((?:[^;{]|\{[^{}]*\})*;))",
                         re.S)
    while body[position:].strip():
        found = pattern.match(body, position)
        if not found:
            raise ValueError(f"ccom.h: cannot be read from here on: {body[position:position + 80]!r}")
        position = found.end()
        comment, condition, macro, declaration = found.groups()
        if comment:
            section = SECTION.match(comment)
            alone = body.startswith("\n\n", position)
            yield ("section", section.group(1)) if section else ("text" if alone else "comment", comment)
        elif not condition:
            yield "code", (macro or declaration).strip()


def name_of(code):
    if code.startswith("#define"):
        return code.split()[1].split("(")[0]
    function = re.match(r"CCOM_API .*?(\w+)\(", code, re.S)
    if function:
        return function.group(1)
    callback = re.match(r"typedef [\w ]+ ?\(\*(\w+)\)\(", code)
    if callback:
        return callback.group(1)
    return re.search(r"(\w+);$", code).group(1)


def members(code):
    """[(declaration, text lines)] of a struct's fields or an enumeration's values: comments stand before or behind
    them.
    """
    inner = code[code.index("{") + 1:code.rindex("}")]
    if "\n" not in inner:
        inner = inner.replace(", ", ",\n")
    found = []
    waiting = []
    for before, declaration, behind in re.findall(r"\s*(?:(/\*.*?\*/)|([^\n;,]+)[;,]?[ ]*(/\*[^\n]*\*/)?\n)",
                                                  inner + "\n", re.S):
        if before:
            waiting = without_marks(before)
        elif declaration.strip():
            found.append((declaration.strip(), without_marks(behind) if behind else waiting))
            waiting = []
    return found


def entries(header):
    """[(section, its text's lines, [(name, code, text lines)])]; a declaration without a comment has no lines."""
    found = [("Basics", [], [])]
    text = []
    for kind, what in tokens(header):
        if kind == "section":
            found.append((what, [], []))
            text = []
        elif kind == "text":
            found[-1][1].extend(without_marks(what))
        elif kind == "comment":
            text = without_marks(what)
        else:
            found[-1][2].append((name_of(what), what, text))
            text = []
    return found


class Page:
    """Turns comments into Markdown, with links between entries."""

    def __init__(self, names):
        self.names = names

    def words(self, text, inside=""):
        def link(name):
            if name.startswith("docs/"):
                return f"[{name}](../../{name})"
            base = name.split(".")[0]
            target = self.names.get(base)
            if target and target != inside:
                return f"[`{name}`](#{target})"
            if base.startswith("CCOM_") and base not in self.names:
                return f"[`{name}`](../../docs/variables.md)"
            return f"`{name}`"

        parts = re.split(r"(`[^`]*`)", text)
        for i in range(0, len(parts), 2):  # not what is code already
            words = NAME_IN_TEXT.split(parts[i])
            words[0::2] = [re.sub(r"([\\*_<>\[\]|])", r"\\\1", word) for word in words[0::2]]
            words[1::2] = [link(word) for word in words[1::2]]
            parts[i] = "".join(words)
        return "".join(parts)

    def text(self, lines, inside=""):
        """Paragraphs and lists; lines that are indented further are shown as they stand."""
        out = []
        for line in lines:
            literal = re.match(r" {2,}\S", line) and not (out and out[-1].startswith("- "))
            if literal:
                if out and not out[-1].startswith("    "):
                    out.append("")
                out.append("    " + line[2:])
            elif line.startswith("- ") or (out and out[-1].startswith("- ") and line.startswith("  ")):
                if line.startswith("- "):
                    if out and out[-1] and not out[-1].startswith("- "):
                        out.append("")
                    out.append("- " + self.words(line[2:], inside))
                else:
                    out[-1] += " " + self.words(line.strip(), inside)
            else:
                if out and out[-1].startswith("    "):
                    out.append("")
                out.append(self.words(line, inside))
        return "\n".join(out)

    def in_one_line(self, lines, inside=""):
        return "<br><br>".join(self.words(part, inside) for part in re.sub(r"\s*\n\s*", " ", "\n".join(
            line if line else "\0" for line in lines)).split(" \0 "))

    def entry(self, name, code, lines):
        target = self.names[name]
        out = [f"### {name}", ""]
        if "{" in code and not code.startswith("#define"):
            if lines:
                out += [self.text(lines, target), ""]
            is_enum = code.startswith("typedef enum")
            out += ["| value | | |", "|---|---|---|"] if is_enum else ["| field | type | |", "|---|---|---|"]
            for declaration, text in members(code):
                if is_enum:
                    value, number = declaration.split(" = ")
                    out.append(f"| `{value}` | {number} | {self.in_one_line(text, target)} |")
                else:
                    field = re.search(r"\(\*(\w+)\)|(\w+)(?:\[\w+\])?$", declaration)
                    field = field.group(1) or field.group(2)
                    out.append(f"| `{field}` | `{declaration}` | {self.in_one_line(text, target)} |")
        else:
            out += ["```c", re.sub(r"^CCOM_API |(?<=\n) {9}", "", code), "```"]
            if lines:
                out += ["", self.text(lines, target)]
        return "\n".join(out) + "\n"


def reference(header):
    """The page. ValueError names what has no comment."""
    sections = entries(header)
    names = {name: name.lower() for _, _, group in sections for name, _, _ in group}
    mute = [name for _, _, group in sections for name, code, lines in group if not code.startswith("#") and not lines]
    if mute:
        raise ValueError(f"ccom.h: without a comment: {', '.join(mute)}")
    for _, _, group in sections:  # enumerators lead to their type
        for name, code, _ in group:
            if code.startswith("typedef enum"):
                names.update({declaration.split(" = ")[0]: name.lower() for declaration, _ in members(code)})
    page = Page(names)
    head = without_marks(re.findall(r"/\*.*?\*/", header, re.S)[1])
    out = ["# C API", "", page.text([line for line in head if line]), ""]
    for section, text, group in sections:
        out += [f"## {section}", ""]
        if text:
            out += [page.text(text), ""]
        out += [page.entry(*entry) for entry in group]
    return "\n".join(out)
