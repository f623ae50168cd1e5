// Values as text, as `util.inspect`, `util.format` and the console show them. Evaluated as a function.
(function () {
  "use strict";
  const CUSTOM = Symbol.for("nodejs.util.inspect.custom");
  const quote = (text) => {
    const mark = !text.includes("'") ? "'" : !text.includes('"') ? '"' : !text.includes("`") ? "`" : "'";
    return mark + text.replace(/[\\\n\r\t]/g, (character) => ({ "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" })[character]).replaceAll(mark, mark === "'" ? "\\'" : mark) + mark;
  };
  const keyText = (key) => (typeof key === "symbol" ? `[${String(key)}]` : /^[A-Za-z_$][\w$]*$/.test(key) ? key : quote(key));
  const primitive = (value) => (typeof value === "string" ? quote(value) : typeof value === "bigint" ? `${value}n` : Object.is(value, -0) ? "-0" : String(value));
  const tagOf = (value) => Object.prototype.toString.call(value).slice(8, -1);
  const nameOf = (value) => { const made = Object.getPrototypeOf(value); return made === null ? "[Object: null prototype]" : made.constructor?.name || tagOf(value); };
  // On one line if it is short, else each part on its own.
  function joined(parts, open, close, options, indent) {
    if (parts.length === 0) return open + close;
    const whole = parts.join(", ");
    const isShort = options.breakLength === Infinity || (parts.length <= 6 || open.endsWith("[") ? whole.length + open.length + indent <= Math.min(72, options.breakLength) : false);
    if (!whole.includes("\n") && isShort) return `${open} ${whole} ${close}`;
    const space = " ".repeat(indent + 2);
    return `${open}\n${parts.map((part) => space + part).join(",\n")}\n${" ".repeat(indent)}${close}`;
  }
  function show(value, options, depth, indent, seen) {
    if (typeof value === "function") {
      const isClass = /^class\b/.test(Function.prototype.toString.call(value));
      return isClass ? `[class ${value.name || "(anonymous)"}]` : `[Function${value.name ? `: ${value.name}` : " (anonymous)"}]`;
    }
    if (typeof value !== "object" || value === null) return primitive(value);
    if (seen.includes(value)) return "[Circular *1]";
    if (options.customInspect !== false && typeof value[CUSTOM] === "function") {
      const given = value[CUSTOM](options.depth === null ? null : options.depth - depth, options, inspect);
      return typeof given === "string" ? given : show(given, options, depth, indent, [...seen, value]);
    }
    const inner = (item) => show(item, options, depth + 1, indent + 2, [...seen, value]);
    const name = nameOf(value);
    if (value instanceof Error) {
      const extra = Object.keys(value).filter((key) => key !== "stack" && key !== "message");
      const head = value.stack && String(value.stack).includes(value.message) ? value.stack : `${value}${value.stack ? `\n${value.stack}` : ""}`;
      const cause = Object.hasOwn(value, "cause") && !extra.includes("cause") ? [`[cause]: ${inner(value.cause)}`] : [];
      const fields = [...extra.map((key) => `${keyText(key)}: ${inner(value[key])}`), ...cause];
      return fields.length ? `${String(head).trimEnd()} ${joined(fields, "{", "}", options, indent)}` : String(head).trimEnd();
    }
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? "Invalid Date" : value.toISOString();
    if (value instanceof RegExp) return String(value);
    if (value instanceof Promise) return "Promise { <pending> }";
    if (value instanceof WeakMap || value instanceof WeakSet) return `${name} { <items unknown> }`;
    for (const kind of [String, Number, Boolean]) if (value instanceof kind) return `[${kind.name}: ${primitive(value.valueOf())}]`;
    const most = options.maxArrayLength ?? Infinity;
    const cut = (parts, total) => (total > parts.length ? [...parts, `... ${total - parts.length} more item${total - parts.length > 1 ? "s" : ""}`] : parts);
    if (ArrayBuffer.isView(value) && value.constructor?.name === "Buffer") return `<Buffer${Array.from(value.subarray(0, 50), (byte) => ` ${byte.toString(16).padStart(2, "0")}`).join("")}${value.length > 50 ? ` ... ${value.length - 50} more bytes` : ""}>`;
    if (options.depth !== null && depth > options.depth) return Array.isArray(value) ? "[Array]" : `[${name}]`;
    const keys = [...Object.keys(value), ...Object.getOwnPropertySymbols(value).filter((key) => Object.prototype.propertyIsEnumerable.call(value, key))];
    if (options.sorted) keys.sort();
    const field = (key) => {
      const described = Object.getOwnPropertyDescriptor(value, key);
      return `${keyText(key)}: ${described?.get ? (described.set ? "[Getter/Setter]" : "[Getter]") : inner(value[key])}`;
    };
    if (Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView))) {
      const items = [];
      for (let at = 0; at < Math.min(value.length, most); at++) items.push(at in value ? inner(value[at]) : "<1 empty item>");
      const named = keys.filter((key) => typeof key === "symbol" || !/^\d+$/.test(key)).map(field);
      const prefix = Array.isArray(value) && name === "Array" ? "" : `${name}(${value.length}) `;
      return joined([...cut(items, value.length), ...named], `${prefix}[`, "]", options, indent);
    }
    if (value instanceof Map) return joined(cut([...value].slice(0, most).map(([key, item]) => `${inner(key)} => ${inner(item)}`), value.size), `${name}(${value.size}) {`, "}", options, indent);
    if (value instanceof Set) return joined(cut([...value].slice(0, most).map(inner), value.size), `${name}(${value.size}) {`, "}", options, indent);
    return joined(keys.map(field), `${name === "Object" ? "" : `${name} `}{`, "}", options, indent);
  }
  const usual = { depth: 2, breakLength: 80, maxArrayLength: 100 };
  function inspect(value, options, ...older) {
    // Formerly (value, showHidden, depth, colors).
    const given = typeof options === "object" && options !== null ? options : older.length ? { depth: older[0] } : {};
    const all = { ...usual, ...given };
    if (all.depth === Infinity) all.depth = null;
    return show(value, all, 0, 0, []);
  }
  inspect.custom = CUSTOM;
  inspect.defaultOptions = usual;
  inspect.colors = {};
  inspect.styles = {};
  const shown = (value) => (typeof value === "string" ? value : inspect(value));
  function format(...values) {
    if (typeof values[0] !== "string") return values.map(shown).join(" ");
    let at = 1;
    const first = values[0].replace(/%[sdifjoOc%]/g, (mark) => {
      if (mark === "%%") return values.length > 1 ? "%" : mark;
      if (at >= values.length) return mark;
      const value = values[at++];
      switch (mark) {
        case "%c": return "";
        case "%j": try { return JSON.stringify(value); } catch { return "[Circular]"; }
        case "%d": return typeof value === "bigint" ? `${value}n` : typeof value === "object" ? "NaN" : String(Number(value));
        case "%i": return typeof value === "bigint" ? `${value}n` : String(parseInt(value, 10));
        case "%f": return String(parseFloat(value));
        case "%s": return typeof value === "object" && value !== null && !(value instanceof Error) && !Object.hasOwn(value, "toString") && (Object.getPrototypeOf(value)?.toString === Object.prototype.toString || Array.isArray(value)) ? inspect(value, { depth: 0 }) : typeof value === "bigint" ? `${value}n` : String(value);
        default: return inspect(value, mark === "%o" ? { depth: 4 } : undefined);
      }
    });
    return [first, ...values.slice(at).map(shown)].join(" ");
  }
  return { inspect, format };
})
