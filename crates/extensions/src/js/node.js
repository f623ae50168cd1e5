// The modules of Node that extensions import, as far as a host can serve them. Evaluated as a
// function; returns all built-in modules by name.
(function (native, platform, packages, makeProcesses, evaluatePart) {
  "use strict";
  const { Buffer, binary, decodeText, inspect, format, define } = platform;
  const now = (name, args) => JSON.parse(native.now(name, JSON.stringify(args ?? null))) ?? undefined;

  // ---- path
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

  // ---- process
  const environment = () => now("process.env");
  const process = {
    env: new Proxy({}, {
      get: (_target, name) => (typeof name === "string" ? environment()[name] : undefined),
      has: (_target, name) => name in environment(),
      ownKeys: () => Object.keys(environment()),
      getOwnPropertyDescriptor: (_target, name) => { const value = environment()[name]; return value === undefined ? undefined : { value, enumerable: true, configurable: true }; },
      set: () => true,
    }),
    cwd: () => now("cwd"),
    get platform() { return now("process.platform"); },
    get arch() { return now("process.arch"); },
    pid: 0, argv: ["hardpan"], argv0: "hardpan", execPath: "hardpan", execArgv: [], exitCode: undefined,
    version: "v22.0.0", versions: { node: "22.0.0" },
    stdout: { write: (text) => { native.log("info", platform.well(text)); return true; }, fd: 1, isTTY: false, columns: 80, rows: 24, writable: true, on() { return this; }, once() { return this; }, off() { return this; }, removeListener() { return this; }, emit: () => false, end() {}, getColorDepth: () => 1, hasColors: () => false, getWindowSize: () => [80, 24] },
    stderr: { write: (text) => { native.log("error", platform.well(text)); return true; }, fd: 2, isTTY: false, columns: 80, rows: 24, writable: true, on() { return this; }, once() { return this; }, off() { return this; }, removeListener() { return this; }, emit: () => false, end() {}, getColorDepth: () => 1, hasColors: () => false, getWindowSize: () => [80, 24] },
    nextTick: (callback, ...values) => queueMicrotask(() => callback(...values)),
    hrtime: Object.assign((before) => { const ms = native.elapsed(); const time = [Math.floor(ms / 1000), Math.floor((ms % 1000) * 1e6)]; return before ? [time[0] - before[0], time[1] - before[1]] : time; }, { bigint: () => BigInt(Math.floor(native.elapsed() * 1e6)) }),
    uptime: () => native.elapsed() / 1000,
    memoryUsage: () => ({ rss: 0, heapTotal: 0, heapUsed: 0, external: 0, arrayBuffers: 0 }),
    on() { return process; }, once() { return process; }, off() { return process; }, addListener() { return process; }, removeListener() { return process; }, removeAllListeners() { return process; }, emit: () => false, listenerCount: () => 0, listeners: () => [], setMaxListeners() { return process; },
    title: "hardpan", ppid: 0, release: { name: "node" }, features: {}, config: {}, umask: () => 0o22, getuid: () => -1, geteuid: () => -1, getgid: () => -1, cpuUsage: () => ({ user: 0, system: 0 }), chdir() { throw new Error("process.chdir() is not available in an extension"); },
    get stdin() { return nobody(); },
    emitWarning: (text) => native.log("warn", platform.well(text)),
    exit() { throw new Error("process.exit() is not available in an extension"); },
    kill() { throw new Error("process.kill() is not available in an extension"); },
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
  for (const [name, value] of Object.entries(emitterMethods)) Object.defineProperty(EventEmitter.prototype, name, { value, writable: true, configurable: true });
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
  const events = Object.assign(EventEmitter, { EventEmitter, once: nextEvent, on: allEvents, defaultMaxListeners: 10, errorMonitor: Symbol("errorMonitor"), captureRejectionSymbol: Symbol.for("nodejs.rejection"), setMaxListeners() {}, getEventListeners: (emitter, name) => emitter.listeners?.(name) ?? [], listenerCount: (emitter, name) => emitter.listenerCount(name) });

  // ---- util
  const promisify = (work) => work[promisify.custom] ?? ((...values) => new Promise((resolve, reject) => work(...values, (error, value) => (error ? reject(error) : resolve(value)))));
  promisify.custom = Symbol.for("nodejs.util.promisify.custom");
  inspect.custom = Symbol.for("nodejs.util.inspect.custom");
  const util = {
    promisify, inspect, format,
    stripVTControlCharacters: packages.helpers.plain,
    isDeepStrictEqual: (one, other) => JSON.stringify(one) === JSON.stringify(other),
    inherits: (child, parent) => { Object.setPrototypeOf(child.prototype, parent.prototype); }, deprecate: (work) => work,
    debuglog: () => Object.assign(() => {}, { enabled: false }), debug: () => Object.assign(() => {}, { enabled: false }),
    callbackify: (work) => (...values) => { const done = values.pop(); work(...values).then((value) => done(null, value), (error) => done(error)); },
    TextEncoder, TextDecoder,
    styleText: (_style, text) => String(text), toUSVString: platform.well, isArray: Array.isArray, aborted: (signal) => new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true })),
    types: {
      isPromise: (value) => value instanceof Promise, isDate: (value) => value instanceof Date, isRegExp: (value) => value instanceof RegExp, isMap: (value) => value instanceof Map, isSet: (value) => value instanceof Set,
      isNativeError: (value) => value instanceof Error, isUint8Array: (value) => value instanceof Uint8Array, isTypedArray: (value) => ArrayBuffer.isView(value) && !(value instanceof DataView), isArrayBuffer: (value) => value instanceof ArrayBuffer, isAnyArrayBuffer: (value) => value instanceof ArrayBuffer,
      isArrayBufferView: ArrayBuffer.isView, isProxy: () => false, isAsyncFunction: (value) => value?.constructor?.name === "AsyncFunction", isGeneratorFunction: (value) => value?.constructor?.name === "GeneratorFunction",
    },
  };

  // ---- os
  const os = {
    EOL: "\n", devNull: "/dev/null", constants: { signals: { SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGKILL: 9, SIGTERM: 15 }, errno: {}, priority: {} },
    availableParallelism: () => 1, machine: () => (process.arch === "arm64" ? "aarch64" : "x86_64"), version: () => "", endianness: () => "LE",
    homedir: () => now("os.homedir"), tmpdir: () => now("os.tmpdir"), hostname: () => now("os.hostname"),
    platform: () => process.platform, arch: () => process.arch, type: () => (process.platform === "darwin" ? "Darwin" : "Linux"),
    release: () => "", cpus: () => [], totalmem: () => 0, freemem: () => 0, uptime: () => 0, loadavg: () => [0, 0, 0], networkInterfaces: () => ({}),
    userInfo: () => ({ username: process.env.USER ?? "", homedir: os.homedir(), shell: process.env.SHELL ?? null, uid: -1, gid: -1 }),
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

  // ---- crypto
  const bytesOf = (value, encoding) => (typeof value === "string" ? decodeText(value, encoding) : value);
  const output = (bytes, encoding) => (encoding === undefined || encoding === "buffer" ? Buffer.from(bytes) : Buffer.from(bytes).toString(encoding));
  class Hash {
    #parts = "";
    #finish;
    constructor(finish) { this.#finish = finish; }
    update(value, encoding) { this.#parts += binary(bytesOf(value, encoding)); return this; }
    digest(encoding) { return output(this.#finish(this.#parts), encoding); }
  }
  const algorithm = (name) => String(name).toLowerCase().replace("-", "");
  const nodeCrypto = {
    createHash: (name) => new Hash((text) => native.digest(algorithm(name), text)),
    createHmac: (name, key) => new Hash((text) => native.hmac(algorithm(name), binary(bytesOf(key)), text)),
    hash: (name, value, encoding = "hex") => output(native.digest(algorithm(name), binary(bytesOf(value))), encoding),
    randomUUID: platform.uuid,
    randomBytes: (count) => Buffer.from(native.random(count)),
    randomInt: (low, high) => { const [from, to] = high === undefined ? [0, low] : [low, high]; return from + Math.floor((new DataView(native.random(8).buffer).getUint32(0) / 4294967296) * (to - from)); },
    timingSafeEqual: (one, other) => { let different = one.length ^ other.length; for (let at = 0; at < one.length; at++) different |= one[at] ^ other[at]; return different === 0; },
    webcrypto: crypto, subtle: crypto.subtle, getRandomValues: crypto.getRandomValues,
  };

  // ---- fs: the host decides which files there are
  const fsError = (error) => {
    const found = /^([A-Z]+): /.exec(error.message);
    if (found) error.code = found[1];
    return error;
  };
  const nameOf = (file) => (file instanceof URL ? url.fileURLToPath(file) : typeof file === "string" ? file : Buffer.from(file).toString());
  const ask = (name, args) => { try { return now(`fs.${name}`, args); } catch (error) { throw fsError(error); } };
  const encodingOf = (options) => (typeof options === "string" ? options : options?.encoding);
  class Stats {
    constructor(fields) { Object.assign(this, fields); for (const name of ["mtime", "ctime", "atime", "birthtime"]) this[name] = new Date(fields.mtimeMs); this.ctimeMs = this.atimeMs = this.birthtimeMs = fields.mtimeMs; }
    isFile() { return this.kind === "file"; }
    isDirectory() { return this.kind === "directory"; }
    isSymbolicLink() { return this.kind === "symlink"; }
    isFIFO() { return false; } isSocket() { return false; } isBlockDevice() { return false; } isCharacterDevice() { return false; }
  }
  const statsOf = (fields) => new Stats(fields);
  const contentOf = (value, options) => native.toBase64(binary(bytesOf(value, encodingOf(options))));
  // An open file: its content is read and written as a whole.
  class FileHandle {
    #position = 0;
    constructor(file, flags = "r") {
      this.path = nameOf(file);
      this.appends = flags.startsWith("a");
      const { path: name } = this;
      if (flags.startsWith("w")) ask("writeFile", { path: name, content: "", append: false, exclusive: flags.includes("x") });
      else if (this.appends) ask("writeFile", { path: name, content: "", append: true, exclusive: flags.includes("x") });
      else ask("stat", { path: name, follow: true });
      this.fd = ++lastHandle;
    }
    put(bytes, position) {
      if (this.appends) ask("writeFile", { path: this.path, content: native.toBase64(binary(bytes)), append: true });
      else {
        const at = position ?? this.#position;
        const before = sync.readFile(this.path);
        const whole = Buffer.alloc(Math.max(before.length, at + bytes.length));
        whole.set(before);
        whole.set(bytes, at);
        sync.writeFile(this.path, whole);
        if (position === undefined || position === null) this.#position = at + bytes.length;
      }
      return bytes.length;
    }
    take(target, offset = 0, length = target.length - offset, position = null) {
      const at = position ?? this.#position;
      const bytes = sync.readFile(this.path).subarray(at, at + length);
      target.set(bytes, offset);
      if (position === null) this.#position = at + bytes.length;
      return bytes.length;
    }
    replace(value, options) { sync.writeFile(this.path, value, typeof options === "string" ? options : { encoding: options?.encoding }); }
    async read(target, offset, length, position) {
      const given = ArrayBuffer.isView(target) ? { buffer: target, offset, length, position } : { buffer: Buffer.alloc(16384), ...target };
      return { bytesRead: this.take(given.buffer, given.offset ?? 0, given.length, given.position ?? null), buffer: given.buffer };
    }
    async write(value, ...rest) {
      const bytes = typeof value === "string" ? bytesOf(value, rest[1]) : new Uint8Array(value.buffer, value.byteOffset + (rest[0] ?? 0), rest[1] ?? value.byteLength - (rest[0] ?? 0));
      return { bytesWritten: this.put(bytes, typeof value === "string" ? rest[0] : rest[2]), buffer: value };
    }
    async readFile(options) { return sync.readFile(this.path, options); }
    async writeFile(value, options) { this.replace(value, options); }
    async appendFile(value, options) { this.put(bytesOf(value, encodingOf(options))); }
    async stat() { return sync.stat(this.path); }
    async truncate(length) { sync.truncate(this.path, length); }
    async sync() {} async datasync() {} async chmod() {}
    async close() { handles.delete(this.fd); }
    [Symbol.asyncDispose]() { return this.close(); }
  }
  let lastHandle = 2;
  const handles = new Map();
  const handleOf = (fd) => { const handle = handles.get(fd); if (!handle) throw Object.assign(new Error("EBADF: bad file descriptor"), { code: "EBADF" }); return handle; };
  const sync = {
    readFile(file, options) { if (file instanceof FileHandle) file = file.path; const bytes = native.fromBase64(ask("readFile", { path: nameOf(file) })); const encoding = encodingOf(options); return encoding && encoding !== "buffer" ? Buffer.from(bytes).toString(encoding) : Buffer.from(bytes); },
    writeFile(file, value, options) { if (file instanceof FileHandle) return file.replace(value, options); const flag = String(options?.flag ?? "w"); ask("writeFile", { path: nameOf(file), content: contentOf(value, options), append: flag.startsWith("a"), exclusive: flag.includes("x") }); },
    appendFile(file, value, options) { if (file instanceof FileHandle) return void file.put(bytesOf(value, encodingOf(options))); ask("writeFile", { path: nameOf(file), content: contentOf(value, options), append: true }); },
    stat: (file, options) => { try { return statsOf(ask("stat", { path: nameOf(file), follow: true })); } catch (error) { if (options?.throwIfNoEntry === false && error.code === "ENOENT") return undefined; throw error; } },
    lstat: (file) => statsOf(ask("stat", { path: nameOf(file), follow: false })),
    readdir(file, options) {
      const entries = ask("readdir", { path: nameOf(file), recursive: options?.recursive === true });
      return options?.withFileTypes ? entries.map((entry) => Object.assign(new Stats({ ...entry, mtimeMs: 0 }), { name: entry.name, parentPath: nameOf(file), path: nameOf(file) })) : entries.map(({ name }) => name);
    },
    mkdir: (file, options) => ask("mkdir", { path: nameOf(file), recursive: options?.recursive === true }),
    rm: (file, options) => { try { ask("rm", { path: nameOf(file), recursive: options?.recursive === true }); } catch (error) { if (!(options?.force && error.code === "ENOENT")) throw error; } },
    unlink: (file) => { ask("rm", { path: nameOf(file), recursive: false }); },
    rmdir: (file, options) => { ask("rm", { path: nameOf(file), recursive: options?.recursive === true, folder: true }); },
    rename: (from, to) => { ask("rename", { path: nameOf(from), to: nameOf(to) }); },
    copyFile: (from, to) => { ask("copyFile", { path: nameOf(from), to: nameOf(to) }); },
    realpath: (file) => ask("realpath", { path: nameOf(file) }),
    access: (file) => { ask("stat", { path: nameOf(file), follow: true }); },
    mkdtemp: (prefix) => ask("mkdtemp", { path: nameOf(prefix) }),
    cp(from, to, options) {
      if (!sync.stat(from).isDirectory()) return sync.copyFile(from, to);
      if (!options?.recursive) throw Object.assign(new Error(`EISDIR: ${from} is a folder`), { code: "EISDIR" });
      sync.mkdir(to, { recursive: true });
      for (const name of sync.readdir(from)) sync.cp(path.join(nameOf(from), name), path.join(nameOf(to), name), options);
    },
    truncate: (file, length = 0) => { const bytes = sync.readFile(file); const kept = Buffer.alloc(length); kept.set(bytes.subarray(0, length)); sync.writeFile(file, kept); },
    symlink() { throw Object.assign(new Error("EPERM: links are not available in an extension"), { code: "EPERM" }); },
    link() { throw Object.assign(new Error("EPERM: links are not available in an extension"), { code: "EPERM" }); },
    readlink: (file) => ask("realpath", { path: nameOf(file) }),
    chmod() {}, chown() {}, utimes() {},
  };
  const fs = { constants: { F_OK: 0, R_OK: 4, W_OK: 2, X_OK: 1 }, existsSync: (file) => { try { sync.access(file); return true; } catch { return false; } }, promises: { constants: { F_OK: 0, R_OK: 4, W_OK: 2, X_OK: 1 } } };
  for (const [name, work] of Object.entries(sync)) {
    fs[`${name}Sync`] = work;
    fs.promises[name] = async (...values) => work(...values);
    fs[name] = (...values) => { const done = values.pop(); fs.promises[name](...values).then((value) => done(null, value), (error) => done(error)); };
  }
  fs.promises.open = async (file, flags) => new FileHandle(file, flags);
  fs.openSync = (file, flags) => { const handle = new FileHandle(file, flags); handles.set(handle.fd, handle); return handle.fd; };
  fs.closeSync = (fd) => { handleOf(fd); handles.delete(fd); };
  fs.readSync = (fd, target, offset, length, position) => (typeof offset === "object" && offset !== null ? handleOf(fd).take(target, offset.offset, offset.length, offset.position ?? null) : handleOf(fd).take(target, offset, length, position ?? null));
  fs.writeSync = (fd, value, ...rest) => handleOf(fd).put(typeof value === "string" ? bytesOf(value) : value, typeof value === "string" ? rest[0] : rest[2]);
  fs.fstatSync = (fd) => sync.stat(handleOf(fd).path);
  fs.fsyncSync = () => {};
  // Streams deliver and take the whole content.
  fs.createReadStream = (file, options) => {
    const stream = new (streams().stream.Readable)({
      encoding: encodingOf(options),
      read() {
        const all = sync.readFile(file);
        const part = all.subarray(options?.start ?? 0, options?.end === undefined ? undefined : options.end + 1);
        this.bytesRead = part.length;
        if (part.length) this.push(part);
        this.push(null);
      },
    });
    queueMicrotask(() => { if (fs.existsSync(file)) { stream.emit("open", 0); stream.emit("ready"); } });
    return Object.assign(stream, { path: nameOf(file), bytesRead: 0, close(done) { stream.destroy(); done?.(); } });
  };
  fs.createWriteStream = (file, options) => {
    let handle;
    const stream = new (streams().stream.Writable)({ write(chunk, _encoding, done) { handle ??= new FileHandle(file, options?.flags ?? "w"); stream.bytesWritten += handle.put(chunk); done(); }, final(done) { handle ??= new FileHandle(file, options?.flags ?? "w"); done(); } });
    queueMicrotask(() => { try { handle ??= new FileHandle(file, options?.flags ?? "w"); } catch (error) { stream.destroy(error); return; } stream.emit("open", handle.fd); stream.emit("ready"); });
    return Object.assign(stream, { path: nameOf(file), bytesWritten: 0, close(done) { stream.end(done); } });
  };
  fs.opendirSync = (file) => { const entries = sync.readdir(file, { withFileTypes: true }); let at = 0; return { path: nameOf(file), readSync: () => entries[at++] ?? null, read: async () => entries[at++] ?? null, closeSync() {}, async close() {}, async *[Symbol.asyncIterator]() { yield* entries; } }; };
  fs.promises.opendir = async (file) => fs.opendirSync(file);
  fs.Stats = fs.Dirent = Stats;
  Object.assign(fs.constants, { COPYFILE_EXCL: 1, COPYFILE_FICLONE: 2, O_RDONLY: 0, O_WRONLY: 1, O_RDWR: 2, O_CREAT: 64, O_EXCL: 128, O_TRUNC: 512, O_APPEND: 1024 });
  // The forms with a callback.
  const later = (work) => (...values) => { const done = values.pop(); queueMicrotask(() => { let result; try { result = work(...values); } catch (error) { done(error); return; } done(null, result); }); };
  fs.open = later((file, flags) => fs.openSync(file, flags));
  fs.close = later((fd) => fs.closeSync(fd));
  fs.read = later((...values) => fs.readSync(...values));
  fs.write = later((...values) => fs.writeSync(...values));
  fs.fstat = later((fd) => fs.fstatSync(fd));
  fs.exists = (file, done) => { const found = fs.existsSync(file); queueMicrotask(() => done(found)); };
  fs.watchFile = () => {};
  fs.unwatchFile = () => {};
  fs.watch = () => Object.assign(new EventEmitter(), { close() {}, ref() {}, unref() {} });
  fs.realpathSync.native = fs.realpathSync;

  const childProcess = makeProcesses(native, platform, { EventEmitter, promisify, environment: () => process.env });

  const assert = Object.assign((condition, message) => { if (!condition) throw new Error(message ?? "Assertion failed"); }, {
    ok: (condition, message) => assert(condition, message), equal: (one, other, message) => assert(one == other, message),
    strictEqual: (one, other, message) => assert(one === other, message), deepStrictEqual: (one, other, message) => assert(util.isDeepStrictEqual(one, other), message),
  });
  // ---- small modules
  class StringDecoder {
    #held = new Uint8Array(0);
    constructor(encoding = "utf8") { this.encoding = encoding; }
    write(bytes) {
      const all = Buffer.concat([this.#held, bytes]);
      // A character that is not whole yet waits for its rest.
      let end = all.length;
      for (let back = 1; back <= Math.min(3, all.length); back++) {
        const byte = all[all.length - back];
        if (byte >= 0xc0) { const needs = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2; if (needs > back) end = all.length - back; break; }
        if (byte < 0x80) break;
      }
      this.#held = all.subarray(end);
      return all.subarray(0, end).toString(this.encoding);
    }
    end(bytes) { const text = (bytes ? this.write(bytes) : "") + Buffer.from(this.#held).toString(this.encoding); this.#held = new Uint8Array(0); return text; }
  }
  class AsyncLocalStorage {
    #store;
    run(store, work, ...values) { const before = this.#store; this.#store = store; try { return work(...values); } finally { this.#store = before; } }
    enterWith(store) { this.#store = store; }
    exit(work, ...values) { return this.run(undefined, work, ...values); }
    getStore() { return this.#store; }
    disable() { this.#store = undefined; }
  }
  const querystring = { parse: (text) => Object.fromEntries(new URLSearchParams(text)), stringify: (values) => new URLSearchParams(values).toString(), escape: encodeURIComponent, unescape: decodeURIComponent };
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
  const smallModules = once(() => evaluatePart("small-modules")(native, platform, { EventEmitter, stream: streams().stream }));
  const lazyParts = new Map([
    ...["stream", "stream/consumers", "stream/promises", "stream/web"].map((name) => [name, streams]),
    ...["http", "https", "dns", "dns/promises", "tls", "net", "undici"].map((name) => [name, connections]),
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
  const all = {
    assert, "assert/strict": assert, async_hooks: { AsyncLocalStorage, AsyncResource: class { runInAsyncScope(work, self, ...values) { return work.apply(self, values); } emitDestroy() { return this; } static bind(work) { return work; } }, executionAsyncId: () => 0, createHook: () => ({ enable() {}, disable() {} }) }, buffer: { Buffer, Blob: globalThis.Blob, constants: { MAX_LENGTH: 2147483647 } }, child_process: childProcess, crypto: nodeCrypto, events, fs, "fs/promises": fs.promises,
    module: { createRequire, builtinModules: [], isBuiltin: (name) => { const plain = String(name).replace(/^node:/, ""); return plain in all || lazyParts.has(plain); } },
    perf_hooks: { performance, PerformanceObserver: class { observe() {} disconnect() {} }, monitorEventLoopDelay: () => ({ enable() {}, disable() {}, min: 0, max: 0, mean: 0, percentile: () => 0 }) }, querystring, string_decoder: { StringDecoder }, tty: { isatty: () => false, ReadStream: class {}, WriteStream: class {} },
    os, path, "path/posix": path, process, timers: { setTimeout, setInterval, setImmediate, clearTimeout, clearInterval, clearImmediate },
    "timers/promises": timersPromises,
    url, util, "util/types": util.types, net,
  };
  platform.helpers = packages.helpers;
  delete packages.helpers;
  Object.assign(all, packages);
  return { builtIn, loadFile, namespace };
})
