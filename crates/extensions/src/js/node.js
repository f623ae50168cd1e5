// The modules of Node that extensions import, as far as a host can serve them. Evaluated as a
// function; returns all built-in modules by name.
(function (native, platform, parts, evaluatePart) {
  "use strict";
  const { Buffer, binary, decodeText, inspect, format, define } = platform;
  const now = (name, args) => JSON.parse(native.now(name, JSON.stringify(args ?? null))) ?? undefined;

  const path = parts.path();

  // ---- process
  // What the extension sets is its own: it sees it, and so do programs that it starts.
  const ownVariables = new Map();
  const environment = () => {
    const all = now("process.env") ?? {};
    for (const [name, value] of ownVariables) if (value === undefined) delete all[name]; else all[name] = value;
    return all;
  };
  platform.usualVariables = () => now("process.env") ?? {};
  platform.ownVariables = () => Object.fromEntries([...ownVariables].filter(([, value]) => value !== undefined));
  const process = {
    env: new Proxy({}, {
      get: (_target, name) => (typeof name === "string" ? environment()[name] : undefined),
      has: (_target, name) => name in environment(),
      ownKeys: () => Object.keys(environment()),
      getOwnPropertyDescriptor: (_target, name) => { const value = environment()[name]; return value === undefined ? undefined : { value, enumerable: true, configurable: true, writable: true }; },
      set: (_target, name, value) => { ownVariables.set(String(name), String(value)); return true; },
      defineProperty: (_target, name, { value }) => { ownVariables.set(String(name), String(value)); return true; },
      deleteProperty: (_target, name) => { ownVariables.set(String(name), undefined); return true; },
    }),
    cwd: () => now("cwd"),
    get platform() { return now("process.platform"); },
    get arch() { return now("process.arch"); },
    get pid() { return now("process.info").pid; }, get ppid() { return now("process.info").ppid; }, argv: ["hardpan"], argv0: "hardpan", execPath: "hardpan", execArgv: [], exitCode: undefined,
    version: "v22.0.0", versions: { node: "22.0.0" },
    stdout: { write: (text) => { native.log("info", platform.well(text)); return true; }, fd: 1, isTTY: false, columns: 80, rows: 24, writable: true, on() { return this; }, once() { return this; }, off() { return this; }, removeListener() { return this; }, emit: () => false, end() {}, getColorDepth: () => 1, hasColors: () => false, getWindowSize: () => [80, 24] },
    stderr: { write: (text) => { native.log("error", platform.well(text)); return true; }, fd: 2, isTTY: false, columns: 80, rows: 24, writable: true, on() { return this; }, once() { return this; }, off() { return this; }, removeListener() { return this; }, emit: () => false, end() {}, getColorDepth: () => 1, hasColors: () => false, getWindowSize: () => [80, 24] },
    nextTick: (callback, ...values) => queueMicrotask(() => callback(...values)),
    hrtime: Object.assign((before) => { const ms = native.elapsed(); const time = [Math.floor(ms / 1000), Math.floor((ms % 1000) * 1e6)]; return before ? [time[0] - before[0], time[1] - before[1]] : time; }, { bigint: () => BigInt(Math.floor(native.elapsed() * 1e6)) }),
    uptime: () => native.elapsed() / 1000,
    memoryUsage: Object.assign(() => { const rss = now("process.info").rss; return { rss, heapTotal: rss, heapUsed: rss, external: 0, arrayBuffers: 0 }; }, { rss: () => now("process.info").rss }),
    availableMemory: () => os.freemem(), constrainedMemory: () => 0, resourceUsage: () => ({ userCPUTime: 0, systemCPUTime: 0, maxRSS: now("process.info").rss / 1024 }),
    title: "hardpan", release: { name: "node" }, features: {}, config: {}, report: {}, debugPort: 0, umask: () => 0o22, getuid: () => now("process.info").uid, geteuid: () => now("process.info").uid, getgid: () => now("process.info").gid, getegid: () => now("process.info").gid, getgroups: () => [now("process.info").gid],
    getBuiltinModule: (name) => { const plain = String(name).replace(/^node:/, ""); return moduleOf.isBuiltin(plain) ? builtIn(plain) : undefined; }, cpuUsage: () => ({ user: 0, system: 0 }), chdir() { throw new Error("process.chdir() is not available in an extension"); },
    get stdin() { return nobody(); },
    emitWarning: (text) => native.log("warn", platform.well(text)),
    exit() { throw new Error("process.exit() is not available in an extension"); },
    abort() { throw new Error("process.abort() is not available in an extension"); },
    // Programs that the extension started can be ended; of others, it can be asked whether they are there.
    kill(pid, signal = "SIGTERM") {
      const child = platform.children.get(Math.abs(Number(pid)));
      const absent = (code, errno) => Object.assign(new Error(`kill ${code}`), { code, errno, syscall: "kill" });
      if (child) { if (signal !== 0 && !child.kill(signal)) throw absent("ESRCH", -3); return true; }
      if (!now("process.isAlive", { pid: Number(pid) })) throw absent("ESRCH", -3);
      if (signal !== 0) throw absent("EPERM", -1);
      return true;
    },
  };
  define("process", process);
  // Nobody types into it.
  let standardInput;
  const nobody = () => (standardInput ??= Object.assign(new (streams().stream.Readable)({ read() { this.push(null); } }), { fd: 0, isTTY: false, isRaw: false, setRawMode() { return standardInput; }, ref() {}, unref() {} }));

  // ---- events
  // A function instead of a class: packages of CommonJS call it on objects of their own.
  const handlersOf = Symbol("handlers");
  function EventEmitter() { if (!new.target && !this) throw new TypeError("EventEmitter needs an object"); }
  const listOf = (emitter, name) => emitter[handlersOf]?.get(name) ?? [];
  const setList = (emitter, name, list) => {
    if (!Object.hasOwn(emitter, handlersOf)) Object.defineProperty(emitter, handlersOf, { value: new Map() });
    if (list.length) emitter[handlersOf].set(name, list); else emitter[handlersOf].delete(name);
    return emitter;
  };
  const onceOnly = (emitter, name, handler) => { const once = (...values) => { emitter.off(name, once); return handler.apply(emitter, values); }; once.listener = handler; return once; };
  const emitterMethods = {
    on(name, handler) { if (listOf(this, "newListener").length) this.emit("newListener", name, handler); return setList(this, name, [...listOf(this, name), handler]); },
    addListener(name, handler) { return this.on(name, handler); },
    prependListener(name, handler) { return setList(this, name, [handler, ...listOf(this, name)]); },
    once(name, handler) { return this.on(name, onceOnly(this, name, handler)); },
    prependOnceListener(name, handler) { return this.prependListener(name, onceOnly(this, name, handler)); },
    off(name, handler) {
      const list = listOf(this, name);
      const at = list.findLastIndex((known) => known === handler || known.listener === handler);
      return at < 0 ? this : setList(this, name, list.toSpliced(at, 1));
    },
    removeListener(name, handler) { return this.off(name, handler); },
    removeAllListeners(name) { if (name === undefined) this[handlersOf]?.clear(); else this[handlersOf]?.delete(name); return this; },
    emit(name, ...values) {
      const handlers = listOf(this, name);
      if (name === "error" && handlers.length === 0) throw values[0];
      for (const handler of handlers) handler.apply(this, values);
      return handlers.length > 0;
    },
    listeners(name) { return listOf(this, name).map((handler) => handler.listener ?? handler); },
    rawListeners(name) { return [...listOf(this, name)]; },
    listenerCount(name) { return listOf(this, name).length; },
    eventNames() { return [...(this[handlersOf]?.keys() ?? [])]; },
    setMaxListeners() { return this; }, getMaxListeners() { return 10; },
  };
  for (const [name, value] of Object.entries(emitterMethods)) for (const target of [EventEmitter.prototype, process]) Object.defineProperty(target, name, { value, writable: true, configurable: true });
  const nextEvent = (emitter, name, options) => new Promise((resolve, reject) => {
    const listens = typeof emitter.once === "function" ? (event, handler) => emitter.once(event, handler) : (event, handler) => emitter.addEventListener(event, handler, { once: true });
    listens(name, (...values) => resolve(values));
    if (name !== "error") listens("error", reject);
    options?.signal?.addEventListener("abort", () => reject(options.signal.reason), { once: true });
  });
  async function* allEvents(emitter, name, options) {
    const found = [];
    let wake = () => {};
    const keep = (...values) => { found.push(values); wake(); };
    emitter.on(name, keep);
    options?.signal?.addEventListener("abort", () => wake(), { once: true });
    try {
      for (;;) {
        while (found.length) yield found.shift();
        options?.signal?.throwIfAborted();
        await new Promise((resolve) => { wake = resolve; });
      }
    } finally { emitter.off(name, keep); }
  }
  const events = Object.assign(EventEmitter, { EventEmitter, once: nextEvent, on: allEvents, defaultMaxListeners: 10, errorMonitor: Symbol("errorMonitor"), captureRejectionSymbol: Symbol.for("nodejs.rejection"), captureRejections: false, usingDomains: false, init() {}, setMaxListeners() {}, getMaxListeners: () => 10, addAbortListener: (signal, listener) => { signal.addEventListener("abort", listener, { once: true }); return { [Symbol.dispose]() { signal.removeEventListener("abort", listener); } }; }, EventEmitterAsyncResource: EventEmitter, getEventListeners: (emitter, name) => emitter.listeners?.(name) ?? [], listenerCount: (emitter, name) => emitter.listenerCount(name) });

  // ---- util
  const promisify = (work) => work[promisify.custom] ?? ((...values) => new Promise((resolve, reject) => work(...values, (error, value) => (error ? reject(error) : resolve(value)))));
  promisify.custom = Symbol.for("nodejs.util.promisify.custom");
  const tagged = (...tags) => (value) => typeof value === "object" && value !== null && tags.includes(Object.prototype.toString.call(value).slice(8, -1));
  const isView = (kind) => (value) => value instanceof kind;
  const util = {
    promisify, inspect, format,
    stripVTControlCharacters: (text) => platform.helpers.plain(text),
    isDeepStrictEqual: (one, other) => comparisons().isAlike(one, other, true), parseArgs: (options) => comparisons().parseArgs(options),
    formatWithOptions: (_options, ...values) => format(...values), _extend: Object.assign, getSystemErrorName: (errno) => `errno ${errno}`,
    parseEnv: (text) => Object.fromEntries([...String(text).matchAll(/^\s*(?:export\s+)?([\w.-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^#\n]*))/gm)].map(([, name, double, single, plain]) => [name, double?.replaceAll("\\n", "\n") ?? single ?? plain.trim()])),
    isBoolean: (value) => typeof value === "boolean", isNumber: (value) => typeof value === "number", isString: (value) => typeof value === "string", isFunction: (value) => typeof value === "function", isObject: (value) => typeof value === "object" && value !== null, isUndefined: (value) => value === undefined, isNull: (value) => value === null, isNullOrUndefined: (value) => value == null, isError: (value) => value instanceof Error, isRegExp: (value) => value instanceof RegExp, isDate: (value) => value instanceof Date, isPrimitive: (value) => Object(value) !== value, isBuffer: (value) => value instanceof Buffer,
    inherits: (child, parent) => { Object.setPrototypeOf(child.prototype, parent.prototype); }, deprecate: (work) => work,
    debuglog: () => Object.assign(() => {}, { enabled: false }), debug: () => Object.assign(() => {}, { enabled: false }),
    callbackify: (work) => (...values) => { const done = values.pop(); work(...values).then((value) => done(null, value), (error) => done(error)); },
    TextEncoder, TextDecoder,
    styleText: (_style, text) => String(text), toUSVString: platform.well, isArray: Array.isArray, aborted: (signal) => new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true })),
    types: {
      isPromise: (value) => value instanceof Promise, isDate: (value) => value instanceof Date, isRegExp: (value) => value instanceof RegExp, isMap: (value) => value instanceof Map, isSet: (value) => value instanceof Set,
      isNativeError: (value) => value instanceof Error, isUint8Array: (value) => value instanceof Uint8Array, isTypedArray: (value) => ArrayBuffer.isView(value) && !(value instanceof DataView), isArrayBuffer: (value) => value instanceof ArrayBuffer, isAnyArrayBuffer: (value) => value instanceof ArrayBuffer,
      isWeakMap: tagged("WeakMap"), isWeakSet: tagged("WeakSet"), isDataView: tagged("DataView"), isSharedArrayBuffer: tagged("SharedArrayBuffer"), isArgumentsObject: tagged("Arguments"), isGeneratorObject: tagged("Generator", "AsyncGenerator"), isMapIterator: tagged("Map Iterator"), isSetIterator: tagged("Set Iterator"), isModuleNamespaceObject: tagged("Module"),
      isStringObject: (value) => value instanceof String, isNumberObject: (value) => value instanceof Number, isBooleanObject: (value) => value instanceof Boolean, isSymbolObject: tagged("Symbol"), isBigIntObject: tagged("BigInt"), isBoxedPrimitive: (value) => [String, Number, Boolean].some((kind) => value instanceof kind) || tagged("Symbol", "BigInt")(value), isExternal: () => false, isCryptoKey: () => false, isKeyObject: () => false,
      isInt8Array: isView(Int8Array), isInt16Array: isView(Int16Array), isInt32Array: isView(Int32Array), isUint16Array: isView(Uint16Array), isUint32Array: isView(Uint32Array), isUint8ClampedArray: isView(Uint8ClampedArray), isFloat32Array: isView(Float32Array), isFloat64Array: isView(Float64Array), isBigInt64Array: isView(BigInt64Array), isBigUint64Array: isView(BigUint64Array),
      isArrayBufferView: ArrayBuffer.isView, isProxy: () => false, isAsyncFunction: (value) => value?.constructor?.name === "AsyncFunction", isGeneratorFunction: (value) => value?.constructor?.name === "GeneratorFunction",
    },
  };

  // ---- os
  const os = {
    EOL: "\n", devNull: "/dev/null", constants: { signals: { SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGKILL: 9, SIGTERM: 15 }, errno: {}, priority: {} },
    availableParallelism: () => os.cpus().length, machine: () => (process.arch === "arm64" ? "aarch64" : "x86_64"), version: () => "", endianness: () => "LE",
    homedir: () => now("os.homedir"), tmpdir: () => now("os.tmpdir"), hostname: () => now("os.hostname"),
    platform: () => process.platform, arch: () => process.arch, type: () => (process.platform === "darwin" ? "Darwin" : "Linux"),
    release: () => now("os.info").release, cpus: () => Array.from({ length: now("os.info").cpus }, () => ({ model: "", speed: 0, times: { user: 0, nice: 0, sys: 0, idle: 0, irq: 0 } })), totalmem: () => now("os.info").totalmem, freemem: () => now("os.info").freemem, uptime: () => now("os.info").uptime, loadavg: () => now("os.info").loadavg, networkInterfaces: () => ({}), getPriority: () => 0, setPriority() {},
    userInfo: () => ({ username: process.env.USER ?? path.basename(os.homedir()), homedir: os.homedir(), shell: process.env.SHELL ?? null, uid: process.getuid(), gid: process.getgid() }),
  };

  // ---- url
  const url = {
    URL, URLSearchParams,
    fileURLToPath(address) {
      const parsed = typeof address === "string" ? new URL(address) : address;
      if (parsed.protocol !== "file:") throw new TypeError("The URL must be of scheme file");
      return decodeURIComponent(parsed.pathname);
    },
    urlToHttpOptions: ({ protocol, hostname, port, pathname, search, hash, href, username, password }) => ({ protocol, hostname, port: port === "" ? undefined : Number(port), path: pathname + search, pathname, search, hash, href, ...(username ? { auth: `${decodeURIComponent(username)}:${decodeURIComponent(password)}` } : {}) }),
    parse(address, readsQuery) {
      let parsed;
      try { parsed = new URL(address); } catch { const [pathname, ...rest] = String(address).split("?"); const query = rest.join("?"); return { href: String(address), protocol: null, host: null, hostname: null, port: null, pathname, path: String(address), search: rest.length ? `?${query}` : null, query: readsQuery ? querystring.parse(query) : rest.length ? query : null, hash: null, auth: null }; }
      const { href, protocol, host, hostname, port, pathname, search, hash, username, password } = parsed;
      return { href, protocol, slashes: true, host, hostname, port: port || null, pathname, path: pathname + search, search: search || null, query: readsQuery ? querystring.parse(search.slice(1)) : search.slice(1) || null, hash: hash || null, auth: username ? `${username}:${password}` : null };
    },
    format: (address) => (typeof address === "string" || address instanceof URL ? String(address) : `${address.protocol ?? ""}${address.protocol ? "//" : ""}${address.host ?? `${address.hostname ?? ""}${address.port ? `:${address.port}` : ""}`}${address.pathname ?? ""}${address.search ?? ""}${address.hash ?? ""}`),
    resolve: (from, to) => String(new URL(to, from)), domainToASCII: (name) => new URL(`http://${name}`).hostname, domainToUnicode: String,
    pathToFileURL: (name) => new URL(`file://${path.resolve(name).split("/").map(encodeURIComponent).join("/")}`),
  };

  const bytesOf = (value, encoding) => (typeof value === "string" ? decodeText(value, encoding) : value);
  const fs = parts.files(native, platform, { url, path, EventEmitter, streams: () => streams().stream, bytesOf, globs: (fs) => evaluatePart("glob")(fs, path) });
  const nodeCrypto = parts.crypto(native, platform, { bytesOf });
  const childProcess = parts.processes(native, platform, { EventEmitter, promisify });

  // ---- small modules
  class StringDecoder {
    #held = new Uint8Array(0);
    constructor(encoding = "utf8") { this.encoding = encoding; }
    write(bytes) {
      const all = Buffer.concat([this.#held, bytes]);
      // What is not whole yet waits for its rest.
      const end = /^base64/i.test(this.encoding) ? all.length - (all.length % 3) : /^(ucs|utf-?16)/i.test(this.encoding) ? all.length & ~1 : /^(hex|latin1|binary|ascii)$/i.test(this.encoding) ? all.length : platform.wholeLength(all);
      this.#held = all.subarray(end);
      return all.subarray(0, end).toString(this.encoding);
    }
    end(bytes) { const text = (bytes ? this.write(bytes) : "") + Buffer.from(this.#held).toString(this.encoding); this.#held = new Uint8Array(0); return text; }
  }
  class AsyncLocalStorage {
    #store; #pending = new Set();
    run(store, work, ...values) {
      const before = this.#store;
      this.#store = store;
      let result;
      try { result = work(...values); } finally { this.#store = before; }
      // The engine does not say what an awaited promise belongs to: while one such work goes on, its store is meant.
      if (typeof result?.then === "function") { const entry = { store }; this.#pending.add(entry); const end = () => { this.#pending.delete(entry); }; Promise.resolve(result).then(end, end); }
      return result;
    }
    enterWith(store) { this.#store = store; }
    exit(work, ...values) { return this.run(undefined, work, ...values); }
    getStore() { return this.#store === undefined && this.#pending.size === 1 ? [...this.#pending][0].store : this.#store; }
    disable() { this.#store = undefined; this.#pending.clear(); }
    static bind(work) { return work; }
    static snapshot() { return (work, ...values) => work(...values); }
  }
  const unescape = (text) => { try { return decodeURIComponent(text); } catch { return text; } };
  const querystring = {
    parse(text, separator = "&", equals = "=") {
      const values = Object.create(null);
      for (const pair of String(text).split(separator).filter(Boolean)) {
        const at = pair.indexOf(equals);
        const [name, value] = (at < 0 ? [pair, ""] : [pair.slice(0, at), pair.slice(at + equals.length)]).map((part) => unescape(part.replaceAll("+", " ")));
        values[name] = name in values ? [values[name], value].flat() : value;
      }
      return values;
    },
    stringify: (values, separator = "&", equals = "=") => Object.entries(values ?? {}).flatMap(([name, value]) => [value].flat().map((item) => `${encodeURIComponent(name)}${equals}${encodeURIComponent(item ?? "")}`)).join(separator),
    escape: encodeURIComponent, unescape,
  };
  querystring.decode = querystring.parse;
  querystring.encode = querystring.stringify;
  // ---- addresses; there are no sockets
  const versionOf = (address) => {
    const text = String(address);
    if (/^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|$)){4}$/.test(text)) return 4;
    const [plainAddress] = text.split("%");
    if (!plainAddress.includes(":") || !/^[0-9a-f:.]+$/i.test(plainAddress)) return 0;
    try { new URL(`http://[${plainAddress}]/`); return 6; } catch { return 0; }
  };
  const groupsOf = (address) => {
    const host = new URL(`http://[${String(address).split("%")[0]}]/`).hostname.slice(1, -1);
    const [head, tail] = host.split("::");
    const parts = (text) => (text ? text.split(":").map((part) => parseInt(part, 16)) : []);
    const [before, after] = [parts(head), parts(tail)];
    return host.includes("::") ? [...before, ...Array(8 - before.length - after.length).fill(0), ...after] : before;
  };
  const numberOf = (address) => (versionOf(address) === 4 ? String(address).split(".").reduce((sum, part) => (sum << 8n) + BigInt(part), 0n) : groupsOf(address).reduce((sum, part) => (sum << 16n) + BigInt(part), 0n));
  class BlockList {
    #ranges = [];
    addAddress(address) { this.addRange(address, address); }
    addRange(first, last) { this.#ranges.push([versionOf(first), numberOf(first), numberOf(last)]); }
    addSubnet(address, prefix) {
      const version = versionOf(address);
      const rest = BigInt((version === 4 ? 32 : 128) - prefix);
      const first = (numberOf(address) >> rest) << rest;
      this.#ranges.push([version, first, first + (1n << rest) - 1n]);
    }
    check(address) {
      const version = versionOf(address);
      if (version === 0) return false;
      const number = numberOf(address);
      return this.#ranges.some(([known, first, last]) => known === version && first <= number && number <= last);
    }
  }
  const net = { BlockList, isIP: versionOf, isIPv4: (address) => versionOf(address) === 4, isIPv6: (address) => versionOf(address) === 6, getDefaultAutoSelectFamily: () => true, setDefaultAutoSelectFamily() {} };

  // A module that is not there, for those that import it and may never use it.
  const absent = (module) => {
    const failing = (name) => new Proxy(class {}, {
      apply() { throw new Error(`node:${module} is not available in an extension (${name})`); },
      construct() { throw new Error(`node:${module} is not available in an extension (${name})`); },
      get: (target, key) => (key === "prototype" || typeof key === "symbol" ? target[key] : failing(`${name}.${key}`)),
    });
    return new Proxy({}, { get: (_target, key) => (typeof key === "symbol" || key === "__esModule" || key === "then" || key === "default" ? undefined : failing(key)), has: () => true });
  };

  // ---- require
  const loaded = new Map();
  function loadFile(file) {
    const known = loaded.get(file);
    if (known) return known.exports;
    const module = { exports: {}, id: file, filename: file, path: path.dirname(file), loaded: false, children: [], paths: [] };
    loaded.set(file, module);
    try {
      if (file.endsWith(".json")) module.exports = JSON.parse(native.readJson(file));
      else native.compile(file).call(module.exports, module.exports, requireFrom(file), module, file, module.path);
    } catch (error) {
      loaded.delete(file);
      throw error;
    }
    module.loaded = true;
    return module.exports;
  }
  function loadModule(file) {
    if (!loaded.has(file)) loaded.set(file, { exports: native.evaluate(file) });
    return loaded.get(file).exports;
  }
  // Larger modules are evaluated when one of them is first asked for.
  const once = (make) => { let made; return () => { if (!made) { made = make(); Object.assign(all, made); } return made; }; };
  const streams = once(() => evaluatePart("streams")(platform, { EventEmitter, promisify, StringDecoder }));
  const connections = once(() => evaluatePart("http")(platform, { EventEmitter, stream: streams().stream, url, net }));
  const comparisons = once(() => evaluatePart("assert")(platform));
  const smallModules = once(() => evaluatePart("small-modules")(native, platform, { EventEmitter, stream: streams().stream }));
  let knownSchemas;
  // The schemas alone, without the other packages.
  function schemaParts() {
    knownSchemas ??= evaluatePart("schemas")();
    all.typebox ??= knownSchemas.typebox;
    return knownSchemas;
  }
  // The packages of published extensions, a third of all that is here: most extensions import their types alone.
  let packages;
  function packageParts() {
    if (packages) return packages;
    const made = (name) => evaluatePart(name)();
    const { helpers, ...modules } = evaluatePart("packages")(native, platform, { schemas: schemaParts(), yaml: made("yaml"), terminal: made("terminal"), sessions: made("sessions") });
    packages = { helpers };
    Object.assign(all, modules);
    evaluatePart("coding-tools")(platform, builtIn);
    evaluatePart("coding-agent")(platform, builtIn);
    packages.models = evaluatePart("models")(platform, builtIn);
    packages.providerParts = evaluatePart("provider-parts")(platform, builtIn);
    Object.assign(packages, evaluatePart("components")(platform, builtIn));
    return packages;
  }
  for (const name of ["helpers", "models", "providerParts", "runCustom", "followWidget"]) Object.defineProperty(platform, name, { get: () => packageParts()[name] });
  const lazyParts = new Map([
    ["typebox", schemaParts],
    ...["coding-agent", "agent-core", "ai", "tui"].map((name) => [name, packageParts]),
    ...["stream", "stream/consumers", "stream/promises", "stream/web"].map((name) => [name, streams]),
    ...["http", "https", "dns", "dns/promises", "tls", "net", "undici"].map((name) => [name, connections]),
    ...["assert", "assert/strict"].map((name) => [name, comparisons]),
    ...["readline", "readline/promises", "zlib", "worker_threads", "console", "constants", "diagnostics_channel", "punycode", "v8", "vm"].map((name) => [name, smallModules]),
  ]);
  for (const name of ["ReadableStream", "WritableStream", "TransformStream", "TextDecoderStream", "TextEncoderStream"]) {
    const put = (value) => define(name, value);
    Object.defineProperty(globalThis, name, { get: () => streams()["stream/web"][name], set: put, configurable: true, enumerable: false });
  }
  const builtIn = (name) => {
    if (name.startsWith("absent:")) return absent(name.slice(7));
    lazyParts.get(name)?.();
    return all[name];
  };
  function requireFrom(base) {
    const locate = (name) => JSON.parse(native.locate(base, String(name)));
    const require = (name) => {
      const { kind, place } = locate(name);
      return kind === "built-in" ? builtIn(place) : kind === "module" ? loadModule(place) : loadFile(place);
    };
    require.resolve = (name) => { const { kind, place } = locate(name); return kind === "built-in" ? String(name) : place; };
    require.cache = {};
    require.main = undefined;
    return require;
  }
  const createRequire = (base) => requireFrom(base instanceof URL || String(base).startsWith("file:") ? url.fileURLToPath(base) : String(base));
  // What `import()` gives: the names, and the whole as `default`.
  const namespace = (content) => {
    if (content === null || (typeof content !== "object" && typeof content !== "function") || content.__esModule) return content;
    return "default" in content ? content : Object.assign(Object.create(null), content, { default: content });
  };

  const pauseFor = (wait, value, options) => new Promise((resolve, reject) => {
    if (options?.signal?.aborted) { reject(options.signal.reason); return; }
    const timer = setTimeout(() => resolve(value), wait);
    options?.signal?.addEventListener("abort", () => { clearTimeout(timer); reject(options.signal.reason); }, { once: true });
  });
  const timersPromises = { setTimeout: pauseFor, setImmediate: (value) => pauseFor(0, value), setInterval: async function* (wait, value) { for (;;) yield await pauseFor(wait, value); }, scheduler: { wait: (wait, options) => pauseFor(wait, undefined, options), yield: () => pauseFor(0) } };
  const moduleOf = { createRequire, register() {}, findSourceMap: () => undefined, builtinModules: [], isBuiltin: (name) => { const plain = String(name).replace(/^node:/, ""); return plain in all || lazyParts.has(plain); } };
  moduleOf.Module = moduleOf;
  const { constants } = os;
  const all = {
    async_hooks: { AsyncLocalStorage, triggerAsyncId: () => 0, executionAsyncResource: () => ({}), AsyncResource: class { runInAsyncScope(work, self, ...values) { return work.apply(self, values); } emitDestroy() { return this; } static bind(work) { return work; } }, executionAsyncId: () => 0, createHook: () => ({ enable() {}, disable() {} }) }, buffer: { Buffer, SlowBuffer: Buffer, Blob: globalThis.Blob, File: globalThis.File, atob, btoa, constants: { MAX_LENGTH: 2147483647, MAX_STRING_LENGTH: 536870888 }, kMaxLength: 2147483647, kStringMaxLength: 536870888, INSPECT_MAX_BYTES: 50, isUtf8: (bytes) => { try { new TextDecoder("utf-8", { fatal: true }).decode(bytes); return true; } catch { return false; } }, isAscii: (bytes) => new Uint8Array(bytes.buffer ?? bytes).every((byte) => byte < 128), transcode: (bytes, from, to) => Buffer.from(Buffer.from(bytes).toString(from), to) }, child_process: childProcess, crypto: nodeCrypto, events, fs, "fs/promises": fs.promises,
    module: moduleOf,
    perf_hooks: { performance, PerformanceObserver: class { observe() {} disconnect() {} }, monitorEventLoopDelay: () => ({ enable() {}, disable() {}, min: 0, max: 0, mean: 0, percentile: () => 0 }) }, querystring, string_decoder: { StringDecoder }, tty: { isatty: () => false, ReadStream: class {}, WriteStream: class {} },
    os, "os/constants": constants, path, "path/posix": path, "path/win32": path.win32, process, timers: { setTimeout, setInterval, setImmediate, clearTimeout, clearInterval, clearImmediate, promises: timersPromises },
    "timers/promises": timersPromises,
    url, util, "util/types": util.types, net,
  };
  return { builtIn, loadFile, namespace };
})
