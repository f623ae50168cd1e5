// Modules of Node of which extensions use little: lines of a stream, compression, and stubs of what a single script
// has no use for. Evaluated as a function when an extension first needs one of them; returns the modules by name.
(function (native, platform, parts) {
  "use strict";
  const { Buffer, binary } = platform;
  const { EventEmitter, stream } = parts;
  const later = queueMicrotask;

  // ---- readline
  class Interface extends EventEmitter {
    #rest = ""; #lines = []; #wake = () => {}; #questions = [];
    closed = false; terminal = false; line = "";
    constructor(input, output) {
      super();
      const given = input && !input.on && (input.input || input.output) ? input : { input, output };
      this.input = given.input;
      this.output = given.output;
      this.#follow(given.input);
      given.signal?.addEventListener("abort", () => this.close(), { once: true });
    }
    #follow(source) {
      if (!source?.on) return;
      source.setEncoding?.("utf8");
      source.on("data", (chunk) => {
        const lines = (this.#rest + String(chunk)).split(/\r\n|\n|\r(?!$)/);
        this.#rest = lines.pop();
        lines.forEach((line) => this.#take(line));
      });
      source.on("end", () => { if (this.#rest) this.#take(this.#rest.replace(/\r$/, "")); this.#rest = ""; this.close(); });
      source.on("error", (error) => { if (this.listenerCount("error")) this.emit("error", error); this.close(); });
    }
    #take(line) {
      const question = this.#questions.shift();
      if (question) { question(line); return; }
      if (!this.emit("line", line)) this.#lines.push(line);
      this.#wake();
    }
    setPrompt(text) { this.#prompt = text; }
    #prompt = "> ";
    getPrompt() { return this.#prompt; }
    prompt() { this.output?.write?.(this.#prompt); }
    question(text, options, done) { const answer = done ?? options; this.output?.write?.(text); if (this.closed) return; this.#questions.push(answer); }
    write() {} pause() { this.input?.pause?.(); return this; } resume() { this.input?.resume?.(); return this; }
    close() { if (this.closed) return; this.closed = true; this.emit("close"); this.#wake(); }
    [Symbol.dispose]() { this.close(); }
    async *[Symbol.asyncIterator]() {
      const keep = (line) => this.#lines.push(line);
      this.on("line", keep);
      try {
        for (;;) {
          if (this.#lines.length) { yield this.#lines.shift(); continue; }
          if (this.closed) return;
          await new Promise((resolve) => { this.#wake = resolve; });
        }
      } finally {
        this.off("line", keep);
        this.close();
      }
    }
  }
  const moved = (_stream, ...rest) => { const done = rest.at(-1); if (typeof done === "function") later(done); return true; };
  const cursor = { clearLine: moved, clearScreenDown: moved, cursorTo: moved, moveCursor: moved, emitKeypressEvents() {} };
  class PromiseInterface extends Interface { question(text) { return new Promise((resolve) => super.question(text, resolve)); } }
  const readlinePromises = { Interface: PromiseInterface, createInterface: (...values) => new PromiseInterface(...values) };
  const readline = { Interface, createInterface: (...values) => new Interface(...values), ...cursor, promises: readlinePromises };

  // ---- zlib
  const bytesOf = (value) => (typeof value === "string" ? Buffer.from(value) : value instanceof ArrayBuffer ? Buffer.from(value) : Buffer.from(value.buffer, value.byteOffset, value.byteLength));
  const squeeze = (format) => (value, options) => Buffer.from(native.compress(format, binary(bytesOf(value)), options?.level ?? -1));
  const expand = (format) => (value) => {
    try { return Buffer.from(native.decompress(format, binary(bytesOf(value)))); } catch (error) { throw Object.assign(error, { code: "Z_DATA_ERROR", errno: -3 }); }
  };
  const kinds = { gzip: squeeze("gzip"), gunzip: expand("gzip"), deflate: squeeze("zlib"), inflate: expand("zlib"), deflateRaw: squeeze("raw"), inflateRaw: expand("raw"), unzip: expand("any") };
  const zlib = { constants: { Z_NO_FLUSH: 0, Z_SYNC_FLUSH: 2, Z_FINISH: 4, Z_BEST_SPEED: 1, Z_BEST_COMPRESSION: 9, Z_DEFAULT_COMPRESSION: -1, BROTLI_PARAM_QUALITY: 1, BROTLI_OPERATION_FLUSH: 1 } };
  for (const [name, work] of Object.entries(kinds)) {
    const capital = name[0].toUpperCase() + name.slice(1);
    zlib[`${name}Sync`] = work;
    zlib[name] = (value, options, done) => { const call = done ?? options; later(() => { let result; try { result = work(value, options); } catch (error) { call(error); return; } call(null, result); }); };
    // The whole is worked on when it is there.
    zlib[`create${capital}`] = (options) => { const all = []; return new stream.Transform({ transform(chunk, _encoding, ready) { all.push(chunk); ready(); }, flush(ready) { let result; try { result = work(Buffer.concat(all), options); } catch (error) { ready(error); return; } ready(null, result); } }); };
    zlib[capital] = class { constructor(options) { return zlib[`create${capital}`](options); } };
  }
  const noBrotli = () => { throw new Error("node:zlib is not available in an extension (brotli): gzip and deflate are"); };
  Object.assign(zlib, { brotliCompress: noBrotli, brotliCompressSync: noBrotli, brotliDecompress: noBrotli, brotliDecompressSync: noBrotli, createBrotliCompress: noBrotli, createBrotliDecompress: noBrotli });

  // ---- stubs
  const workers = {
    isMainThread: true, threadId: 0, parentPort: null, workerData: null, resourceLimits: {}, SHARE_ENV: Symbol("SHARE_ENV"),
    Worker: class extends EventEmitter {
      threadId = -1;
      constructor() { super(); later(() => { this.emit("error", new Error("node:worker_threads is not available in an extension (Worker)")); this.emit("exit", 1); }); }
      postMessage() {} ref() {} unref() {} async terminate() { return 1; }
    },
    MessageChannel, MessagePort, BroadcastChannel: EventEmitter,
    getEnvironmentData: () => undefined, setEnvironmentData() {}, markAsUntransferable() {}, receiveMessageOnPort: () => undefined,
  };
  const silent = { hasSubscribers: false, publish() {}, subscribe() {}, unsubscribe: () => false, bindStore() {}, unbindStore() {}, runStores: (_data, work, self, ...values) => work.apply(self, values) };
  const traced = { hasSubscribers: false, start: silent, end: silent, asyncStart: silent, asyncEnd: silent, error: silent, subscribe() {}, unsubscribe() {}, traceSync: (work, _context, self, ...values) => work.apply(self, values), tracePromise: (work, _context, self, ...values) => work.apply(self, values), traceCallback: (work, _at, _context, self, ...values) => work.apply(self, values) };
  const here = (source) => (0, eval)(String(source));
  const noContext = () => { throw new Error("node:vm is not available in an extension (contexts)"); };
  const statistics = { total_heap_size: 0, used_heap_size: 0, heap_size_limit: 134217728, total_available_size: 134217728, malloced_memory: 0 };
  return {
    readline, "readline/promises": readlinePromises, zlib, worker_threads: workers,
    console: Object.assign(Object.create(console), { Console: class { constructor() { return console; } }, ...console }),
    constants: { F_OK: 0, R_OK: 4, W_OK: 2, X_OK: 1, SIGINT: 2, SIGKILL: 9, SIGTERM: 15 },
    diagnostics_channel: { channel: () => silent, hasSubscribers: () => false, subscribe() {}, unsubscribe: () => false, tracingChannel: () => traced, Channel: class {} },
    punycode: { toASCII: (name) => new URL(`http://${name}`).hostname, toUnicode: (name) => String(name), encode: (text) => String(text), decode: (text) => String(text), version: "2.1.0" },
    v8: { getHeapStatistics: () => ({ ...statistics }), getHeapSpaceStatistics: () => [], setFlagsFromString() {}, serialize: (value) => Buffer.from(JSON.stringify(value)), deserialize: (bytes) => JSON.parse(Buffer.from(bytes).toString()) },
    vm: { runInThisContext: here, runInNewContext: noContext, runInContext: noContext, createContext: (object = {}) => object, isContext: () => false, Script: class { #source; constructor(source) { this.#source = source; } runInThisContext() { return here(this.#source); } runInNewContext() { noContext(); } runInContext() { noContext(); } }, SourceTextModule: class { constructor() { noContext(); } } },
  };
})
