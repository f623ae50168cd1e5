// The parts of the web platform that extensions use, as globals. Evaluated as a function of the native
// functions; returns what the other files need of it.
(function (native, bytes, inspection) {
  "use strict";
  const define = (name, value) =>
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });

  const { well } = bytes;
  const { inspect, format } = inspection;

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

  const log = (level) => (...values) => native.log(level, well(format(...values)));
  define("console", {
    log: log("info"), info: log("info"), warn: log("warn"), error: log("error"), debug: log("debug"), trace: log("debug"),
    dir: log("info"), table: log("info"), group: log("info"), groupEnd() {}, time() {}, timeEnd() {}, timeLog() {},
    assert(condition, ...values) { if (!condition) log("error")("Assertion failed", ...values); },
  });

  // ---- faults. A text of many megabytes in an error would not fit into memory a second time.
  const MAX_FAULT_TEXT = 100_000;
  const shortText = (text) => (text.length > MAX_FAULT_TEXT ? text.slice(0, MAX_FAULT_TEXT) : text);
  const messageOf = (error) => shortText(typeof error.message === "string" ? error.message : String(error.message ?? ""));
  // A stack begins with the error itself, as programs expect that show it alone.
  Error.prepareStackTrace = (error, frames) => {
    let head = "Error";
    try { head = typeof error.message === "string" && error.message.length > MAX_FAULT_TEXT ? `${error.name}: ${messageOf(error)}` : String(error); } catch { /* it has no text */ }
    return [head, ...frames.map((frame) => {
      const place = `${frame.getFileName() ?? "<anonymous>"}:${frame.getLineNumber() ?? 0}:${frame.getColumnNumber() ?? 0}`;
      const name = frame.getFunctionName();
      return name ? `    at ${name} (${place})` : `    at ${place}`;
    })].join("\n");
  };
  const placeIn = (stack) => {
    // The places are at its end.
    for (const line of String(stack ?? "").slice(-MAX_FAULT_TEXT).split("\n")) {
      const found = /^\s*at (?:.*\()?\/(?:.*\/)?([^/()]+:\d+(?::\d+)?)\)?\s*$/.exec(line);
      if (found) return found[1];
    }
    return undefined;
  };
  function describe(error) {
    if (error instanceof Error) {
      const name = error.name || "Error";
      const message = messageOf(error);
      return { message: well(message ? `${name}: ${message}` : name), place: placeIn(error.stack), text: message ? well(message) : undefined };
    }
    return { message: well(shortText(typeof error === "string" ? error : inspect(error))) };
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
  const { binary, decodeText, Buffer, TextEncoder, TextDecoder } = bytes;
  define("btoa", (text) => native.toBase64(String(text)));
  define("atob", (text) => binary(native.fromBase64(String(text).replace(/[\t\n\f\r ]/g, ""))));

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

  class MessageEvent extends Event { constructor(type, options = {}) { super(type); this.data = options.data ?? null; } }
  class ErrorEvent extends Event { constructor(type, options = {}) { super(type); this.error = options.error; this.message = options.message ?? ""; } }
  // Two ends: what is put in at one comes out at the other.
  class MessagePort extends EventTarget {
    onmessage = null; #other; #isClosed = false;
    static pair() { const [one, other] = [new MessagePort(), new MessagePort()]; one.#other = other; other.#other = one; return [one, other]; }
    postMessage(value) { const data = structuredClone(value); const other = this.#other; if (other && !this.#isClosed && !other.#isClosed) setTimeout(() => { if (!other.#isClosed) other.dispatchEvent(new MessageEvent("message", { data })); }, 0); }
    on(name, handler) { this.addEventListener(name, (event) => handler(event.data)); return this; }
    once(name, handler) { this.addEventListener(name, (event) => handler(event.data), { once: true }); return this; }
    off() { return this; } start() {} ref() {} unref() {}
    close() { this.#isClosed = true; }
  }
  class MessageChannel { constructor() { [this.port1, this.port2] = MessagePort.pair(); } }
  const navigator = { userAgent: "Node.js/22", language: "en-US", languages: ["en-US"], get hardwareConcurrency() { return JSON.parse(native.now("os.info", "null")).cpus; }, get platform() { return JSON.parse(native.now("process.platform", "null")); } };
  const globals = { MessageEvent, ErrorEvent, MessagePort, MessageChannel, navigator, Event, CustomEvent, EventTarget, DOMException, AbortSignal, AbortController, TextEncoder, TextDecoder, Buffer, URL, URLSearchParams, structuredClone, crypto, performance };
  for (const [name, value] of Object.entries(globals)) define(name, value);
  define("global", globalThis);
  return { Buffer, binary, decodeText, wholeLength: bytes.wholeLength, describe, report, inspect, format, fire, uuid, well, define };
})
