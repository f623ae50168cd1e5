// Front matter: the YAML that stands before a text, as far as people write it there. Evaluated as a function.
(function () {
  "use strict";
  const NUMBER = /^[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?$/;
  function plainValue(text) {
    if (text === "" || /^(?:~|null|Null|NULL)$/.test(text)) return null;
    if (/^(?:true|True|TRUE)$/.test(text)) return true;
    if (/^(?:false|False|FALSE)$/.test(text)) return false;
    if (NUMBER.test(text)) return Number(text);
    if (/^0x[\da-fA-F]+$/.test(text) || /^0o[0-7]+$/.test(text)) return Number(text);
    if (/^[-+]?\.(?:inf|Inf|INF)$/.test(text)) return text.startsWith("-") ? -Infinity : Infinity;
    return text;
  }
  const ESCAPES = { n: "\n", t: "\t", r: "\r", 0: "\0", b: "\b", f: "\f", v: "\v", e: "\u001b", a: "\u0007", " ": " ", "/": "/", "\\": "\\", '"': '"' };
  const unquoteDouble = (text) => text.replace(/[ \t]*\n[ \t]*/g, (found) => (found.split("\n").length > 2 ? "\n" : " ")).replace(/\\(x[\da-fA-F]{2}|u[\da-fA-F]{4}|U[\da-fA-F]{8}|.)/g, (_all, code) => (code.length > 1 ? String.fromCodePoint(parseInt(code.slice(1), 16)) : ESCAPES[code] ?? code));
  const problem = (line, text) => { throw new SyntaxError(`line ${line + 1} of the front matter: ${text}`); };

  // A list or a map in brackets, a quoted text, or a plain word. Returns the value and where it ends.
  function flowValue(text, from, line) {
    let at = from;
    const blank = () => { while (/[ \t\n]/.test(text[at] ?? "")) at++; };
    blank();
    const open = text[at];
    if (open === '"') {
      let end = at + 1;
      while (end < text.length && text[end] !== '"') end += text[end] === "\\" ? 2 : 1;
      if (end >= text.length) problem(line, "a quoted text has no end");
      return [unquoteDouble(text.slice(at + 1, end)), end + 1];
    }
    if (open === "'") {
      let end = at + 1;
      while (end < text.length && (text[end] !== "'" || text[end + 1] === "'")) end += text[end] === "'" ? 2 : 1;
      if (end >= text.length) problem(line, "a quoted text has no end");
      return [text.slice(at + 1, end).replaceAll("''", "'"), end + 1];
    }
    if (open === "[" || open === "{") {
      const close = open === "[" ? "]" : "}";
      const list = [];
      const map = {};
      at++;
      for (;;) {
        blank();
        if (at >= text.length) problem(line, `${open} has no end`);
        if (text[at] === close) return [open === "[" ? list : map, at + 1];
        if (text[at] === ",") { at++; continue; }
        let value;
        [value, at] = flowValue(text, at, line);
        blank();
        if (text[at] === ":") {
          const key = String(value);
          at++;
          [value, at] = flowValue(text, at, line);
          if (open === "[") list.push({ [key]: value }); else map[key] = value;
        } else if (open === "[") list.push(value); else map[String(value)] = null;
      }
    }
    let end = at;
    while (end < text.length && !/[,\]}\n]/.test(text[end]) && !(text[end] === ":" && /[\s,\]}]/.test(text[end + 1] ?? " "))) end++;
    return [plainValue(text.slice(at, end).trim()), end];
  }
  const withoutComment = (text) => text.replace(/(^|\s)#.*$/, "$1").trimEnd();
  // Where the key of "key: value" ends; -1 if there is none.
  function keyEnd(text) {
    if (/^["']/.test(text)) { const found = /^(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*')\s*:(?=\s|$)/.exec(text); return found ? found[0].length - 1 : -1; }
    if (/^[[{#&*!|>%@`]/.test(text)) return -1;
    return text.search(/:(?=\s|$)/);
  }

  function parse(source) {
    const lines = String(source).replace(/\r\n?/g, "\n").split("\n");
    let at = 0;
    const indentOf = (line) => line.length - line.trimStart().length;
    const isEmpty = (line) => /^\s*(?:#.*)?$/.test(line);
    const skip = () => { while (at < lines.length && isEmpty(lines[at])) at++; };
    // The text after `|` or `>`.
    function block(head, parentIndent) {
      const isFolded = head[0] === ">";
      const given = /[1-9]/.exec(head)?.[0];
      const found = [];
      let indent = given ? parentIndent + Number(given) : undefined;
      for (; at < lines.length; at++) {
        const line = lines[at];
        if (line.trim() === "") { found.push(indent !== undefined && line.length > indent ? line.slice(indent) : ""); continue; }
        if (indentOf(line) <= parentIndent) break;
        indent ??= indentOf(line);
        found.push(line.slice(indent));
      }
      let end = found.length;
      while (end > 0 && found[end - 1] === "") end--;
      const kept = found.slice(0, end);
      let text = "";
      kept.forEach((line, number) => {
        if (number === 0) text = line;
        else if (!isFolded || /^\s/.test(line) || /^\s/.test(kept[number - 1])) text += `\n${line}`;
        else if (line === "") text += "\n";
        else text += kept[number - 1] === "" ? line : ` ${line}`;
      });
      const tail = head.includes("+") ? "\n".repeat(found.length - end + 1) : head.includes("-") ? "" : "\n";
      return kept.length ? text + tail : tail === "\n" ? "" : tail;
    }
    // What stands after a key or a dash; more indented lines may go on with it.
    function value(text, parentIndent, isInList) {
      const rest = withoutComment(text).trim().replace(/^(?:![^\s]*|&\S+)\s*/, "");
      if (rest === "" || rest.startsWith("#")) {
        skip();
        if (at >= lines.length) return null;
        const indent = indentOf(lines[at]);
        if (indent > parentIndent || (!isInList && indent === parentIndent && /^\s*-(?:\s|$)/.test(lines[at]))) return node(indent);
        return null;
      }
      if (/^[|>][-+\d]*$/.test(rest)) return block(rest, parentIndent);
      if (/^["'[{]/.test(rest)) {
        let whole = text.trim();
        for (;;) {
          try {
            const [found, end] = flowValue(whole, 0, at);
            if (/^\s*(?:#.*)?$/.test(whole.slice(end))) return found;
            problem(at - 1, `unexpected "${whole.slice(end).trim()}"`);
          } catch (error) {
            if (at >= lines.length || !/has no end/.test(error.message)) throw error;
            whole += `\n${lines[at++].trim()}`;
          }
        }
      }
      const words = [rest];
      while (at < lines.length && !isEmpty(lines[at]) && indentOf(lines[at]) > parentIndent) words.push(withoutComment(lines[at++]).trim());
      if (words.length > 1) return words.join(" ");
      if (keyEnd(rest) >= 0) problem(at - 1, "nested mappings are not allowed in a value on one line");
      return plainValue(rest);
    }
    function node(indent) {
      skip();
      return /^\s*-(?:\s|$)/.test(lines[at]) ? sequence(indent) : mapping(indent);
    }
    function sequence(indent) {
      const list = [];
      for (skip(); at < lines.length && indentOf(lines[at]) === indent && /^\s*-(?:\s|$)/.test(lines[at]); skip()) {
        const content = lines[at].slice(indent + 1);
        const inner = content.trimStart();
        const innerIndent = indent + 1 + content.length - inner.length;
        if (inner !== "" && !inner.startsWith("#") && (keyEnd(inner) >= 0 || /^-(?:\s|$)/.test(inner))) {
          // A map or a list that begins behind the dash.
          lines[at] = " ".repeat(innerIndent) + inner;
          list.push(node(innerIndent));
        } else { at++; list.push(value(inner, indent, true)); }
      }
      return list;
    }
    function mapping(indent) {
      const map = {};
      for (skip(); at < lines.length && indentOf(lines[at]) === indent; skip()) {
        const line = lines[at].slice(indent);
        const end = keyEnd(line);
        if (end < 0) problem(at, `"${line.trim()}" is no key with a value`);
        const written = line.slice(0, end).trim();
        const key = /^["']/.test(written) ? String(flowValue(written, 0, at)[0]) : written;
        at++;
        map[key] = value(line.slice(end + 1), indent, false);
      }
      return map;
    }
    skip();
    if (at >= lines.length || /^(?:---|\.\.\.)/.test(lines[at])) return {};
    const first = lines[at].trim();
    const found = keyEnd(first) < 0 && !/^-(?:\s|$)/.test(first) ? (at++, value(first, -1, false)) : node(indentOf(lines[at]));
    skip();
    if (at < lines.length) problem(at, `"${lines[at].trim()}" does not belong to what is before it`);
    return found;
  }
  function parseFrontmatter(content) {
    const text = String(content).replace(/^\ufeff/, "").replace(/\r\n?/g, "\n");
    if (!text.startsWith("---\n")) return { frontmatter: {}, body: text };
    const end = text.indexOf("\n---", 3);
    if (end < 0) return { frontmatter: {}, body: text };
    const frontmatter = parse(text.slice(4, end + 1));
    return { frontmatter: frontmatter ?? {}, body: text.slice(end + 4).trim() };
  }
  return { parse, parseFrontmatter };
})
