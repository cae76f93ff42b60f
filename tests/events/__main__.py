"""Write the pages of docs/events anew: ``python -m tests.events``."""

from tests.events.pages import write

write()
