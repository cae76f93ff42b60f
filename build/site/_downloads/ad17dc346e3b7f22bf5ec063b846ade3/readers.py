"""Programs that people run to look at something, whatever their options could do beside that.

It is no proof: such commands run unasked only where the operating system lets them write nothing.
The table of what is proven is `programs.txt`.
"""

from __future__ import annotations

from collections.abc import Sequence

READERS = frozenset(
    """
    [ arch awk b2sum base32 base64 basename bat batcat bc blkid cal cat cksum clang-format cloc cmp
    cloc column comm cut date dc df diff diff3 diffstat dig dirname dmesg dpkg-query dot du echo
    egrep env exa expand expr eza factor false fd fdfind fgrep file find fold fmt free gawk getconf
    getent gofmt grep groups gunzip gzip head hexdump host hostname hostnamectl iconv id ifconfig
    infocmp ip jobs join jq last ldd less locale localectl locate look ls lsattr lsb_release lsblk
    lscpu lshw lsmod lsof lspci lsusb man mawk md5sum mediainfo mlr more mount namei netstat nl nm
    nproc numfmt objdump od otool paste pathchk pdfinfo pdftotext pgrep plocate pr printenv printf
    ps pstree pwd readelf readlink realpath rev rg ripgrep scc sed seq sha1sum sha224sum sha256sum
    sha384sum sha512sum shellcheck size sort sqlite3 ss stat strings sum sw_vers swapon
    sysctl tac tail tar test tokei top tr tree true tsort tty type ugrep uname unexpand uniq
    units unzip uptime vmstat w wc whatis whereis which who whoami xmllint xxd xzcat yq zcat zgrep
    zip zipinfo zstdcat
    """.split()
)
GIT = frozenset(
    """
    annotate archive blame branch bugreport cat-file check-attr check-ignore check-mailmap
    check-ref-format cherry config count-objects describe diff diff-files diff-index diff-tree
    for-each-ref format-patch fsck grep help log ls-files ls-tree merge-base merge-tree name-rev
    notes range-diff reflog remote rev-list rev-parse shortlog show show-branch show-ref stash
    status submodule symbolic-ref tag var verify-commit verify-pack verify-tag version whatchanged
    worktree
    """.split()
)
ABOUT = frozenset({"--version", "-V", "-version", "version", "--help", "-h", "help"})
WITH_VALUE = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace"})


def is_reader(words: Sequence[str]) -> bool:
    """True for the words of a command that most likely looks at something and no more."""
    program, *rest = words
    if len(rest) == 1 and rest[0] in ABOUT:
        return True
    return program in READERS or (program == "git" and _deed(rest) in GIT)


def _deed(words: Sequence[str]) -> str:
    """What git is told to do, behind options of its own."""
    rest = iter(words)
    for word in rest:
        if not word.startswith("-"):
            return word
        if word in WITH_VALUE:
            next(rest, None)
    return ""
