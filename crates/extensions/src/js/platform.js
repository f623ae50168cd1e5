// The parts of the web platform that extensions use, as globals. Evaluated as a function of the native
// functions; returns what the other files need of it.
(function (native) {
  "use strict";
  const define = (name, value) =>
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });

  // ---- searches for long texts. The engine compares at every place and cannot be stopped meanwhile, so that a
  // search that could take seconds is done here, in time that grows with the length of both texts.
  const { apply } = Reflect;
  const { charCodeAt } = String.prototype;
  const unit = (text, at) => apply(charCodeAt, text, [at]);
  const isLongSearch = (text, wanted) =>
    typeof wanted === "string" && wanted.length > 1024 && typeof text === "string" && text.length * wanted.length > 2 ** 36;
  function findLong(text, wanted, from) {
    const borders = new Int32Array(wanted.length);
    for (let at = 1, border = 0; at < wanted.length; at++) {
      while (border > 0 && unit(wanted, at) !== unit(wanted, border)) border = borders[border - 1];
      if (unit(wanted, at) === unit(wanted, border)) border++;
      borders[at] = border;
    }
    for (let at = Math.max(0, Math.trunc(from) || 0), matched = 0; at < text.length; at++) {
      while (matched > 0 && unit(text, at) !== unit(wanted, matched)) matched = borders[matched - 1];
      if (unit(text, at) === unit(wanted, matched)) matched++;
      if (matched === wanted.length) return at - matched + 1;
    }
    return -1;
  }
  const limitSearch = (name, search) => {
    const plain = String.prototype[name];
    const limited = { [name](wanted, other) { return isLongSearch(this, wanted) ? search(`${this}`, wanted, other) : apply(plain, this, [wanted, other]); } }[name];
    Object.defineProperty(String.prototype, name, { value: limited, writable: true, configurable: true });
  };
  limitSearch("indexOf", findLong);
  limitSearch("includes", (text, wanted, from) => findLong(text, wanted, from) >= 0);
  for (const name of ["lastIndexOf", "split", "replace", "replaceAll"]) {
    limitSearch(name, () => { throw new RangeError(`${name}: the text and what is looked for in it are too long together`); });
  }

  // ---- text of values, for the console and for faults
  function inspect(value, depth = 2, seen = new Set()) {
    if (typeof value === "string") return seen.size === 0 ? value : JSON.stringify(value);
    if (typeof value === "function") return `[Function ${value.name || "(anonymous)"}]`;
    if (typeof value === "bigint") return `${value}n`;
    if (typeof value !== "object" || value === null) return String(value);
    if (value instanceof Error) return value.stack ? `${value}\n${value.stack}` : String(value);
    if (seen.has(value)) return "[Circular]";
    if (value instanceof Date) return value.toISOString();
    if (depth < 0) return Array.isArray(value) ? "[Array]" : "[Object]";
    seen.add(value);
    const inner = (item) => inspect(item, depth - 1, seen);
    let text;
    if (Array.isArray(value)) text = `[ ${value.slice(0, 100).map(inner).join(", ")} ]`;
    else if (value instanceof Map)
      text = `Map(${value.size}) { ${[...value].slice(0, 100).map(([k, v]) => `${inner(k)} => ${inner(v)}`).join(", ")} }`;
    else if (value instanceof Set) text = `Set(${value.size}) { ${[...value].slice(0, 100).map(inner).join(", ")} }`;
    else text = `{ ${Object.keys(value).slice(0, 100).map((key) => `${key}: ${inner(value[key])}`).join(", ")} }`;
    seen.delete(value);
    return text;
  }
  function format(...values) {
    if (typeof values[0] !== "string") return values.map((value) => inspect(value)).join(" ");
    let at = 1;
    const first = values[0].replace(/%[sdifjoO%]/g, (mark) => {
      if (mark === "%%") return "%";
      if (at >= values.length) return mark;
      const value = values[at++];
      if (mark === "%d" || mark === "%f") return String(Number(value));
      if (mark === "%i") return String(Math.trunc(Number(value)));
      if (mark === "%j") return JSON.stringify(value);
      return mark === "%s" ? String(value) : inspect(value);
    });
    return [first, ...values.slice(at).map((value) => inspect(value))].join(" ");
  }

  const well = (text) => String(text).toWellFormed();
  const log = (level) => (...values) => native.log(level, well(format(...values)));
  define("console", {
    log: log("info"), info: log("info"), warn: log("warn"), error: log("error"), debug: log("debug"), trace: log("debug"),
    dir: log("info"), table: log("info"), group: log("info"), groupEnd() {}, time() {}, timeEnd() {}, timeLog() {},
    assert(condition, ...values) { if (!condition) log("error")("Assertion failed", ...values); },
  });

  // ---- faults
  const placeIn = (stack) => {
    for (const line of String(stack ?? "").split("\n")) {
      const found = /(?:\(|at )\/(?:.*\/)?([^/()]+:\d+(?::\d+)?)\)?\s*$/.exec(line);
      if (found) return found[1];
    }
    return undefined;
  };
  function describe(error) {
    if (error instanceof Error) {
      const name = error.name || "Error";
      return { message: well(error.message ? `${name}: ${error.message}` : name), place: placeIn(error.stack) };
    }
    return { message: well(typeof error === "string" ? error : inspect(error)) };
  }
  const report = (error) => {
    const { message, place } = describe(error);
    native.fault(message, place ?? null);
  };

  // ---- events and abort signals
  class Event {
    constructor(type, options = {}) { this.type = type; Object.assign(this, options); this.defaultPrevented = false; }
    preventDefault() { this.defaultPrevented = true; }
    stopPropagation() {}
  }
  class CustomEvent extends Event {
    constructor(type, options = {}) { super(type); this.detail = options.detail ?? null; }
  }
  class EventTarget {
    #listeners = new Map();
    addEventListener(type, listener, options) {
      if (!listener) return;
      const once = typeof options === "object" && options !== null && options.once === true;
      const list = this.#listeners.get(type) ?? [];
      if (!list.some((known) => known.listener === listener)) list.push({ listener, once });
      this.#listeners.set(type, list);
    }
    removeEventListener(type, listener) {
      const list = this.#listeners.get(type) ?? [];
      this.#listeners.set(type, list.filter((known) => known.listener !== listener));
    }
    dispatchEvent(event) {
      event.target ??= this;
      for (const { listener, once } of [...(this.#listeners.get(event.type) ?? [])]) {
        if (once) this.removeEventListener(event.type, listener);
        try {
          typeof listener === "function" ? listener.call(this, event) : listener.handleEvent(event);
        } catch (error) {
          report(error);
        }
      }
      const handler = this[`on${event.type}`];
      if (typeof handler === "function") handler.call(this, event);
      return !event.defaultPrevented;
    }
  }
  class DOMException extends Error {
    constructor(message = "", name = "Error") { super(message); this.name = name; }
  }
  const abort = Symbol("abort");
  class AbortSignal extends EventTarget {
    aborted = false;
    reason = undefined;
    onabort = null;
    throwIfAborted() { if (this.aborted) throw this.reason; }
    [abort](reason) {
      if (this.aborted) return;
      this.aborted = true;
      this.reason = reason === undefined ? new DOMException("This operation was aborted", "AbortError") : reason;
      this.dispatchEvent(new Event("abort"));
    }
    static abort(reason) { const signal = new AbortSignal(); signal[abort](reason); return signal; }
    static timeout(milliseconds) {
      const signal = new AbortSignal();
      setTimeout(() => signal[abort](new DOMException("The operation timed out", "TimeoutError")), milliseconds);
      return signal;
    }
    static any(signals) {
      const signal = new AbortSignal();
      for (const other of signals) {
        if (other.aborted) { signal[abort](other.reason); break; }
        other.addEventListener("abort", () => signal[abort](other.reason), { once: true });
      }
      return signal;
    }
  }
  class AbortController {
    signal = new AbortSignal();
    abort(reason) { this.signal[abort](reason); }
  }

  // ---- timers
  let lastTimer = 0;
  const timers = new Map();
  class Timer {
    constructor(id) { this.id = id; }
    ref() { return this; }
    unref() { return this; }
    hasRef() { return false; }
    refresh() { const timer = timers.get(this.id); if (timer) { native.clearTimer(this.id); native.setTimer(this.id, timer.wait); } return this; }
    close() { clearTimer(this); }
    [Symbol.toPrimitive]() { return this.id; }
  }
  function addTimer(callback, wait, repeats, values) {
    if (typeof callback !== "function") throw new TypeError("a timer needs a function");
    const id = ++lastTimer;
    const milliseconds = Number(wait) || 0;
    timers.set(id, { callback, values, repeats, wait: milliseconds });
    native.setTimer(id, milliseconds);
    return new Timer(id);
  }
  function clearTimer(timer) {
    const id = timer instanceof Timer ? timer.id : Number(timer);
    if (timers.delete(id)) native.clearTimer(id);
  }
  function fire(id) {
    const timer = timers.get(id);
    if (!timer) return;
    if (timer.repeats) native.setTimer(id, timer.wait);
    else timers.delete(id);
    try {
      timer.callback(...timer.values);
    } catch (error) {
      report(error);
    }
  }
  const setTimeout = (callback, wait, ...values) => addTimer(callback, wait, false, values);
  define("setTimeout", setTimeout);
  define("setInterval", (callback, wait, ...values) => addTimer(callback, wait, true, values));
  define("setImmediate", (callback, ...values) => addTimer(callback, 0, false, values));
  for (const name of ["clearTimeout", "clearInterval", "clearImmediate"]) define(name, clearTimer);
  define("queueMicrotask", (callback) => void Promise.resolve().then(callback).catch(report));

  // ---- bytes and text
  const binary = (bytes) => {
    const view = ArrayBuffer.isView(bytes)
      ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
      : new Uint8Array(bytes);
    let text = "";
    for (let at = 0; at < view.length; at += 4096) text += String.fromCharCode(...view.subarray(at, at + 4096));
    return text;
  };
  class TextEncoder {
    encoding = "utf-8";
    encode(text = "") { return native.encode(well(text)); }
    encodeInto(text, target) {
      const bytes = this.encode(text).subarray(0, target.length);
      target.set(bytes);
      return { read: text.length, written: bytes.length };
    }
  }
  class TextDecoder {
    #fatal;
    encoding = "utf-8";
    constructor(encoding = "utf-8", options = {}) {
      if (!/^utf-?8$/i.test(encoding)) throw new RangeError(`only UTF-8 can be decoded here, not ${encoding}`);
      this.#fatal = options.fatal === true;
    }
    decode(bytes) { return bytes === undefined ? "" : native.decode(binary(bytes), this.#fatal); }
  }
  define("btoa", (text) => native.toBase64(String(text)));
  define("atob", (text) => binary(native.fromBase64(String(text))));

  class Buffer extends Uint8Array {
    static from(value, encoding, length) {
      if (typeof value === "string") return Buffer.#of(decodeText(value, encoding));
      if (value instanceof ArrayBuffer) return new Buffer(value, encoding ?? 0, length ?? value.byteLength - (encoding ?? 0));
      if (value?.type === "Buffer" && Array.isArray(value.data)) return Buffer.#of(value.data);
      return Buffer.#of(value);
    }
    static #of(bytes) { const buffer = new Buffer(bytes.length); buffer.set(bytes); return buffer; }
    static alloc(size, fill = 0) { const buffer = new Buffer(size); buffer.fill(typeof fill === "string" ? fill.charCodeAt(0) || 0 : fill); return buffer; }
    static allocUnsafe(size) { return new Buffer(size); }
    static isBuffer(value) { return value instanceof Buffer; }
    static byteLength(value, encoding) { return typeof value === "string" ? decodeText(value, encoding).length : value.byteLength; }
    static concat(list, total) {
      const buffer = new Buffer(total ?? list.reduce((sum, item) => sum + item.length, 0));
      let at = 0;
      for (const item of list) { buffer.set(item.subarray(0, buffer.length - at), at); at += item.length; }
      return buffer;
    }
    static compare(one, other) { return one.compare(other); }
    toString(encoding = "utf8", start = 0, end = this.length) {
      const bytes = this.subarray(start, end);
      switch (String(encoding).toLowerCase()) {
        case "hex": return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
        case "base64": return native.toBase64(binary(bytes));
        case "base64url": return native.toBase64(binary(bytes)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
        case "latin1": case "binary": return binary(bytes);
        case "ascii": return binary(bytes.map((byte) => byte & 127));
        default: return native.decode(binary(bytes), false);
      }
    }
    toJSON() { return { type: "Buffer", data: Array.from(this) }; }
    equals(other) { return this.length === other.length && this.every((byte, at) => byte === other[at]); }
    compare(other) {
      for (let at = 0; at < Math.min(this.length, other.length); at++) {
        if (this[at] !== other[at]) return this[at] < other[at] ? -1 : 1;
      }
      return Math.sign(this.length - other.length);
    }
    write(text, offset = 0) { const bytes = decodeText(text).subarray(0, this.length - offset); this.set(bytes, offset); return bytes.length; }
    slice(start, end) { return this.subarray(start, end); }
    readUInt8(at = 0) { return this[at]; }
    readUInt32BE(at = 0) { return new DataView(this.buffer, this.byteOffset).getUint32(at); }
    readUInt32LE(at = 0) { return new DataView(this.buffer, this.byteOffset).getUint32(at, true); }
  }
  function decodeText(text, encoding = "utf8") {
    switch (String(encoding).toLowerCase()) {
      case "hex": return Uint8Array.from(text.match(/[0-9a-f]{2}/gi) ?? [], (pair) => parseInt(pair, 16));
      case "base64": case "base64url": return native.fromBase64(text);
      case "latin1": case "binary": case "ascii": return Uint8Array.from(text, (character) => character.charCodeAt(0) & 255);
      default: return native.encode(well(text));
    }
  }

  // ---- addresses
  class URLSearchParams {
    #pairs = [];
    #changed;
    constructor(init = "", changed = () => {}) {
      this.#changed = changed;
      if (typeof init === "string") {
        const decode = (part) => { try { return decodeURIComponent(part.replaceAll("+", " ")); } catch { return part; } };
        for (const pair of init.replace(/^\?/, "").split("&").filter(Boolean)) {
          const at = pair.indexOf("=");
          this.#pairs.push(at < 0 ? [decode(pair), ""] : [decode(pair.slice(0, at)), decode(pair.slice(at + 1))]);
        }
      } else {
        const pairs = typeof init?.[Symbol.iterator] === "function" ? init : Object.entries(init ?? {});
        for (const [name, value] of pairs) this.#pairs.push([String(name), String(value)]);
      }
    }
    get size() { return this.#pairs.length; }
    get(name) { return this.#pairs.find(([known]) => known === name)?.[1] ?? null; }
    getAll(name) { return this.#pairs.filter(([known]) => known === name).map(([, value]) => value); }
    has(name) { return this.#pairs.some(([known]) => known === name); }
    append(name, value) { this.#pairs.push([String(name), String(value)]); this.#changed(); }
    set(name, value) {
      const at = this.#pairs.findIndex(([known]) => known === name);
      const others = this.#pairs.filter(([known], index) => known !== name || index === at);
      if (at < 0) others.push([String(name), String(value)]);
      else others[others.findIndex(([known]) => known === name)] = [String(name), String(value)];
      this.#pairs = others;
      this.#changed();
    }
    delete(name) { this.#pairs = this.#pairs.filter(([known]) => known !== name); this.#changed(); }
    sort() { this.#pairs.sort(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0)); this.#changed(); }
    forEach(visit) { for (const [name, value] of this.#pairs) visit(value, name, this); }
    keys() { return this.#pairs.map(([name]) => name)[Symbol.iterator](); }
    values() { return this.#pairs.map(([, value]) => value)[Symbol.iterator](); }
    entries() { return this.#pairs.map((pair) => [...pair])[Symbol.iterator](); }
    [Symbol.iterator]() { return this.entries(); }
    toString() {
      const encode = (part) => encodeURIComponent(part).replaceAll("%20", "+").replace(/[!'()~]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
      return this.#pairs.map(([name, value]) => `${encode(name)}=${encode(value)}`).join("&");
    }
  }
  class URL {
    #parts;
    searchParams;
    constructor(text, base) {
      this.#parse(String(text), base === undefined ? undefined : String(base));
    }
    #parse(text, base) {
      this.#parts = JSON.parse(native.parseUrl(text, base ?? null));
      this.searchParams = new URLSearchParams(this.#parts.search, () => { this.#replace("search", this.searchParams.toString()); });
    }
    #replace(part, value) {
      const p = { ...this.#parts, [part]: String(value) };
      if (part === "href") return this.#parse(p.href);
      if (part === "host") [p.hostname, p.port = ""] = p.host.split(":");
      const user = p.username ? `${p.username}${p.password ? `:${p.password}` : ""}@` : "";
      const mark = (sign, value) => (value === "" || value === sign ? "" : value.startsWith(sign) ? value : sign + value);
      const slashes = p.hostname || p.protocol.startsWith("file") ? "//" : "";
      this.#parts = JSON.parse(native.parseUrl(
        `${p.protocol.replace(/:?$/, ":")}${slashes}${user}${p.hostname}${p.port ? `:${p.port}` : ""}${p.pathname}${mark("?", p.search)}${mark("#", p.hash)}`, null));
      if (part === "search" && value !== this.searchParams.toString()) this.#parse(this.#parts.href);
    }
    static canParse(text, base) { try { return Boolean(new URL(text, base)); } catch { return false; } }
    static parse(text, base) { try { return new URL(text, base); } catch { return null; } }
    toString() { return this.#parts.href; }
    toJSON() { return this.#parts.href; }
    static {
      for (const part of ["href", "origin", "protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "hash"]) {
        Object.defineProperty(URL.prototype, part, {
          get() { return this.#parts[part]; },
          set(value) { if (part !== "origin") this.#replace(part, value); },
          configurable: true, enumerable: true,
        });
      }
    }
  }

  // ---- copies
  function structuredClone(value) {
    const copies = new Map();
    const copy = (item) => {
      if (typeof item === "function" || typeof item === "symbol") throw new DOMException(`${inspect(item)} could not be cloned.`, "DataCloneError");
      if (typeof item !== "object" || item === null) return item;
      if (copies.has(item)) return copies.get(item);
      const keep = (made) => { copies.set(item, made); return made; };
      if (item instanceof Date) return keep(new Date(item.getTime()));
      if (item instanceof RegExp) return keep(new RegExp(item.source, item.flags));
      if (item instanceof ArrayBuffer) return keep(item.slice(0));
      if (ArrayBuffer.isView(item)) return keep(item instanceof DataView ? new DataView(item.buffer.slice(0)) : Uint8Array.prototype.slice.call(item));
      if (item instanceof Map) { const made = keep(new Map()); for (const [key, value] of item) made.set(copy(key), copy(value)); return made; }
      if (item instanceof Set) { const made = keep(new Set()); for (const value of item) made.add(copy(value)); return made; }
      if (item instanceof Error) {
        const made = keep(Object.create(Object.getPrototypeOf(item)));
        for (const key of ["name", "message", "stack", "cause"]) if (key in item) Object.defineProperty(made, key, { value: copy(item[key]), writable: true, configurable: true });
        return made;
      }
      const made = keep(Array.isArray(item) ? new Array(item.length) : {});
      for (const key of Object.keys(item)) made[key] = copy(item[key]);
      return made;
    };
    return copy(value);
  }

  const uuid = () => {
    const bytes = native.random(16);
    bytes[6] = (bytes[6] & 15) | 64;
    bytes[8] = (bytes[8] & 63) | 128;
    const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
  };
  const crypto = {
    randomUUID: uuid,
    getRandomValues(target) {
      const bytes = new Uint8Array(target.buffer, target.byteOffset, target.byteLength);
      bytes.set(native.random(bytes.length));
      return target;
    },
    subtle: {
      async digest(algorithm, bytes) {
        const name = String(algorithm?.name ?? algorithm).toLowerCase().replace("-", "");
        return native.digest(name, binary(bytes)).buffer;
      },
    },
  };
  const started = Date.now();
  const performance = { timeOrigin: started, now: () => native.elapsed(), mark() {}, measure() {} };

  const globals = { Event, CustomEvent, EventTarget, DOMException, AbortSignal, AbortController, TextEncoder, TextDecoder, Buffer, URL, URLSearchParams, structuredClone, crypto, performance };
  for (const [name, value] of Object.entries(globals)) define(name, value);
  define("global", globalThis);
  return { Buffer, binary, decodeText, describe, report, inspect, format, fire, uuid, well, define };
})
