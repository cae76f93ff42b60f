"""A browser that shows nothing: it goes wherever a page leads it, and its user agrees to all."""

import sys
import urllib.request

urllib.request.urlopen(sys.argv[1], timeout=30).read()
