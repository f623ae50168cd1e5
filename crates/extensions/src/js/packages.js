// The packages that published extensions import for schemas and helpers. Evaluated as a function;
// returns the modules by name.
(function (native, platform, parts) {
  "use strict";
  const { typebox, validate } = parts.schemas;
  const { Type } = typebox;
  const terminal = parts.terminal;
  const { plain, visibleWidth, truncateToWidth, wrapTextWithAnsi } = terminal;
  const { parseFrontmatter } = parts.yaml;

  const StringEnum = (values, options) => ({ type: "string", enum: [...values], ...options });

  // ---- texts
  const MAX_LINES = 2000;
  const MAX_BYTES = 50 * 1024;
  const byteLength = (text) => native.encode(platform.well(text)).length;
  // The end of a text that has so many bytes.
  const tailOf = (text, size) => {
    const bytes = native.encode(platform.well(text));
    let from = Math.max(0, bytes.length - size);
    while (from < bytes.length && (bytes[from] & 0xc0) === 0x80) from++;
    return native.decode(platform.binary(bytes.subarray(from)), false);
  };
  function truncate(text, options, fromEnd) {
    const maxLines = options.maxLines ?? MAX_LINES;
    const maxBytes = options.maxBytes ?? MAX_BYTES;
    const whole = String(text);
    const totalBytes = byteLength(whole);
    // A newline at the end begins no line.
    const lines = whole.split("\n");
    if (lines.length > 1 && lines.at(-1) === "") lines.pop();
    const result = (content, truncatedBy, outputLines, more = {}) => ({ content, truncated: truncatedBy !== null, truncatedBy, totalLines: lines.length, totalBytes, outputLines, outputBytes: byteLength(content), lastLinePartial: false, firstLineExceedsLimit: false, maxLines, maxBytes, ...more });
    if (lines.length <= maxLines && totalBytes <= maxBytes) return result(whole, null, lines.length);
    const kept = [];
    let bytes = 0;
    let truncatedBy = "lines";
    for (const line of fromEnd ? lines.toReversed() : lines) {
      if (kept.length >= maxLines) break;
      const size = byteLength(line) + (kept.length ? 1 : 0);
      if (bytes + size > maxBytes) { truncatedBy = "bytes"; break; }
      kept.push(line);
      bytes += size;
    }
    if (kept.length === 0 && truncatedBy === "bytes") return fromEnd ? result(tailOf(lines.at(-1), maxBytes), "bytes", 1, { lastLinePartial: true }) : result("", "bytes", 0, { firstLineExceedsLimit: true });
    if (fromEnd) kept.reverse();
    return result(kept.join("\n"), truncatedBy, kept.length);
  }
  const formatSize = (bytes) => bytes < 1024 ? `${bytes}B` : bytes < 1048576 ? `${(bytes / 1024).toFixed(1)}KB` : `${(bytes / 1048576).toFixed(1)}MB`;
  // Writers of one file come one after the other.
  const writers = new Map();
  function withFileMutationQueue(file, work) {
    const before = writers.get(file) ?? Promise.resolve();
    const mine = before.then(() => work());
    const end = mine.then(() => {}, () => {});
    writers.set(file, end);
    end.then(() => { if (writers.get(file) === end) writers.delete(file); });
    return mine;
  }

  // ---- components: they render to lines of text
  class Component {
    // Whoever makes a dialog of components learns which ones there are.
    constructor() { platform.newComponents?.push(this); }
    render() { return []; }
    invalidate() {}
  }
  const filled = (line, width, background) => { const whole = line + " ".repeat(Math.max(0, width - visibleWidth(line))); return background ? background(whole) : whole; };
  class Text extends Component {
    constructor(text = "", paddingX = 1, paddingY = 1, background) { super(); this.text = String(text ?? ""); this.paddingX = Number(paddingX) || 0; this.paddingY = Number(paddingY) || 0; this.background = background; }
    setText(text) { this.text = String(text ?? ""); }
    setCustomBgFn(background) { this.background = background; }
    shown() { return this.text; }
    render(width) {
      if (this.shown().trim() === "") return [];
      const margin = " ".repeat(this.paddingX);
      const lines = wrapTextWithAnsi(this.shown().replaceAll("\t", "   "), Math.max(1, width - 2 * this.paddingX)).map((line) => filled(margin + line + margin, width, this.background));
      const blank = Array(this.paddingY).fill(filled("", width, this.background));
      return [...blank, ...lines, ...blank];
    }
  }
  class TruncatedText extends Text {
    constructor(text, paddingX = 0, paddingY = 0) { super(text, paddingX, paddingY); }
    render(width) { const blank = Array(this.paddingY).fill(filled("", width)); const margin = " ".repeat(this.paddingX); return [...blank, filled(margin + truncateToWidth(this.text.split("\n")[0], Math.max(1, width - 2 * this.paddingX)) + margin, width), ...blank]; }
  }
  class Spacer extends Component { constructor(lines = 1) { super(); this.lines = lines; } setLines(lines) { this.lines = lines; } render() { return Array(this.lines).fill(""); } }
  class Container extends Component {
    children = [];
    addChild(child) { this.children.push(child); }
    removeChild(child) { this.children = this.children.filter((other) => other !== child); }
    clear() { this.children = []; }
    invalidate() { for (const child of this.children) child.invalidate?.(); }
    render(width) { return this.children.flatMap((child) => child.render(width)); }
  }
  class Box extends Container {
    constructor(paddingX = 1, paddingY = 1, background) { super(); Object.assign(this, { paddingX, paddingY, background }); }
    setBgFn(background) { this.background = background; }
    render(width) {
      const inner = super.render(Math.max(1, width - 2 * this.paddingX));
      if (inner.length === 0) return [];
      const blank = Array(this.paddingY).fill(filled("", width, this.background));
      return [...blank, ...inner.map((line) => filled(" ".repeat(this.paddingX) + line, width, this.background)), ...blank];
    }
  }
  // As plain text: without the marks of headings, and of what is bold, slanted or code.
  class Markdown extends Text {
    constructor(text, paddingX = 0, paddingY = 0) { super(text, paddingX, paddingY); }
    shown() { return this.text.replace(/^#{1,6}\s+/gm, "").replace(/(\*\*|__)(?=\S)(.+?)\1/g, "$2").replace(/(^|\W)[*_](?=\S)([^*_\n]+)[*_](?=\W|$)/g, "$1$2").replace(/`([^`\n]+)`/g, "$1"); }
  }
  // Children beside each other, or one below the other.
  class VStack extends Container {}
  class HStack extends Container {
    render(width) {
      const each = Math.max(1, Math.floor(width / Math.max(1, this.children.length)));
      const columns = this.children.map((child) => child.render(each));
      return Array.from({ length: Math.max(0, ...columns.map((lines) => lines.length)) }, (_none, row) => columns.map((lines) => filled(lines[row] ?? "", each)).join(""));
    }
  }

const themeFields = { name: "plain", sourcePath: undefined, sourceInfo: undefined, fg: (_colour, text) => text, bg: (_colour, text) => text, getFgAnsi: () => "", getBgAnsi: () => "", getColorMode: () => "256color", getThinkingBorderColor: () => (text) => text, getBashModeBorderColor: () => (text) => text };
  const plainTheme = new Proxy({}, { get: (_target, name) => (name in themeFields ? themeFields[name] : typeof name === "symbol" || name === "then" ? undefined : (text) => text) });
  const call = (name, args) => { const text = native.now(name, JSON.stringify(args ?? null)); return JSON.parse(text) ?? undefined; };

  const { plain: _plain, ...terminalText } = terminal;
  const tui = { ...terminalText, Text, TruncatedText, Spacer, Container, Box, Markdown, VStack, HStack };

  const codingAgent = {
    getAgentDir: () => call("agentDir"),
    CONFIG_DIR_NAME: ".pi", DEFAULT_MAX_LINES: MAX_LINES, DEFAULT_MAX_BYTES: MAX_BYTES,
    truncateHead: (text, options = {}) => truncate(text, options, false),
    truncateTail: (text, options = {}) => truncate(text, options, true),
    formatSize, parseFrontmatter, stripFrontmatter: (text) => parseFrontmatter(text).body,
    defineTool: (tool) => tool,
    getMarkdownTheme: () => plainTheme, theme: plainTheme,
    isToolCallEventType: (name, event) => event?.toolName === name,
    isPowerShellToolResult: () => false,
    withFileMutationQueue,
  };

  // JSON that is still being written: what is open is closed, and what is half written left out.
  function parseStreamingJson(text) {
    const whole = String(text ?? "");
    try { return JSON.parse(whole); } catch { /* not whole yet */ }
    const closing = [];
    let inText = false;
    // The places after which the text is good if everything open is closed.
    const good = [];
    for (let at = 0; at < whole.length; at++) {
      const sign = whole[at];
      if (inText) { if (sign === "\\") at++; else if (sign === '"') { inText = false; good.push([at + 1, closing.join("")]); } continue; }
      if (sign === '"') inText = true;
      else if (sign === "{" || sign === "[") { closing.unshift(sign === "{" ? "}" : "]"); good.push([at + 1, closing.join("")]); } else if (sign === "}" || sign === "]") { closing.shift(); good.push([at + 1, closing.join("")]); } else if (/[\w.]/.test(sign)) good.push([at + 1, closing.join("")]);
    }
    if (inText) try { return JSON.parse(`${whole.replace(/\\(?:u[\da-fA-F]{0,3})?$/, "")}"${closing.join("")}`); } catch { /* the text is a key */ }
    for (const [end, rest] of good.reverse()) try { return JSON.parse(whole.slice(0, end) + rest); } catch { /* further back */ }
    return {};
  }
  const repairJson = (text) => { try { JSON.parse(text); return text; } catch { return JSON.stringify(parseStreamingJson(text)); } };
  const ai = { parseStreamingJson, repairJson, parseJsonWithRepair: (text) => { try { return JSON.parse(text); } catch { return JSON.parse(repairJson(text)); } }, validateToolCall: (tools, toolCall) => { const tool = tools.find((known) => known.name === toolCall.name); if (!tool) throw new Error(`Tool "${toolCall.name}" not found`); return validate(tool.name, tool.parameters, toolCall.arguments); }, getOverflowPatterns: () => [], StringEnum, Type, uuidv7: platform.uuid, validateToolArguments: (tool, toolCall) => validate(tool.name, tool.parameters, toolCall.arguments) };
  return {
    typebox, "coding-agent": codingAgent, "agent-core": {}, ai, tui,
    helpers: { validate, plainTheme, plain, sessions: parts.sessions },
  };
})
