"""A guard of named pipes: no mount forbids writing to one, Landlock does, from inside of bwrap.

A ruleset needs the mounts that bwrap makes, and a process that has one may not mount; so the last
program before the command makes it. Perl starts in two milliseconds, Python in six.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence

from crow.extensions.sandbox.limits import kept_by_the_kernel
from crow.extensions.sandbox.policy import Limits
from crow.extensions.sandbox.probe_cache import system_program

_ABI = 2  # the first in which files may be moved from folder to folder
_PRLIMIT = {"x86_64": 302, "aarch64": 261}
_OTHERS = ("/dev", "/proc")
QUIET = ("--setenv", "PERL_BADLANG", "0")
"""Or perl would complain of a locale that is not installed."""
_SCRIPT = r"""
delete $ENV{PERL_BADLANG};
sub need { my $got = syscall($_[0], @_[1 .. $#_]); return $got if $got >= 0;
    print STDERR "bwrap: named pipes cannot be guarded: $!\n"; exit 125 }
for (split /,/, shift) { my ($which, $most) = split /=/;
    syscall(PRLIMIT, 0, $which + 0, my $both = pack('QQ', $most, $most), 0) }
my $rules = need(444, my $handled = pack('Q', 0x2002), 8, 0);
sub allow { my ($path, $rights) = @_; sysopen(my $file, $path, 010000000) or return;
    need(445, $rules, 1, my $rule = pack('Ql', -d $file ? $rights : $rights & 2, fileno $file), 0) }
allow('/', 0x2000);
allow($_, 0x2002) for splice @ARGV, 0, shift;
need(446, $rules, 0);
exec { $ARGV[0] } @ARGV or print STDERR "$ARGV[0]: $!\n";
exit($! == 2 ? 127 : 126);
"""


def find_guard() -> str:
    """Perl, where it can make the calls on this machine and the kernel has them; else empty."""
    from crow.extensions.sandbox.landlock import find_abi

    perl = system_program("perl")
    try:
        is_known = platform.machine() in _PRLIMIT and find_abi() >= _ABI
    except OSError:
        return ""
    return perl or "" if is_known else ""


def guarded(perl: str, argv: Sequence[str], writable: Sequence[str], limits: Limits) -> list[str]:
    """A command that writes to files below these paths alone, and has its limits."""
    most = ",".join(f"{number}={value}" for number, value in kept_by_the_kernel(limits))
    script = _SCRIPT.replace("PRLIMIT", str(_PRLIMIT[platform.machine()]))
    paths = [*writable, *_OTHERS]
    return [perl, "-e", script, "--", most, str(len(paths)), *paths, *argv]
