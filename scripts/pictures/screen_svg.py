"""Turns what `tmux capture-pane -e` prints into an SVG picture of the screen."""

import re
import unicodedata
from html import escape

CELL_WIDTH, CELL_HEIGHT, FONT_SIZE, MARGIN = 8.4, 18, 14, 14
TEXT, BACKGROUND = "#d5d8df", "#16181d"
COLOURS = [
    "#16181d", "#e5707a", "#8fc379", "#dfb168", "#6aa8e8", "#c58ce0", "#56b6c2", "#d5d8df",
    "#6b7280", "#f28b94", "#a9d696", "#f0c987", "#8bbdf0", "#d7a9ec", "#7fd0da", "#ffffff",
]
SEQUENCE = re.compile(r"\x1b\[([0-9;]*)m|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x0f|\x0e")


class Style:
    """How the following characters look."""

    def __init__(self):
        self.front, self.back, self.marks = None, None, frozenset()

    def apply(self, codes):
        codes = [int(code or 0) for code in codes.split(";")]
        while codes:
            code = codes.pop(0)
            if code == 0:
                self.front, self.back, self.marks = None, None, frozenset()
            elif code in (1, 2, 3, 4, 7):
                self.marks |= {code}
            elif code in (22, 23, 24, 27):
                self.marks -= {22: {1, 2}, 23: {3}, 24: {4}, 27: {7}}[code]
            elif code in (38, 48):
                self.take_long_colour(code, codes)
            elif code in (39, 49):
                setattr(self, "front" if code == 39 else "back", None)
            else:
                self.take_short_colour(code)

    def take_short_colour(self, code):
        for first, name, bright in ((30, "front", 0), (90, "front", 8), (40, "back", 0), (100, "back", 8)):
            if first <= code < first + 8:
                setattr(self, name, COLOURS[code - first + bright])

    def take_long_colour(self, code, codes):
        kind = codes.pop(0)
        if kind == 2:
            colour = "#{:02x}{:02x}{:02x}".format(*codes[:3])
            del codes[:3]
        else:
            number = codes.pop(0)
            colour = COLOURS[number] if number < 16 else cube_colour(number)
        setattr(self, "front" if code == 38 else "back", colour)

    def key(self):
        front, back = self.front or TEXT, self.back
        if 7 in self.marks:
            front, back = back or BACKGROUND, front
        return front, back, self.marks - {7}


def cube_colour(number):
    """One of the 240 colours after the first 16."""
    if number >= 232:
        level = 8 + 10 * (number - 232)
        return f"#{level:02x}{level:02x}{level:02x}"
    steps = [0, 95, 135, 175, 215, 255]
    number -= 16
    return "#{:02x}{:02x}{:02x}".format(steps[number // 36], steps[number // 6 % 6], steps[number % 6])


def width(character):
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def runs(line, style):
    """The parts of a line that look alike: column, text, width, style."""
    parts, column, at = [], 0, 0
    while at < len(line):
        found = SEQUENCE.match(line, at)
        if found:
            if found[1] is not None:
                style.apply(found[1])
            at = found.end()
            continue
        character = line[at]
        cells = width(character)
        if parts and parts[-1][3] == style.key():
            start, text, length, key = parts[-1]
            parts[-1] = (start, text + character, length + cells, key)
        else:
            parts.append((column, character, cells, style.key()))
        column += cells
        at += 1
    return parts


def text_element(column, row, text, cells, key):
    front, _, marks = key
    attributes = [f'x="{MARGIN + column * CELL_WIDTH:.1f}"', f'y="{MARGIN + row * CELL_HEIGHT + 13:.1f}"']
    # The viewer's font may be wider or narrower: the run takes the room of its cells.
    attributes.append(f'textLength="{cells * CELL_WIDTH:.1f}" lengthAdjust="spacingAndGlyphs"')
    if front != TEXT:
        attributes.append(f'fill="{front}"')
    for mark, attribute in ((1, 'font-weight="bold"'), (2, 'opacity="0.6"'), (3, 'font-style="italic"'),
                            (4, 'text-decoration="underline"')):
        if mark in marks:
            attributes.append(attribute)
    return f"<text {' '.join(attributes)}>{escape(text)}</text>"


def screen_svg(screen, columns, title):
    """The picture of a screen; `title` is what a reader who cannot see it is told."""
    lines = screen.rstrip("\n").split("\n")
    style, body = Style(), []
    for row, line in enumerate(lines):
        for column, text, cells, key in runs(line, style):
            if key[1]:
                left, top = MARGIN + column * CELL_WIDTH, MARGIN + row * CELL_HEIGHT
                body.append(f'<rect x="{left:.1f}" y="{top}" width="{cells * CELL_WIDTH:.1f}" '
                            f'height="{CELL_HEIGHT}" fill="{key[1]}"/>')
            if text.strip() or 4 in key[2]:
                lead = len(text) - len(text.lstrip(" "))
                text, cells = text[lead:], cells - lead
                trail = len(text) - len(text.rstrip(" "))
                text, cells = text[:len(text) - trail], cells - trail
                if text:
                    body.append(text_element(column + lead, row, text, cells, key))
    wide, high = 2 * MARGIN + columns * CELL_WIDTH, 2 * MARGIN + len(lines) * CELL_HEIGHT
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:.0f} {high:.0f}" width="{wide:.0f}" role="img" '
        f'aria-label="{escape(title)}"><title>{escape(title)}</title>\n'
        f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>\n'
        f'<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace" '
        f'font-size="{FONT_SIZE}" fill="{TEXT}" xml:space="preserve">\n'
        + "\n".join(body) + "\n</g></svg>\n"
    )
