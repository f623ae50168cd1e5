// Patterns of file names, and the files below a folder that fit. Evaluated as a function of `fs` and `path`.
(function (fs, path) {
  "use strict";
  const MAX_ALTERNATIVES = 1000;
  const MAX_ENTRIES = 200_000;

  // `{a,b}` as its alternatives; braces of other kinds stay as they are.
  function alternatives(pattern) {
    let open = [String(pattern)];
    const done = [];
    while (open.length) {
      if (open.length + done.length > MAX_ALTERNATIVES) throw new RangeError(`the pattern ${pattern} has more than ${MAX_ALTERNATIVES} alternatives`);
      const found = /^(.*?)\{([^{}]*,[^{}]*)\}(.*)$/s.exec(open[0]);
      if (found) open = [...found[2].split(",").map((one) => found[1] + one + found[3]), ...open.slice(1)];
      else done.push(open.shift());
    }
    return [...new Set(done)];
  }
  const isPlain = (segment) => !/[*?[]/.test(segment);
  const sourceOf = (segment) =>
    segment.replace(/\*+|\?|\[[!^]?[^\]]+\]|[.+^${}()|[\]\\]/g, (part) => {
      if (part[0] === "*") return "[^/]*";
      if (part === "?") return "[^/]";
      if (part[0] === "[" && part.length > 1) return part.replace(/^\[!/, "[^").replaceAll("\\", "\\\\");
      return `\\${part}`;
    });
  const segmentsOf = (pattern) => pattern.split("/").filter((segment, at, all) => segment !== "." && segment !== "" && !(segment === "**" && all[at - 1] === "**"));

  // Whether a path as a whole fits.
  function matcher(pattern) {
    const whole = alternatives(pattern).map((one) => {
      const segments = segmentsOf(one);
      return segments.map((segment, at) => {
        const isLast = at === segments.length - 1;
        return segment === "**" ? (isLast ? ".*" : "(?:.*/)?") : sourceOf(segment) + (isLast ? "" : "/");
      }).join("");
    });
    const expression = new RegExp(`^(?:${whole.join("|")})$`, "s");
    return (name) => expression.test(name);
  }

  // What fits below a folder, each folder read once. After each folder comes `undefined`, so that a caller may pause.
  function* walkOne(cwd, pattern, { dot, isLeftOut }, count) {
    const all = segmentsOf(pattern);
    const firstMagic = all.findIndex((segment) => !isPlain(segment));
    const plain = (firstMagic < 0 ? all : all.slice(0, firstMagic)).join("/");
    const begin = pattern.startsWith("/") ? `/${plain}` : plain;
    const root = path.resolve(cwd, begin);
    if (firstMagic < 0) {
      const stats = fs.lstatSync(root, { throwIfNoEntry: false });
      if (stats) yield { name: begin, entry: Object.assign(stats, { name: path.basename(root), parentPath: path.dirname(root) }) };
      return;
    }
    const rest = all.slice(firstMagic).map((segment) => ({ isDeep: segment === "**", showsHidden: dot || segment.startsWith("."), expression: new RegExp(`^${sourceOf(segment)}$`, "s") }));
    // `**` stands for no folder as well.
    const withNext = (places) => { for (const at of places) if (rest[at]?.isDeep) places.add(at + 1); return places; };
    const folders = [[root, begin, withNext(new Set([0]))]];
    if (begin !== "" && folders[0][2].has(rest.length)) yield* walkOne(cwd, begin, { dot, isLeftOut }, count);
    while (folders.length) {
      const [folder, shown, places] = folders.pop();
      let entries;
      try { entries = fs.readdirSync(folder, { withFileTypes: true }); } catch { continue; }
      count.entries += entries.length;
      if (count.entries > MAX_ENTRIES) throw new RangeError(`more than ${MAX_ENTRIES} files were looked at: narrow the pattern or its folder`);
      const below = [];
      for (const entry of entries.sort((one, other) => (one.name < other.name ? -1 : 1))) {
        const name = shown === "" || shown.endsWith("/") ? shown + entry.name : `${shown}/${entry.name}`;
        if (isLeftOut(name, entry)) continue;
        const isHidden = entry.name.startsWith(".");
        const next = new Set();
        let fits = false;
        for (const at of places) {
          const segment = rest[at];
          if (!segment || (isHidden && !segment.showsHidden)) continue;
          if (segment.isDeep) { next.add(at); fits ||= at === rest.length - 1; } else if (segment.expression.test(entry.name)) { next.add(at + 1); fits ||= at === rest.length - 1; }
        }
        if (fits || withNext(next).has(rest.length)) yield { name, entry };
        if (entry.isDirectory() && [...next].some((at) => at < rest.length)) below.push([path.join(folder, entry.name), name, next]);
      }
      folders.push(...below.reverse());
      yield undefined;
    }
  }
  function* walk(patterns, { cwd = process.cwd(), dot = false, exclude } = {}) {
    const folder = cwd instanceof URL ? cwd.pathname : String(cwd);
    const unwanted = Array.isArray(exclude) ? exclude.map(matcher) : [];
    const isLeftOut = typeof exclude === "function" ? (name, entry) => exclude(entry.name, entry) : (name) => unwanted.some((fits) => fits(name));
    const known = new Set();
    const count = { entries: 0 };
    for (const pattern of [patterns].flat().flatMap(alternatives)) {
      for (const found of walkOne(folder, pattern, { dot, isLeftOut }, count)) {
        if (found && known.has(found.name)) continue;
        if (found) known.add(found.name);
        yield found;
      }
    }
  }

  const resultOf = (options) => {
    const exclude = typeof options?.exclude === "function" ? (name, entry) => options.exclude(options.withFileTypes ? entry : name) : options?.exclude;
    return [{ cwd: options?.cwd, exclude }, (found) => (options?.withFileTypes ? found.entry : found.name)];
  };
  const FOLDERS_WITHOUT_PAUSE = 50;
  // The same with pauses in which the extension does other things.
  async function* walkSlowly(patterns, options) {
    let folders = 0;
    for (const found of walk(patterns, options)) {
      if (found) yield found;
      else if (++folders % FOLDERS_WITHOUT_PAUSE === 0) await new Promise((resolve) => setTimeout(resolve, 0));
    }
  }
  async function* globLater(pattern, options) {
    const [given, shown] = resultOf(options);
    for await (const found of walkSlowly(pattern, given)) yield shown(found);
  }
  function globSync(pattern, options) {
    const [given, shown] = resultOf(options);
    return [...walk(pattern, given)].filter(Boolean).map(shown);
  }
  return { globSync, globLater, walkSlowly, matcher };
})
