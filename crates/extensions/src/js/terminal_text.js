// Text as a terminal shows it: widths, lines, keys, and the search for what was typed inexactly. Evaluated as a
// function; returns those parts of `pi-tui`.
(function () {
  "use strict";
  const ESCAPE = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|_[^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\^])/g;
  const plain = (text) => String(text).replace(ESCAPE, "");
  const wide = /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;
  const RESET = "\u001b[0m";
  const segmenter = new Intl.Segmenter();
  const isAscii = (text) => /^[\x20-\x7e]*$/.test(text);
  const segmentWidth = (segment) => (segment === "\t" ? 3 : /^(?:\p{Mark}|\p{Control}|[\u200b-\u200f\ufe00-\ufe0f])+$/u.test(segment) ? 0 : wide.test(segment) || /[\ufe0f\u20e3]|^[\u{1f1e6}-\u{1f1ff}]{2}/u.test(segment) ? 2 : 1);
  const visibleWidth = (text) => {
    const shown = plain(text);
    if (isAscii(shown)) return shown.length;
    let width = 0;
    for (const { segment } of segmenter.segment(shown)) width += segmentWidth(segment);
    return width;
  };
  // Escape sequences and characters, each with its width.
  function* pieces(text) {
    let at = 0;
    for (const found of text.matchAll(ESCAPE)) {
      for (const { segment } of segmenter.segment(text.slice(at, found.index))) yield { text: segment, width: segmentWidth(segment) };
      yield { text: found[0], width: 0, isEscape: true };
      at = found.index + found[0].length;
    }
    for (const { segment } of segmenter.segment(text.slice(at))) yield { text: segment, width: segmentWidth(segment) };
  }
  function truncateToWidth(text, width, ellipsis = "...", pads = false) {
    const whole = String(text);
    const shown = visibleWidth(whole);
    if (shown <= width) return pads ? whole + " ".repeat(width - shown) : whole;
    let mark = ellipsis;
    while (visibleWidth(mark) > width) mark = mark.slice(0, -1);
    const room = width - visibleWidth(mark);
    let cut = "";
    let used = 0;
    for (const piece of pieces(whole)) {
      if (used + piece.width > room) break;
      cut += piece.text;
      used += piece.width;
    }
    // What was begun in colour ends before the mark.
    const coloured = cut.includes("\u001b");
    const made = coloured ? `${cut}${RESET}${mark}${mark ? RESET : ""}` : cut + mark;
    return pads ? made + " ".repeat(Math.max(0, width - used - visibleWidth(mark))) : made;
  }
  // Colours go on in the next line until they end.
  const wrapTextWithAnsi = (text, width) => {
    const room = Math.max(1, width);
    const lines = [];
    let active = "";
    const follow = (escape) => { if (/^\u001b\[[\d;]*m$/.test(escape)) active = /^\u001b\[0?m$/.test(escape) ? "" : active + escape; };
    for (const paragraph of String(text).split("\n")) {
      let line = active;
      let used = 0;
      let word = "";
      let wordWidth = 0;
      let space = "";
      const put = () => {
        if (word === "") return;
        if (used > 0 && used + space.length + wordWidth > room) { lines.push(line); line = lineStart; used = 0; space = ""; }
        line += space + word;
        used += space.length + wordWidth;
        space = "";
        word = "";
        wordWidth = 0;
        lineStart = active;
      };
      let lineStart = active;
      for (const piece of pieces(paragraph)) {
        if (piece.isEscape) { follow(piece.text); word += piece.text; continue; }
        if (piece.text === " ") { if (wordWidth > 0 || word !== "") put(); space += " "; continue; }
        if (wordWidth + piece.width > room) put();
        if (wordWidth === 0 && word === "") lineStart = active;
        word += piece.text;
        wordWidth += piece.width;
      }
      put();
      lines.push(line);
    }
    return lines;
  };
  // The columns from `from` on, with the colours that hold there.
  function sliceByColumn(text, from, length) {
    let at = 0;
    let before = "";
    let made = "";
    for (const piece of pieces(String(text))) {
      if (piece.isEscape) { if (at < from) before += piece.text; else if (at <= from + length) made += piece.text; continue; }
      if (at >= from && at + piece.width <= from + length) made += piece.text;
      at += piece.width;
      if (at > from + length) break;
    }
    return before + made;
  }

  // ---- inexact search: all letters in their order; the fewer and the earlier the gaps, the lower the score
  function matchWord(query, text) {
    let score = 0;
    let last = -1;
    let row = 0;
    let at = 0;
    for (let index = 0; index < text.length && at < query.length; index++) {
      if (text[index] !== query[at]) continue;
      const begins = index === 0 || /[\s\-_./:]/.test(text[index - 1]);
      if (last === index - 1) { row++; score -= 5 * row; } else { row = 0; if (last >= 0) score += 2 * (index - last - 1); }
      if (begins) score -= 10;
      score += index / 10;
      last = index;
      at++;
    }
    if (at < query.length) return { matches: false, score: 0 };
    return { matches: true, score: query === text ? score - 100 : score };
  }
  function fuzzyMatch(query, text) {
    const [wanted, given] = [String(query).toLowerCase(), String(text).toLowerCase()];
    if (wanted === "") return { matches: true, score: 0 };
    const direct = matchWord(wanted, given);
    if (direct.matches) return direct;
    const swapped = /^([a-z]+)(\d+)$/.exec(wanted) ?? /^(\d+)([a-z]+)$/.exec(wanted);
    const other = swapped ? matchWord(swapped[2] + swapped[1], given) : direct;
    return other.matches ? { matches: true, score: other.score + 5 } : direct;
  }
  function fuzzyFilter(items, query, textOf) {
    const words = String(query).trim().split(/[\s/]+/).filter(Boolean);
    if (words.length === 0) return items;
    const found = [];
    for (const item of items) {
      const matches = words.map((word) => fuzzyMatch(word, textOf(item)));
      if (matches.every((match) => match.matches)) found.push({ item, score: matches.reduce((sum, match) => sum + match.score, 0) });
    }
    return found.sort((one, other) => one.score - other.score).map(({ item }) => item);
  }

  // ---- keys
  const SIGNS = { backtick: "`", hyphen: "-", equals: "=", leftbracket: "[", rightbracket: "]", backslash: "\\", semicolon: ";", quote: "'", comma: ",", period: ".", slash: "/", exclamation: "!", at: "@", hash: "#", dollar: "$", percent: "%", caret: "^", ampersand: "&", asterisk: "*", leftparen: "(", rightparen: ")", underscore: "_", plus: "+", pipe: "|", tilde: "~", leftbrace: "{", rightbrace: "}", colon: ":", lessthan: "<", greaterthan: ">", question: "?" };
  const MODIFIERS = ["ctrl", "shift", "alt", "super"];
  const Key = new Proxy({}, { get: (_target, name) => (typeof name !== "string" ? undefined : new RegExp(`^(?:${MODIFIERS.join("|")})`).test(name) ? (key) => `${name.replace(/[A-Z]/g, (letter) => `+${letter.toLowerCase()}`)}+${key}` : SIGNS[name] ?? name) });
  const LETTERS = { A: "up", B: "down", C: "right", D: "left", H: "home", F: "end", P: "f1", Q: "f2", R: "f3", S: "f4", Z: "shift+tab", E: "clear" };
  const NUMBERS = { 1: "home", 2: "insert", 3: "delete", 4: "end", 5: "pageUp", 6: "pageDown", 7: "home", 8: "end", 11: "f1", 12: "f2", 13: "f3", 14: "f4", 15: "f5", 17: "f6", 18: "f7", 19: "f8", 20: "f9", 21: "f10", 23: "f11", 24: "f12" };
  const CODES = { 9: "tab", 13: "enter", 27: "escape", 32: "space", 127: "backspace", 57414: "enter" };
  // Modifiers as the terminal numbers them, in the order in which keys are written.
  const modified = (number, key) => { const bits = (Number(number) || 1) - 1; return [...(bits & 4 ? ["ctrl"] : []), ...(bits & 1 ? ["shift"] : []), ...(bits & 2 ? ["alt"] : []), ...(bits & 8 ? ["super"] : []), key].join("+"); };
  const SINGLE = { "\u001b": "escape", "\r": "enter", "\n": "enter", "\t": "tab", " ": "space", "\u007f": "backspace", "\b": "backspace", "\u0000": "ctrl+space" };
  function parseKey(data) {
    const text = String(data);
    if (SINGLE[text]) return SINGLE[text];
    let found = /^\u001b\[(?:1;(\d+)(?::\d+)?)?([A-HPQRSZ])$/.exec(text) ?? /^\u001bO(\d*)([A-HPQRS])$/.exec(text);
    if (found && LETTERS[found[2]]) return modified(found[1], LETTERS[found[2]]);
    found = /^\u001b\[(\d+)(?:;(\d+)(?::\d+)?)?~$/.exec(text);
    if (found && NUMBERS[found[1]]) return modified(found[2], NUMBERS[found[1]]);
    found = /^\u001b\[27;(\d+);(\d+)~$/.exec(text);
    if (found) return modified(found[1], CODES[found[2]] ?? String.fromCodePoint(Number(found[2])).toLowerCase());
    found = /^\u001b\[(\d+)(?::\d*)*(?:;(\d+)(?::\d+)?)?(?:;[\d:]*)?u$/.exec(text);
    if (found) return modified(found[2], CODES[found[1]] ?? String.fromCodePoint(Number(found[1])).toLowerCase());
    if (text.length === 2 && text[0] === "\u001b") { const inner = parseKey(text[1]); return inner === undefined ? undefined : inner.startsWith("ctrl+") ? inner.replace("ctrl+", "ctrl+alt+") : `alt+${inner}`; }
    if ([...text].length !== 1) return undefined;
    if (text < " ") return `ctrl+${String.fromCharCode(text.charCodeAt(0) + (text.charCodeAt(0) <= 26 ? 96 : 64))}`;
    return /^[A-Z]$/.test(text) ? `shift+${text.toLowerCase()}` : text;
  }
  // Modifiers in any order, and two names for some keys.
  const sameKey = (key) => {
    const parts = String(key).toLowerCase().split(/\+(?!$)/);
    const last = ({ esc: "escape", return: "enter", del: "delete", ins: "insert", pgup: "pageup", pgdn: "pagedown" })[parts.at(-1)] ?? parts.at(-1);
    return [...parts.slice(0, -1).sort(), last].join("+");
  };
  const matchesKey = (data, key) => { const pressed = parseKey(data); return pressed !== undefined && (sameKey(pressed) === sameKey(key) || (String(data) === key && [...key].length === 1)); };
  const hyperlink = (text, address) => `\u001b]8;;${address}\u001b\\${text}\u001b]8;;\u001b\\`;
  return { plain, visibleWidth, truncateToWidth, wrapTextWithAnsi, sliceByColumn, fuzzyMatch, fuzzyFilter, Key, parseKey, matchesKey, hyperlink, stripTerminalSequences: plain };
})
