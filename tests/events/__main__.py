"""Write the pages of docs/events and the picture of the loop anew: ``python -m tests.events``."""

from tests.events.loop import drawn
from tests.events.pages import ROOT, write

write()
(ROOT / "docs/pictures/loop.svg").write_text(drawn(), "utf-8")
