// `node:path`: that of this system, and that of Windows for those who ask for it. Evaluated as a function.
(function () {
  "use strict";
  const normalizeParts = (parts, isAbsolute) => {
    const plain = [];
    for (const part of parts) {
      if (part === "" || part === ".") continue;
      if (part !== "..") plain.push(part);
      else if (plain.length && plain[plain.length - 1] !== "..") plain.pop();
      else if (!isAbsolute) plain.push("..");
    }
    return plain;
  };
  const path = {
    sep: "/", delimiter: ":",
    isAbsolute: (name) => name.startsWith("/"),
    normalize(name) {
      if (name === "") return ".";
      const absolute = name.startsWith("/");
      const parts = normalizeParts(name.split("/"), absolute).join("/");
      const end = name.endsWith("/") && parts !== "" ? "/" : "";
      return (absolute ? "/" : "") + parts + end || (absolute ? "/" : ".");
    },
    join: (...names) => { const joined = names.filter((name) => name !== "").join("/"); return joined === "" ? "." : path.normalize(joined); },
    resolve(...names) {
      let whole = "";
      for (let at = names.length - 1; at >= 0 && !whole.startsWith("/"); at--) if (names[at]) whole = whole === "" ? names[at] : `${names[at]}/${whole}`;
      if (!whole.startsWith("/")) whole = `${process.cwd()}/${whole}`;
      return `/${normalizeParts(whole.split("/"), true).join("/")}`;
    },
    dirname(name) {
      const trimmed = name.replace(/\/+$/, "");
      const at = trimmed.lastIndexOf("/");
      return at < 0 ? (name.startsWith("/") ? "/" : ".") : at === 0 ? "/" : trimmed.slice(0, at);
    },
    basename(name, ending = "") {
      const base = name.replace(/\/+$/, "").split("/").pop() ?? "";
      return ending !== "" && base !== ending && base.endsWith(ending) ? base.slice(0, -ending.length) : base;
    },
    extname(name) { const base = path.basename(name); const at = base.lastIndexOf("."); return at <= 0 ? "" : base.slice(at); },
    relative(from, to) {
      const one = path.resolve(from).split("/").filter(Boolean);
      const other = path.resolve(to).split("/").filter(Boolean);
      let same = 0;
      while (same < one.length && same < other.length && one[same] === other[same]) same++;
      return [...Array(one.length - same).fill(".."), ...other.slice(same)].join("/");
    },
    parse(name) {
      const base = path.basename(name);
      const ext = path.extname(base);
      const dir = path.dirname(name);
      return { root: name.startsWith("/") ? "/" : "", dir: dir === "." && !name.startsWith("./") ? "" : dir, base, ext, name: ext ? base.slice(0, -ext.length) : base };
    },
    format: ({ dir, root, base, name = "", ext = "" }) => { const last = base ?? name + ext; return dir ? `${dir}/${last}` : (root ?? "") + last; },
  };
  path.posix = path;

  // Whether a path fits a pattern of `*`, `**`, `?`, `[…]` and `{…,…}`.
  path.matchesGlob = (name, pattern) => {
    let source = "";
    for (let at = 0, depth = 0; at < pattern.length; at++) {
      const sign = pattern[at];
      if (pattern.startsWith("**/", at)) { source += "(?:.*/)?"; at += 2; } else if (pattern.startsWith("**", at)) { source += ".*"; at++; } else if (sign === "*") source += "[^/]*";
      else if (sign === "?") source += "[^/]";
      else if (sign === "[" && pattern.indexOf("]", at) > at) { const end = pattern.indexOf("]", at); source += `[${pattern.slice(at + 1, end).replace(/^!/, "^").replaceAll("\\", "\\\\")}]`; at = end; } else if (sign === "{") { source += "(?:"; depth++; } else if (sign === "}" && depth) { source += ")"; depth--; } else if (sign === "," && depth) source += "|";
      else source += sign.replace(/[.+^${}()|[\]\\]/g, "\\$&");
    }
    return new RegExp(`^${source}$`, "s").test(name);
  };
  path._makeLong = path.toNamespacedPath = (name) => name;
  // The same with the other separator; drives are parts like others.
  const forward = (name) => String(name).replaceAll("\\", "/");
  const back = (name) => name.replaceAll("/", "\\");
  const isAbsolute = (name) => /^(?:[A-Za-z]:)?[\\/]/.test(name);
  const win32 = {
    sep: "\\", delimiter: ";", isAbsolute,
    basename: (name, ending) => path.basename(forward(name).replace(/^[A-Za-z]:/, ""), ending), extname: (name) => path.extname(forward(name)),
    dirname: (name) => { const drive = /^[A-Za-z]:/.exec(name)?.[0] ?? ""; return drive + back(path.dirname(forward(name).slice(drive.length))); },
    normalize: (name) => back(path.normalize(forward(name))), join: (...names) => back(path.join(...names.map(forward))),
    resolve: (...names) => { const from = names.findLastIndex(isAbsolute); const whole = forward(names.slice(Math.max(0, from)).join("/")); const drive = /^[A-Za-z]:/.exec(whole)?.[0] ?? ""; return drive + back(path.normalize(`/${whole.slice(drive.length)}`).replace(/(.)\/$/, "$1")); },
    relative: (from, to) => back(path.relative(`/${forward(from)}`, `/${forward(to)}`)),
    parse: (name) => { const root = /^(?:[A-Za-z]:)?[\\/]?/.exec(name)[0]; const base = win32.basename(name); const ext = path.extname(base); return { root, dir: win32.dirname(name), base, ext, name: ext ? base.slice(0, -ext.length) : base }; },
    format: (parts) => back(path.format(parts)), matchesGlob: (name, pattern) => path.matchesGlob(forward(name), forward(pattern)), toNamespacedPath: (name) => name,
  };
  path.win32 = win32.win32 = win32;
  win32.posix = path;
  return path;
})
