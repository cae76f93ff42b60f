"""Programs that only read, with every option that they may be given.

An option that is not on the list (it may write, run something, or read a list of paths) takes
the command off the list. What a program reads is returned, and judged as a read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from crow.extensions.permissions.script import Word

NUMBER = re.compile(r"[-+]\d+[a-zA-Z]?")
PRINTF_ASSIGNS = re.compile(r"%[-+ #0-9.*']*[hlLjzt]*n")
SED_PRINTS = re.compile(r"(?:(?:\d+|\$)(?:,(?:\d+|\$|\+\d+))?[pq];?\s*)+")
DATE_FORMAT = re.compile(r"\+.*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Use:
    """What a command reads: these paths, and whether all that is below them."""

    paths: tuple[Word, ...] = ()
    deep: bool = False


@dataclass(frozen=True, slots=True)
class Program:
    """One line of the table.

    ``operands`` is ``paths``, ``path`` (one), ``pattern`` (then paths), ``text`` or ``none``;
    ``counted`` are paths of a program whose long options take no values; ``any`` word is fine.
    ``guarded`` programs have options that do more than read, so that no file name may pass for
    an option. ``deep`` are the options that make it read all below (``*``: always).
    """

    short: str = ""
    valued: str = ""
    long: frozenset[str] = frozenset()
    operands: str = "paths"
    guarded: bool = False
    deep: str = ""


TABLE = """
ls|aAbBcCdDfFgGhHiklLmnNopqQrRsStTuUvxXZ1|IwT|all almost-all author classify color directory
  full-time group-directories-first human-readable inode numeric-uid-gid reverse recursive size
  sort time time-style ignore hide si dereference|paths||
cat|AbeEnstTuv||number number-nonblank show-all show-ends show-tabs squeeze-blank
  show-nonprinting|paths||
head|qvz|cn|lines bytes quiet silent verbose|paths||
tail|qvzfF|cns|lines bytes quiet silent verbose follow retry sleep-interval|paths||
wc|clmwL||lines words bytes chars max-line-length total|counted||
stat|Ltf|c|format printf file-system dereference terse|paths||
du|0abBcDhHklLmsSx|dt|all apparent-size bytes total human-readable max-depth summarize
  one-file-system si threshold separate-dirs|paths||*
df|ahHiklPT|tx|all human-readable inodes local portability print-type total type exclude-type
  si|paths||
grep|aabcEFGHhilLnoqrsTUvVwxyzZP|ABCemd|after-context before-context context basic-regexp
  binary-files byte-offset color colour count exclude exclude-dir extended-regexp
  files-with-matches files-without-match fixed-strings ignore-case include invert-match
  line-buffered line-number line-regexp max-count no-filename no-messages null only-matching
  perl-regexp quiet recursive regexp silent text with-filename word-regexp
  no-ignore-case initial-tab|pattern||r
egrep|acEhHilLnoqrsvwx|ABCem|after-context before-context context count ignore-case include
  exclude line-number recursive regexp invert-match word-regexp only-matching color|pattern||r
fgrep|acFhHilLnoqrsvwx|ABCem|after-context before-context context count ignore-case include
  exclude line-number recursive regexp invert-match word-regexp only-matching color|pattern||r
rg|acFhHilLnNopPqsSuUvVwx0.|ABCeEgjmMrtT|after-context before-context context case-sensitive
  color column count count-matches files-with-matches files-without-match fixed-strings glob
  iglob heading hidden ignore-case invert-match json line-number line-regexp max-columns
  max-count max-depth multiline multiline-dotall no-filename no-heading no-ignore no-ignore-vcs
  no-line-number no-messages null only-matching passthru pcre2 pretty quiet regexp replace
  smart-case sort sortr stats text threads trim type type-not type-list vimgrep with-filename
  word-regexp no-config files|pattern|guarded|*
diff|abBcdeiEnpqrstTuvwyNZ|CUWx|brief unified context side-by-side ignore-all-space
  ignore-space-change ignore-blank-lines ignore-case recursive new-file report-identical-files
  color width exclude text minimal normal suppress-common-lines
  strip-trailing-cr|paths|guarded|r
cmp|bls|in|print-bytes verbose silent quiet bytes ignore-initial|paths||
comm|123z||check-order nocheck-order output-delimiter total|paths||
sort|bcCdfghiMnrRsuVz|kt|reverse numeric-sort unique ignore-case key field-separator
  human-numeric-sort version-sort general-numeric-sort month-sort stable check
  ignore-leading-blanks dictionary-order zero-terminated|paths|guarded|
uniq|cdDiuz|fsw|count repeated unique ignore-case skip-fields skip-chars check-chars
  all-repeated|path|guarded|
cut|nsz|bcdf|bytes characters delimiter fields complement only-delimited output-delimiter|paths||
tr|cCdst||complement delete squeeze-repeats truncate-set1|text||
nl|p|bdfhilnsvw|body-numbering number-width number-format number-separator
  starting-line-number|paths||
tac|br|s|before regex separator|paths||
rev||||paths||
paste|sz|d|delimiters serial|paths||
fold|bs|w|bytes spaces width|paths||
expand|i|t|initial tabs|paths||
column|tenxJ|scHNoRT|table separator output-separator|paths||
basename|az|s|multiple suffix|text||
dirname|z||zero|text||
realpath|eLmPqsz||canonicalize-existing canonicalize-missing logical physical quiet strip
  no-symlinks relative-to relative-base|paths||
readlink|efmnqsvz||canonicalize canonicalize-existing canonicalize-missing no-newline|paths||
file|bhiLNnprsv0k||brief mime mime-type mime-encoding dereference no-dereference|paths|guarded|
which|as||all|text||
type|afptP|||text||
whereis|bms|||text||
pwd|LP||logical physical|none||
whoami||||none||
id|agGnruz||user group groups name real zero|text||
groups||||text||
uname|amnoprsvi||all kernel-name nodename kernel-release kernel-version machine
  operating-system|none||
arch||||none||
nproc|||all ignore|none||
hostname|fsiIdA||fqdn short ip-address long|none||
uptime|psV||pretty since|none||
free|bkmghtlwv||human mega giga kilo total wide|none||
true||||any||
exit||||number||
break||||number||
continue||||number||
wait||||number||
set|euxo|||text||
false||||any||
:||||any||
sleep||||text||
seq|w|fs|equal-width format separator|text||
echo||||any||
md5sum|btz||binary text tag zero|paths||
sha1sum|btz||binary text tag zero|paths||
sha224sum|btz||binary text tag zero|paths||
sha256sum|btz||binary text tag zero|paths||
sha384sum|btz||binary text tag zero|paths||
sha512sum|btz||binary text tag zero|paths||
b2sum|btz|l|binary text tag zero length|paths||
shasum|bt|a|binary text algorithm|paths||
cksum||||paths||
sum|rs|||paths||
strings|adfnw|et|all bytes radix encoding|paths||
hexdump|bcCdovx|ens|canonical no-squeezing length skip|paths||
od|abcdfiloxsvw|AjNtS|address-radix skip-bytes read-bytes format output-duplicates width|paths||
base64|di|w|decode ignore-garbage wrap|path|guarded|
tree|aAcCdDfFgGhilnNpqQrsStuUvx|ILP|dirsfirst noreport du gitignore prune sort
  filelimit|paths|guarded|*
locale|ack||all-locales charmaps category-name keyword-name|text||
getconf||||text||
tty|s|||none||
lsb_release|acdhirs|||none||
lscpu||||none||
test||||test||
[||||test||
[[||||test||
printf||||printf||
date|uRI|d|utc universal rfc-3339 iso-8601 date rfc-email|date|guarded|
sed|nEr||quiet silent regexp-extended expression|sed|guarded|
find||||find|guarded|*
cal|1316yjm|||text||
numfmt||||none||
"""


def _table() -> dict[str, Program]:
    programs: dict[str, Program] = {}
    for line in TABLE.strip().replace("\n  ", " ").splitlines():
        name, short, valued, long, operands, guarded, *deep = line.split("|")
        programs[name] = Program(
            short, valued, frozenset(long.split()), operands, guarded == "guarded", "".join(deep)
        )
    return programs


PROGRAMS = _table()


def reads(words: Sequence[Word], *, loose: bool = False) -> Use | None:
    """What a command reads, where it is one that only reads; else None.

    ``loose`` asks what it would read, though options that are not on the list are among them.
    """
    name = words[0].text if words else None
    found = PROGRAMS.get(name or "")
    if found is None:
        return None
    if found.operands == "any":
        return Use() if all(word.known for word in words) else None
    special = SPECIAL.get(found.operands)
    if special is not None:
        return special(words)
    return _parse(found, words[1:], loose=loose)


def _parse(program: Program, words: Sequence[Word], *, loose: bool = False) -> Use | None:
    """Take the options off; what remains are the operands."""
    operands: list[Word] = []
    deep = program.deep == "*"
    given_pattern = ended = False
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        text = word.text
        if ended or text is None or not text.startswith("-") or text == "-":
            if not _is_operand(program, word, ended=ended) and not loose:
                return None
            operands.append(word)
        elif text == "--":
            ended = True
        elif (step := option(program, text)) is not None:
            index += step
            deep = deep or any(letter in program.deep for letter in text[1:]) or "recurs" in text
            given_pattern = given_pattern or text[:2] == "-e" or text.startswith("--regexp")
        elif not loose:
            return None
    return _use(program, operands, deep=deep, given_pattern=given_pattern, loose=loose)


def _is_operand(program: Program, word: Word, *, ended: bool) -> bool:
    """Whether a word is certainly no option that its program should not have."""
    if not program.guarded or ended:
        return word.known
    return word.known and word.text is not None and not (word.globbed and word.bare[:1] in "*?[")


def option(program: Program, text: str) -> int | None:
    """How many words more an option takes; None for one that is not on the list."""
    if NUMBER.fullmatch(text):
        return 0
    if text.startswith("--"):
        name, _, value = text[2:].partition("=")
        if name not in program.long:
            return None
        return 0 if value or name not in TAKES_VALUE or program.operands == "counted" else 1
    for position, letter in enumerate(text[1:], 1):
        if letter in program.valued:
            return 0 if position < len(text) - 1 else 1
        if letter not in program.short and not letter.isdigit():
            return None
    return 0


TAKES_VALUE = frozenset(
    "lines bytes format max-depth after-context before-context context include exclude regexp "
    "max-count exclude-dir glob iglob type type-not key field-separator delimiter fields "
    "characters width expression date wrap filelimit threads max-columns replace sort sortr "
    "relative-to relative-base suffix separator output-separator length skip "
    "output-delimiter".split()
)


def _use(
    program: Program, operands: list[Word], *, deep: bool, given_pattern: bool, loose: bool
) -> Use | None:
    match program.operands:
        case "text":
            return Use()
        case "none":
            return Use() if not operands or loose else None
        case "number":
            return Use() if all((word.text or "?").isdigit() for word in operands) else None
        case "path":
            return Use(tuple(operands), deep) if len(operands) <= 1 or loose else None
        case "pattern":
            paths = operands if given_pattern else operands[1:]
            return Use(tuple(paths) or ((Word.plain("."),) if deep else ()), deep)
        case _:
            here = (Word.plain("."),) if deep and not operands else ()
            return Use(tuple(operands) or here, deep)


UNARY = frozenset(f"-{letter}" for letter in "abcdefghknprstuwxzGLNOS")
BINARY = frozenset({"=", "==", "!=", "-nt", "-ot", "-ef", "<", ">"})
INTEGER = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
FILES = frozenset(f"-{letter}" for letter in "abcdefghkprsuwxGLNOS")


def _test(words: Sequence[Word]) -> Use | None:
    """``test``, ``[`` and ``[[`` in the forms that evaluate nothing."""
    inner = list(words[1:])
    closing = {"[": "]", "[[": "]]"}.get(words[0].text or "")
    if closing is not None and (not inner or inner.pop().text != closing):
        return None
    double = words[0].text == "[["
    clauses: list[list[Word]] = [[]]
    for word in inner:
        if double and word.text in {"&&", "||"} and word.bare == word.text:
            clauses.append([])
        else:
            clauses[-1].append(word)
    paths: list[Word] = []
    for clause in clauses:
        found = _clause(clause, double=double)
        if found is None:
            return None
        paths.extend(found)
    return Use(tuple(paths))


def _clause(words: list[Word], *, double: bool) -> list[Word] | None:
    while words and words[0].text == "!":
        words = words[1:]
    if not all(word.known for word in words) or (not double and any(w.splits for w in words)):
        return None
    texts = [word.text for word in words]
    if len(words) == 2 and texts[0] in UNARY:
        return [words[1]] if texts[0] in FILES else []
    if len(words) == 3 and texts[1] in BINARY:
        return [words[0], words[2]] if texts[1] in {"-nt", "-ot", "-ef"} else []
    if len(words) == 3 and texts[1] in INTEGER:
        literal = all(text is not None and re.fullmatch(r"-?\d+", text) for text in texts[::2])
        plain = all(text is None or re.fullmatch(r"-?\d+", text) for text in texts[::2])
        return [] if literal or (plain and not double) else None
    return None


def _printf(words: Sequence[Word]) -> Use | None:
    rest = words[2:] if len(words) > 1 and words[1].text == "--" else words[1:]
    if not rest or rest[0].text is None or rest[0].text.startswith("-"):
        return None
    fine = all(word.known for word in rest) and not rest[0].globbed
    return Use() if fine and not PRINTF_ASSIGNS.search(rest[0].text) else None


def _date(words: Sequence[Word]) -> Use | None:
    operands: list[Word] = []
    index = 1
    while index < len(words):
        text = words[index].text
        index += 1
        if text is None:
            return None
        if not text.startswith("-"):
            operands.append(words[index - 1])
        elif re.fullmatch(r"-I(?:date|hours|minutes|seconds|ns)?", text) is None:
            step = option(PROGRAMS["date"], text)
            if step is None:
                return None
            index += step
    fine = len(operands) <= 1 and all(DATE_FORMAT.fullmatch(w.text or "") for w in operands)
    return Use() if fine else None


def _sed(words: Sequence[Word]) -> Use | None:
    """``sed -n '1,20p' file``: printing lines, and nothing else."""
    texts = [word.text for word in words[1:]]
    scripts: list[str] = []
    paths: list[Word] = []
    index = 0
    while index < len(texts):
        text = texts[index]
        if text is None or (words[index + 1].globbed and text[:1] in "*?["):
            return None
        if text in {"-e", "--expression"}:
            index += 1
            scripts.append(texts[index] or "?" if index < len(texts) else "?")
        elif text.startswith("-") and text not in {"-n", "-E", "-r", "-nE", "-En", "--quiet"}:
            return None
        elif not text.startswith("-"):
            paths.append(words[index + 1])
        index += 1
    if not scripts and paths:
        scripts.append(paths.pop(0).text or "?")
    fine = bool(scripts) and all(SED_PRINTS.fullmatch(script) for script in scripts)
    return Use(tuple(paths)) if fine else None


FIND_FLAGS = frozenset(
    "-print -print0 -ls -prune -not ! -a -and -o -or ( ) , -empty -readable -writable -executable "
    "-true -false -depth -mount -xdev -follow -daystart -noleaf -quit -nouser -nogroup "
    "-ignore_readdir_race -nowarn -warn".split()
)
FIND_VALUED = frozenset(
    "-name -iname -path -ipath -wholename -iwholename -regex -iregex -type -xtype -maxdepth "
    "-mindepth -size -mtime -mmin -ctime -cmin -atime -amin -newermt -user -group -uid -gid "
    "-perm -links -inum -lname -ilname -regextype -printf -used -fstype".split()
)
FIND_REFERENCE = frozenset({"-newer", "-anewer", "-cnewer", "-samefile"})


def _find(words: Sequence[Word]) -> Use | None:
    """``find`` without anything that writes, deletes or runs."""
    index = 1
    while index < len(words) and words[index].text in {"-H", "-L", "-P"}:
        index += 1
    paths: list[Word] = []
    while index < len(words) and not _is_expression(words[index]):
        paths.append(words[index])
        index += 1
    while index < len(words):
        text = words[index].text
        valued = text in FIND_VALUED or text in FIND_REFERENCE
        if not valued and text not in FIND_FLAGS:
            return None
        if valued:
            index += 1
            if index >= len(words) or not _is_single(words[index]):
                return None
            paths += [words[index]] if text in FIND_REFERENCE else []
        index += 1
    if not all(_is_single(path) or path.bare[:1] not in {"*", "?", "["} for path in paths):
        return None
    return Use(tuple(paths) or (Word.plain("."),), deep=True)


def _is_expression(word: Word) -> bool:
    text = word.text
    return text is not None and (text.startswith("-") or text in {"(", ")", "!", ","})


def _is_single(word: Word) -> bool:
    """Whether a word is certainly one word, and known enough."""
    return word.known and not word.globbed and not word.splits


SPECIAL: dict[str, Callable[[Sequence[Word]], Use | None]] = {
    "test": _test,
    "printf": _printf,
    "date": _date,
    "sed": _sed,
    "find": _find,
}
