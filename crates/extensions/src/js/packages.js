// The packages that published extensions import for schemas and helpers. Evaluated as a function;
// returns the modules by name.
(function (native, platform) {
  "use strict";

  // ---- schemas: what an extension writes as Type.Object({…}) is a JSON schema
  const optional = Symbol("optional");
  const schema = (fields, options = {}) => ({ ...fields, ...options });
  const Type = {
    Object(properties, options) {
      const required = Object.keys(properties).filter((name) => !properties[name][optional]);
      return schema({ type: "object", properties, ...(required.length ? { required } : {}) }, options);
    },
    String: (options) => schema({ type: "string" }, options),
    Number: (options) => schema({ type: "number" }, options),
    Integer: (options) => schema({ type: "integer" }, options),
    Boolean: (options) => schema({ type: "boolean" }, options),
    Null: (options) => schema({ type: "null" }, options),
    Array: (items, options) => schema({ type: "array", items }, options),
    Tuple: (items, options) => schema({ type: "array", items, minItems: items.length, maxItems: items.length }, options),
    Union: (anyOf, options) => schema({ anyOf }, options),
    Intersect: (allOf, options) => schema({ allOf }, options),
    Literal: (value, options) => schema({ const: value, type: typeof value }, options),
    Enum: (values, options) => schema({ anyOf: Object.values(values).map((value) => Type.Literal(value)) }, options),
    Record: (_key, value, options) => schema({ type: "object", additionalProperties: value }, options),
    Any: (options) => schema({}, options),
    Unknown: (options) => schema({}, options),
    Never: (options) => schema({ not: {} }, options),
    Unsafe: (fields = {}) => ({ ...fields }),
    Optional: (inner) => Object.defineProperty({ ...inner }, optional, { value: true }),
    Readonly: (inner) => inner,
    Partial(object) {
      const properties = Object.fromEntries(Object.entries(object.properties).map(([name, value]) => [name, Type.Optional(value)]));
      return Type.Object(properties);
    },
    Pick: (object, names) => Type.Object(Object.fromEntries(names.map((name) => [name, object.properties[name]]))),
    Omit: (object, names) => Type.Object(Object.fromEntries(Object.entries(object.properties).filter(([name]) => !names.includes(name)))),
    Composite: (objects) => Type.Object(Object.assign({}, ...objects.map((object) => object.properties))),
    Date: (options) => schema({ type: "string", format: "date-time" }, options),
  };

  // ---- checking values against schemas; numbers and booleans that came as text are taken as meant
  const kindOf = (value) => (value === null ? "null" : Array.isArray(value) ? "array" : typeof value);
  function convert(type, value) {
    if ((type === "number" || type === "integer") && typeof value === "string" && value.trim() !== "" && Number.isFinite(Number(value))) return Number(value);
    if (type === "boolean" && (value === "true" || value === "false")) return value === "true";
    if (type === "string" && (typeof value === "number" || typeof value === "boolean")) return String(value);
    return value;
  }
  const fits = (type, value) =>
    type === "integer" ? Number.isInteger(value) : type === "number" ? typeof value === "number" : kindOf(value) === type;
  function check(wanted, given, path, problems) {
    const say = (message) => { problems.push({ path: path || "root", message }); return given; };
    if (typeof wanted !== "object" || wanted === null) return given;
    let value = given;
    const types = wanted.type === undefined ? [] : [wanted.type].flat();
    if (types.length && !types.some((type) => fits(type, value))) {
      value = types.map((type) => convert(type, value)).find((converted) => types.some((type) => fits(type, converted))) ?? value;
      if (!types.some((type) => fits(type, value))) return say(`must be ${types.join(" or ")}`);
    }
    if ("const" in wanted && value !== wanted.const) return say(`must be ${JSON.stringify(wanted.const)}`);
    if (Array.isArray(wanted.enum) && !wanted.enum.includes(value)) return say(`must be one of ${wanted.enum.map((item) => JSON.stringify(item)).join(", ")}`);
    for (const alternatives of [wanted.anyOf, wanted.oneOf]) {
      if (!Array.isArray(alternatives)) continue;
      const tries = alternatives.map((alternative) => { const found = []; return { value: check(alternative, value, path, found), found }; });
      const good = tries.find(({ found }) => found.length === 0);
      if (!good) return say("must match one of the allowed forms");
      value = good.value;
    }
    for (const part of wanted.allOf ?? []) value = check(part, value, path, problems);
    if (typeof value === "number") {
      if (wanted.minimum !== undefined && value < wanted.minimum) say(`must be >= ${wanted.minimum}`);
      if (wanted.maximum !== undefined && value > wanted.maximum) say(`must be <= ${wanted.maximum}`);
    }
    if (typeof value === "string") {
      if (wanted.minLength !== undefined && value.length < wanted.minLength) say(`must have at least ${wanted.minLength} characters`);
      if (wanted.maxLength !== undefined && value.length > wanted.maxLength) say(`must have at most ${wanted.maxLength} characters`);
      if (wanted.pattern !== undefined && !new RegExp(wanted.pattern, "u").test(value)) say(`must match ${wanted.pattern}`);
    }
    if (Array.isArray(value)) {
      if (wanted.minItems !== undefined && value.length < wanted.minItems) say(`must have at least ${wanted.minItems} items`);
      if (wanted.maxItems !== undefined && value.length > wanted.maxItems) say(`must have at most ${wanted.maxItems} items`);
      const itemSchema = (at) => (Array.isArray(wanted.items) ? wanted.items[at] : wanted.items);
      return value.map((item, at) => check(itemSchema(at), item, `${path}/${at}`, problems));
    }
    if (kindOf(value) === "object" && (wanted.properties || typeof wanted.additionalProperties === "object")) {
      const copy = { ...value };
      const required = wanted.required ?? [];
      for (const name of required) if (copy[name] === undefined) problems.push({ path: `${path}/${name}`, message: "is required" });
      for (const name of Object.keys(copy)) {
        const inner = wanted.properties?.[name] ?? (typeof wanted.additionalProperties === "object" ? wanted.additionalProperties : undefined);
        if (inner === undefined) continue;
        if (copy[name] === null && !required.includes(name) && !accepts(inner, null)) { delete copy[name]; continue; }
        copy[name] = check(inner, copy[name], `${path}/${name}`, problems);
      }
      return copy;
    }
    return value;
  }
  const accepts = (wanted, value) => { const found = []; check(wanted, value, "", found); return found.length === 0; };
  function validate(name, wanted, given) {
    const problems = [];
    const value = check(wanted, given, "", problems);
    if (problems.length === 0) return value;
    const lines = problems.map(({ path, message }) => `  - ${path.replace(/^\//, "").replaceAll("/", ".")}: ${message}`);
    throw new Error(`Validation failed for tool "${name}":\n${lines.join("\n")}\n\nReceived arguments:\n${JSON.stringify(given, null, 2)}`);
  }
  const Value = {
    Check: accepts,
    Errors(wanted, value) { const found = []; check(wanted, value, "", found); return found; },
    Parse(wanted, value) { return validate("value", wanted, value); },
    Convert(wanted, value) { return check(wanted, value, "", []); },
    Clone: (value) => structuredClone(value),
    Clean: (_wanted, value) => value,
    Default: (_wanted, value) => value,
  };
  const typebox = {
    Type, Value,
    Kind: Symbol.for("TypeBox.Kind"),
    TypeCompiler: { Compile: (wanted) => ({ Check: (value) => accepts(wanted, value), Errors: (value) => Value.Errors(wanted, value) }) },
    ...Type, default: Type,
  };
  typebox.Compile = typebox.TypeCompiler.Compile;
  const StringEnum = (values, options) => ({ type: "string", enum: [...values], ...options });

  // ---- widths and texts
  const escapes = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\))/g;
  const plain = (text) => String(text).replace(escapes, "");
  const wide = /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u;
  const visibleWidth = (text) => {
    let width = 0;
    for (const character of plain(text)) width += /\p{Mark}|[\u200b-\u200d\ufe0f]/u.test(character) ? 0 : wide.test(character) ? 2 : 1;
    return width;
  };
  function truncateToWidth(text, width, ellipsis = "…") {
    if (visibleWidth(text) <= width) return String(text);
    const room = Math.max(0, width - visibleWidth(ellipsis));
    let cut = "";
    let used = 0;
    for (const character of plain(text)) {
      const wider = visibleWidth(character);
      if (used + wider > room) break;
      cut += character;
      used += wider;
    }
    return cut + ellipsis;
  }
  function wrapTextWithAnsi(text, width) {
    const lines = [];
    for (const line of String(text).split("\n")) {
      let current = "";
      for (const word of line.split(/(?<= )/)) {
        if (current !== "" && visibleWidth(current + word.trimEnd()) > width) { lines.push(current.trimEnd()); current = ""; }
        let rest = word;
        while (visibleWidth(rest) > width) {
          let part = "";
          for (const character of rest) { if (visibleWidth(part + character) > width) break; part += character; }
          if (part === "") break;
          lines.push(part);
          rest = rest.slice(part.length);
        }
        current += rest;
      }
      lines.push(current.trimEnd());
    }
    return lines;
  }
  const MAX_LINES = 2000;
  const MAX_BYTES = 50 * 1024;
  const byteLength = (text) => native.encode(platform.well(text)).length;
  function truncate(text, options, fromEnd) {
    const maxLines = options.maxLines ?? MAX_LINES;
    const maxBytes = options.maxBytes ?? MAX_BYTES;
    const lines = String(text).split("\n");
    const kept = [];
    let bytes = 0;
    let truncatedBy = null;
    const order = fromEnd ? [...lines].reverse() : lines;
    for (const line of order) {
      const size = byteLength(line) + (kept.length ? 1 : 0);
      if (kept.length >= maxLines) { truncatedBy = "lines"; break; }
      if (bytes + size > maxBytes) { truncatedBy = "bytes"; break; }
      kept.push(line);
      bytes += size;
    }
    if (fromEnd) kept.reverse();
    return {
      content: kept.join("\n"), truncated: truncatedBy !== null, truncatedBy, totalLines: lines.length, totalBytes: byteLength(text),
      outputLines: kept.length, outputBytes: bytes, maxLines, maxBytes, firstLineExceedsLimit: kept.length === 0 && lines.length > 0,
    };
  }
  const formatSize = (bytes) => bytes < 1024 ? `${bytes}B` : bytes < 1048576 ? `${(bytes / 1024).toFixed(1)}KB` : `${(bytes / 1048576).toFixed(1)}MB`;
  function parseFrontmatter(text) {
    const found = /^---\r?\n([\s\S]*?)\r?\n---\r?\n?/.exec(text);
    if (!found) return { frontmatter: {}, body: text };
    const frontmatter = {};
    for (const line of found[1].split(/\r?\n/)) {
      const pair = /^([\w-]+):\s*(.*)$/.exec(line);
      if (pair) frontmatter[pair[1]] = pair[2].replace(/^(["'])(.*)\1$/, "$2");
    }
    return { frontmatter, body: text.slice(found[0].length) };
  }

  // ---- components: they render to lines of text
  class Component {
    // Whoever makes a dialog of components learns which ones there are.
    constructor() { platform.newComponents?.push(this); }
    render() { return []; }
    invalidate() {}
  }
  class Text extends Component {
    constructor(text = "", paddingX = 0) { super(); this.text = String(text ?? ""); this.paddingX = Number(paddingX) || 0; }
    setText(text) { this.text = text; }
    render(width) { return wrapTextWithAnsi(this.text, Math.max(1, width - 2 * this.paddingX)).map((line) => " ".repeat(this.paddingX) + line); }
  }
  class Spacer extends Component { constructor(lines = 1) { super(); this.lines = lines; } render() { return Array(this.lines).fill(""); } }
  class Container extends Component {
    children = [];
    addChild(child) { this.children.push(child); }
    removeChild(child) { this.children = this.children.filter((other) => other !== child); }
    clear() { this.children = []; }
    render(width) { return this.children.flatMap((child) => child.render(width)); }
  }
  class Box extends Container { setBgFn() {} }
  class Markdown extends Text {}

  const plainTheme = new Proxy({}, { get: (_target, name) => name === "fg" || name === "bg" ? (_colour, text) => text : (text) => text });
  const call = (name, args) => { const text = native.now(name, JSON.stringify(args ?? null)); return JSON.parse(text) ?? undefined; };

  const tui = {
    visibleWidth, truncateToWidth, wrapTextWithAnsi, sliceByColumn: (text, from, to) => [...plain(text)].slice(from, to).join(""),
    Text, Spacer, Container, Box, Markdown,
    Key: new Proxy({}, { get: (_target, name) => (/^(ctrl|alt|shift|super)/.test(String(name)) ? (key) => `${String(name).replace(/[A-Z]/g, (letter) => `+${letter.toLowerCase()}`)}+${key}` : String(name)) }),
    fuzzyFilter: (items, query, text) => items.filter((item) => text(item).toLowerCase().includes(query.toLowerCase())),
  };

  const codingAgent = {
    getAgentDir: () => call("agentDir"),
    CONFIG_DIR_NAME: ".pi", DEFAULT_MAX_LINES: MAX_LINES, DEFAULT_MAX_BYTES: MAX_BYTES,
    truncateHead: (text, options = {}) => truncate(text, options, false),
    truncateTail: (text, options = {}) => truncate(text, options, true),
    formatSize, parseFrontmatter, stripFrontmatter: (text) => parseFrontmatter(text).body,
    defineTool: (tool) => tool,
    getMarkdownTheme: () => plainTheme, keyHint: (key, text) => `${key} ${text}`,
    isToolCallEventType: (name, event) => event?.toolName === name,
    isBashToolResult: (event) => event?.toolName === "bash", isReadToolResult: (event) => event?.toolName === "read",
    isEditToolResult: (event) => event?.toolName === "edit", isWriteToolResult: (event) => event?.toolName === "write",
    withFileMutationQueue: async (_path, work) => work(),
  };

  const ai = { StringEnum, Type, uuidv7: platform.uuid, validateToolArguments: (tool, toolCall) => validate(tool.name, tool.parameters, toolCall.arguments) };
  return {
    typebox, "coding-agent": codingAgent, "agent-core": {}, ai, tui,
    helpers: { validate, plainTheme, plain },
  };
})
