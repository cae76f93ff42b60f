"""The programs that only read: a line for each, with every option that it may be given."""

from __future__ import annotations

import re
from dataclasses import dataclass

from crow.extensions.permissions.script import Word

NUMBER = re.compile(r"[-+]\d+[a-zA-Z]?")


@dataclass(frozen=True, slots=True)
class Use:
    """What a command reads: these paths, and whether all that is below them.

    ``follows`` where it goes through links on its way down.
    """

    paths: tuple[Word, ...] = ()
    deep: bool = False
    follows: bool = False


@dataclass(frozen=True, slots=True)
class Program:
    """One line of the table.

    ``operands`` is ``paths``, ``path`` (one), ``pattern`` (then paths), ``text`` or ``none``;
    ``counted`` are paths of a program whose long options take no values; ``any`` word is fine.
    ``guarded`` programs have options that do more than read, so that no file name may pass for
    an option. ``deep`` are the options that make it read all below (``*``: always), ``follows``
    those that make it go through links.
    """

    short: str = ""
    valued: str = ""
    long: frozenset[str] = frozenset()
    operands: str = "paths"
    guarded: bool = False
    deep: str = ""
    follows: str = ""


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
grep|aabcEFGHhilLnoqrRsTUvVwxyzZP|ABCemd|after-context before-context context basic-regexp
  binary-files byte-offset color colour count exclude exclude-dir extended-regexp
  files-with-matches files-without-match fixed-strings ignore-case include invert-match
  line-buffered line-number line-regexp max-count no-filename no-messages null only-matching
  perl-regexp quiet recursive dereference-recursive regexp silent text with-filename
  word-regexp no-ignore-case initial-tab|pattern||rR|R
egrep|acEhHilLnoqrRsvwx|ABCem|after-context before-context context count ignore-case include
  exclude line-number recursive regexp invert-match word-regexp only-matching color|pattern||rR|R
fgrep|acFhHilLnoqrRsvwx|ABCem|after-context before-context context count ignore-case include
  exclude line-number recursive regexp invert-match word-regexp only-matching color|pattern||rR|R
rg|acFhHilLnNopPqsSuUvVwx0.|ABCeEgjmMrtT|after-context before-context context case-sensitive
  color column count count-matches files-with-matches files-without-match fixed-strings glob
  iglob heading hidden ignore-case invert-match json line-number line-regexp max-columns
  max-count max-depth multiline multiline-dotall no-filename no-heading no-ignore no-ignore-vcs
  no-line-number no-messages null only-matching passthru pcre2 pretty quiet regexp replace
  smart-case sort sortr stats text threads trim type type-not type-list vimgrep with-filename
  word-regexp no-config files follow|pattern|guarded|*|L
diff|abBcdeiEnpqrstTuvwyNZ|CUWx|brief unified context side-by-side ignore-all-space
  ignore-space-change ignore-blank-lines ignore-case recursive new-file report-identical-files
  color width exclude text minimal normal suppress-common-lines
  strip-trailing-cr|paths|guarded|r|r
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
join|iz|12aejotv|ignore-case check-order nocheck-order header zero-terminated|paths||
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
read|r|||text||
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
xxd|abeiuE|cglos||path|guarded|
od|abcdfiloxsvw|AjNtS|address-radix skip-bytes read-bytes format output-duplicates width|paths||
base64|di|w|decode ignore-garbage wrap|path|guarded|
tree|aAcCdDfFgGhilnNpqQrsStuUvx|ILP|dirsfirst noreport du gitignore prune sort
  filelimit|paths|guarded|*
locale|ack||all-locales charmaps category-name keyword-name|text||
getconf||||text||
ps||||ps||
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
jq||||jq|guarded|
awk||||awk|guarded|
gawk||||awk|guarded|
mawk||||awk|guarded|
cal|1316yjm|||text||
"""


def _table() -> dict[str, Program]:
    programs: dict[str, Program] = {}
    for line in TABLE.strip().replace("\n  ", " ").splitlines():
        name, short, valued, long, operands, guarded, deep, *follows = line.split("|")
        programs[name] = Program(
            short,
            valued,
            frozenset(long.split()),
            operands,
            guarded == "guarded",
            deep,
            "".join(follows),
        )
    return programs


PROGRAMS = _table()


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
