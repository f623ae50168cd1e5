// `node:fs`: the host decides which files there are. Evaluated as a function.
(function (native, platform, parts) {
  "use strict";
  const { Buffer, binary } = platform;
  const { url, path, EventEmitter, streams, bytesOf } = parts;
  const now = (name, args) => JSON.parse(native.now(name, JSON.stringify(args ?? null))) ?? undefined;
  const ERRORS = { ENOENT: [-2, "no such file or directory"], EEXIST: [-17, "file already exists"], ENOTDIR: [-20, "not a directory"], EISDIR: [-21, "illegal operation on a directory"], ENOTEMPTY: [-39, "directory not empty"], EACCES: [-13], EIO: [-5], EINVAL: [-22], EPERM: [-1] };
  const CALLS = { readFile: "open", writeFile: "open", readdir: "scandir", copyFile: "copyfile", realpath: "lstat", rm: "unlink" };
  // With the fields and, where the system is the reason, the words that programs look for.
  const fsError = (error, name, args) => {
    const code = /^([A-Z]+): /.exec(error.message)?.[1];
    if (!code) return error;
    const [errno, text] = ERRORS[code] ?? [];
    const syscall = args?.follow === false ? "lstat" : args?.folder ? "rmdir" : CALLS[name] ?? name;
    if (text) error.message = `${code}: ${text}, ${syscall} '${args?.path}'${args?.to === undefined ? "" : ` -> '${args.to}'`}`;
    return Object.assign(error, { code, errno, syscall, path: args?.path, ...(args?.to === undefined ? {} : { dest: args.to }) });
  };
  const nameOf = (file) => (file instanceof URL ? url.fileURLToPath(file) : typeof file === "string" ? file : Buffer.from(file).toString());
  const ask = (name, args) => { try { return now(`fs.${name}`, args); } catch (error) { throw fsError(error, name, args); } };
  const encodingOf = (options) => (typeof options === "string" ? options : options?.encoding);
  class Stats {
    constructor(fields) {
      Object.assign(this, { dev: 0, ino: 0, nlink: 1, uid: 0, gid: 0, rdev: 0, blksize: 4096, blocks: Math.ceil((fields.size ?? 0) / 512), mode: 0 }, fields);
      for (const name of ["mtime", "ctime", "atime", "birthtime"]) { this[`${name}Ms`] ??= fields.mtimeMs; this[name] = new Date(this[`${name}Ms`]); }
    }
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
    async sync() {} async datasync() {}
    async chmod(mode) { sync.chmod(this.path, mode); }
    async utimes(accessed, changed) { sync.utimes(this.path, accessed, changed); }
    async close() { handles.delete(this.fd); }
    [Symbol.asyncDispose]() { return this.close(); }
  }
  let lastHandle = 2;
  const handles = new Map();
  const handleOf = (fd) => { const handle = handles.get(fd); if (!handle) throw Object.assign(new Error("EBADF: bad file descriptor"), { code: "EBADF" }); return handle; };
  const sync = {
    readFile(file, options) { if (file instanceof FileHandle) file = file.path; const bytes = native.fromBase64(ask("readFile", { path: nameOf(file) })); const encoding = encodingOf(options); return encoding && encoding !== "buffer" ? Buffer.from(bytes).toString(encoding) : Buffer.from(bytes); },
    writeFile(file, value, options) { if (file instanceof FileHandle) return file.replace(value, options); const flag = String(options?.flag ?? "w"); ask("writeFile", { path: nameOf(file), content: contentOf(value, options), append: flag.startsWith("a"), exclusive: flag.includes("x"), mode: modeOf(options?.mode) }); },
    appendFile(file, value, options) { if (file instanceof FileHandle) return void file.put(bytesOf(value, encodingOf(options))); ask("writeFile", { path: nameOf(file), content: contentOf(value, options), append: true, mode: modeOf(options?.mode) }); },
    stat: (file, options) => { try { return statsOf(ask("stat", { path: nameOf(file), follow: true })); } catch (error) { if (options?.throwIfNoEntry === false && error.code === "ENOENT") return undefined; throw error; } },
    lstat: (file, options) => { try { return statsOf(ask("stat", { path: nameOf(file), follow: false })); } catch (error) { if (options?.throwIfNoEntry === false && error.code === "ENOENT") return undefined; throw error; } },
    readdir(file, options) {
      const entries = ask("readdir", { path: nameOf(file), recursive: options?.recursive === true });
      return options?.withFileTypes ? entries.map((entry) => Object.assign(new Stats({ ...entry, mtimeMs: 0 }), { name: entry.name, parentPath: nameOf(file), path: nameOf(file) })) : entries.map(({ name }) => name);
    },
    mkdir: (file, options) => ask("mkdir", { path: nameOf(file), recursive: options?.recursive === true }) ?? undefined,
    rm: (file, options) => { try { ask("rm", { path: nameOf(file), recursive: options?.recursive === true }); } catch (error) { if (!(options?.force && error.code === "ENOENT")) throw error; } },
    unlink: (file) => { ask("rm", { path: nameOf(file), recursive: false }); },
    rmdir: (file, options) => { ask("rm", { path: nameOf(file), recursive: options?.recursive === true, folder: true }); },
    rename: (from, to) => { ask("rename", { path: nameOf(from), to: nameOf(to) }); },
    copyFile: (from, to, flags = 0) => { if (flags & 1 && fs.existsSync(to)) throw fsError(new Error("EEXIST: "), "copyFile", { path: nameOf(from), to: nameOf(to) }); ask("copyFile", { path: nameOf(from), to: nameOf(to) }); },
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
    chmod: (file, mode) => { ask("chmod", { path: nameOf(file), mode: modeOf(mode) }); },
    utimes: (file, _accessed, changed) => { ask("utimes", { path: nameOf(file), time: typeof changed === "object" ? changed.getTime() : 1000 * Number(changed) }); },
    chown() {}, lchown() {}, lutimes() {}, lchmod() {},
  };
  const modeOf = (mode) => (mode === undefined || mode === null ? undefined : typeof mode === "string" ? parseInt(mode, 8) : Number(mode));
  const fs = { F_OK: 0, R_OK: 4, W_OK: 2, X_OK: 1, constants: { F_OK: 0, R_OK: 4, W_OK: 2, X_OK: 1 }, existsSync: (file) => { try { sync.access(file); return true; } catch { return false; } }, promises: { constants: { F_OK: 0, R_OK: 4, W_OK: 2, X_OK: 1 } } };
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
  for (const name of ["fsync", "fdatasync", "fchmod", "fchown", "futimes"]) { fs[`${name}Sync`] = (fd) => { handleOf(fd); }; fs[name] = (...values) => { const done = values.pop(); queueMicrotask(() => done(null)); }; }
  fs.ftruncateSync = (fd, length) => sync.truncate(handleOf(fd).path, length);
  fs.ftruncate = (fd, ...values) => { const done = values.pop(); queueMicrotask(() => { fs.ftruncateSync(fd, values[0]); done(null); }); };
  fs.writevSync = (fd, list) => list.reduce((sum, part) => sum + handleOf(fd).put(part), 0);
  fs.opendir = (file, ...values) => { const done = values.pop(); queueMicrotask(() => { let folder; try { folder = fs.opendirSync(file); } catch (error) { done(error); return; } done(null, folder); }); };
  fs.openAsBlob = async (file) => new Blob([sync.readFile(file)]);
  // Streams deliver and take the whole content.
  fs.createReadStream = (file, options) => {
    const stream = new (streams().Readable)({
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
    const stream = new (streams().Writable)({ write(chunk, _encoding, done) { handle ??= new FileHandle(file, options?.flags ?? "w"); stream.bytesWritten += handle.put(chunk); done(); }, final(done) { handle ??= new FileHandle(file, options?.flags ?? "w"); done(); } });
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
  // ---- changes of files: looked at every second
  const WATCHED_ENTRIES = 500;
  const stateOf = (file, isDeep) => {
    const state = new Map();
    let stats;
    try { stats = sync.stat(file); } catch { return state; }
    state.set("", `${stats.mtimeMs} ${stats.size}`);
    if (!stats.isDirectory()) return state;
    let names = [];
    try { names = sync.readdir(file, { recursive: isDeep }); } catch { return state; }
    for (const name of names.slice(0, WATCHED_ENTRIES)) try { const inner = sync.stat(path.join(nameOf(file), name)); state.set(name, inner.isDirectory() ? "folder" : `${inner.mtimeMs} ${inner.size}`); } catch { /* gone meanwhile */ }
    return state;
  };
  function follow(file, isDeep, wait, tell) {
    let before = stateOf(file, isDeep);
    return setInterval(() => {
      const after = stateOf(file, isDeep);
      const isFolder = after.size > 1 || before.size > 1;
      for (const name of new Set([...before.keys(), ...after.keys()])) {
        if (before.get(name) === after.get(name) || (name === "" && isFolder)) continue;
        tell(before.has(name) && after.has(name) ? "change" : "rename", name === "" ? path.basename(nameOf(file)) : name);
      }
      before = after;
    }, wait);
  }
  fs.watch = (file, options, listener = typeof options === "function" ? options : undefined) => {
    // One that is not there yet is told of when it is.
    const watcher = new EventEmitter();
    if (listener) watcher.on("change", listener);
    const timer = follow(file, options?.recursive === true, 1000, (kind, name) => watcher.emit("change", kind, name));
    const close = () => { clearInterval(timer); watcher.emit("close"); };
    options?.signal?.addEventListener("abort", close, { once: true });
    return Object.assign(watcher, { close, ref: () => watcher, unref: () => watcher });
  };
  fs.promises.watch = async function* (file, options) {
    const found = [];
    let wake = () => {};
    const watcher = fs.watch(file, options, (eventType, filename) => { found.push({ eventType, filename }); wake(); });
    options?.signal?.addEventListener("abort", () => wake(), { once: true });
    try {
      for (;;) {
        while (found.length) yield found.shift();
        options?.signal?.throwIfAborted();
        await new Promise((resolve) => { wake = resolve; });
      }
    } finally { watcher.close(); }
  };
  const watched = new Map();
  const none = () => new Stats({ size: 0, kind: "none", mtimeMs: 0 });
  fs.watchFile = (file, options, listener = options) => {
    const name = nameOf(file);
    const look = () => sync.stat(name, { throwIfNoEntry: false }) ?? none();
    let before = look();
    const timer = setInterval(() => { const after = look(); if (after.mtimeMs !== before.mtimeMs || after.size !== before.size) { const earlier = before; before = after; listener(after, earlier); } }, Math.max(1000, options?.interval ?? 0));
    watched.set(name, [...(watched.get(name) ?? []), { listener, timer }]);
    return Object.assign(new EventEmitter(), { ref() {}, unref() {} });
  };
  fs.unwatchFile = (file, listener) => {
    const all = watched.get(nameOf(file)) ?? [];
    for (const entry of all) if (!listener || entry.listener === listener) clearInterval(entry.timer);
    watched.set(nameOf(file), listener ? all.filter((entry) => entry.listener !== listener) : []);
  };
  fs.realpathSync.native = fs.realpathSync;
  let globs;
  platform.globs = () => (globs ??= parts.globs(fs));
  fs.globSync = (pattern, options) => platform.globs().globSync(pattern, options);
  fs.promises.glob = (pattern, options) => platform.globs().globLater(pattern, options);
  fs.glob = (pattern, ...rest) => { const done = rest.pop(); Array.fromAsync(fs.promises.glob(pattern, ...rest)).then((found) => done(null, found), (error) => done(error)); };

  return fs;
})
