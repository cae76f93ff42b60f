"""A page's bytes as text for a model: HTML becomes Markdown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from crow.extensions.web.fetch import Page

if TYPE_CHECKING:
    from bs4 import BeautifulSoup

LONGEST_HTML = 1_000_000
LONGEST = 100_000
HTML = ("text/html", "application/xhtml+xml")
USELESS = (
    *("script", "style", "noscript", "template", "svg", "canvas", "iframe", "object", "embed"),
    *("form", "button", "input", "select", "textarea", "dialog", "nav", "head"),
)
_META = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]{0,200}>(.{0,2000}?)</title", re.IGNORECASE | re.DOTALL)
_BLANK = re.compile(r"\n[ \t]*(?:\n[ \t]*)+\n")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufeff]")


def text_of(page: Page) -> str:
    """The text of a page, at most `LONGEST` characters of it; seconds of work for a long one."""
    text = decode(page)
    is_cut = page.is_cut
    if page.media_type in HTML or (not page.media_type and "<html" in text[:1000].lower()):
        is_cut = is_cut or len(text) > LONGEST_HTML
        text = markdown(text[:LONGEST_HTML], page.url)
    text = _CONTROL.sub("", text.replace("\r\n", "\n")).strip()
    if len(text) > LONGEST or is_cut:
        text = f"{text[:LONGEST]}\n\n[... the page is longer: only its beginning is here]"
    return text or "(the page has no text; it may be made by JavaScript, which is not run)"


def decode(page: Page) -> str:
    """The body as text: by the charset that was named, else as UTF-8."""
    found = _META.search(page.body[:4096]) if page.media_type in HTML else None
    for name in (page.charset, found[1].decode("ascii", "replace") if found else ""):
        try:
            if name:
                return page.body.decode(name, "replace")
        except (LookupError, ValueError):  # no charset, or none of text
            continue
    return page.body.decode("utf-8", "replace")


def markdown(html: str, url: str) -> str:
    """HTML as Markdown, links absolute; what is for a person with a mouse is left out."""
    from bs4 import BeautifulSoup
    from markdownify import ATX, MarkdownConverter

    title = _TITLE.search(html)
    soup = BeautifulSoup(html, "lxml")
    _tidy(soup, url)
    try:
        text: str = MarkdownConverter(heading_style=ATX, bullets="-").convert_soup(soup)
    except RecursionError:
        text = soup.get_text("\n")
    head = " ".join(BeautifulSoup(title[1], "lxml").get_text().split()) if title else ""
    text = _BLANK.sub("\n\n", text).strip()
    return f"Title: {head}\n\n{text}" if head and text else text


def _tidy(soup: BeautifulSoup, url: str) -> None:
    base = soup.find("base", href=True)
    root = urljoin(url, str(base.get("href"))) if base is not None else url
    for tag in soup(USELESS):
        tag.decompose()
    for tag in soup(["a", "img"]):
        name = "href" if tag.name == "a" else "src"
        target = str(tag.get(name) or "").strip()
        if target.startswith(("data:", "javascript:")):
            tag.unwrap() if tag.name == "a" else tag.decompose()
        elif target:
            try:
                tag[name] = urljoin(root, target)
            except ValueError:
                del tag[name]
