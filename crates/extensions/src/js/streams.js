// `node:stream`, and the streams of the web. Evaluated as a function when an extension first needs them; returns the
// modules by name.
(function (platform, parts) {
  "use strict";
  const { Buffer } = platform;
  const { EventEmitter, promisify, StringDecoder } = parts;
  const later = queueMicrotask;
  const bytesOf = (chunk, encoding) => (typeof chunk === "string" ? Buffer.from(chunk, encoding) : Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk));
  const closedError = () => Object.assign(new Error("Premature close"), { code: "ERR_STREAM_PREMATURE_CLOSE" });

  // Functions instead of classes: packages of CommonJS call them on objects of their own.
  function Stream(options) { EventEmitter.call(this, options); }
  Object.setPrototypeOf(Stream.prototype, EventEmitter.prototype);
  Object.setPrototypeOf(Stream, EventEmitter);
  const inherit = (child, parent, methods) => {
    child.prototype = Object.create(parent.prototype, { constructor: { value: child, writable: true, configurable: true } });
    Object.setPrototypeOf(child, parent);
    addMethods(child, methods);
    return child;
  };
  const addMethods = (child, methods) => { for (const name of Reflect.ownKeys(methods)) Object.defineProperty(child.prototype, name, { ...Object.getOwnPropertyDescriptor(methods, name), enumerable: false }); };
  // Both sides of a stream end with `close`, once.
  const destroyer = {
    destroy(error) {
      if (this.destroyed) return this;
      this.destroyed = true;
      if (this._readableState) { this.readable = false; this._readableState.buffer = []; }
      this.writable = false;
      const done = (problem) => later(() => { const failure = problem ?? error; if (failure) { this.errored = failure; this.emit("error", failure); } this.closed = true; this.emit("close"); });
      if (this._destroy) this._destroy(error ?? null, done); else done();
      return this;
    },
    _destroy(error, done) { done(error); },
    [Symbol.asyncDispose]() { this.destroy(); return Promise.resolve(); },
  };

  // ---- reading
  function Readable(options) {
    if (!(this instanceof Readable)) return new Readable(options);
    Stream.call(this, options);
    beginReading(this, options ?? {});
  }
  function beginReading(stream, options) {
    stream._readableState = { buffer: [], flowing: null, ended: false, endEmitted: false, reading: false, isScheduled: false, decoder: null, objectMode: options.objectMode ?? options.readableObjectMode ?? false, pipes: [] };
    stream.readable = true;
    stream.destroyed = false;
    stream.closed = false;
    if (options.read) stream._read = options.read;
    if (options.destroy) stream._destroy = options.destroy;
    if (options.encoding) stream.setEncoding(options.encoding);
    options.signal?.addEventListener("abort", () => stream.destroy(options.signal.reason), { once: true });
  }
  inherit(Readable, Stream, {
    ...destroyer,
    _read() {},
    push(chunk, encoding) {
      const state = this._readableState;
      state.reading = false;
      if (chunk === null) {
        const rest = state.decoder?.end();
        if (rest) state.buffer.push(rest);
        state.ended = true;
      } else if (chunk !== undefined) {
        const part = state.objectMode ? chunk : state.decoder ? state.decoder.write(bytesOf(chunk, encoding)) : bytesOf(chunk, encoding);
        if (state.objectMode || part.length) state.buffer.push(part);
      }
      this._schedule();
      return state.buffer.length < 16;
    },
    unshift(chunk) { this._readableState.buffer.unshift(chunk); this._schedule(); },
    // What is there is delivered soon, and never within the call that brought it.
    _schedule() {
      const state = this._readableState;
      if (state.isScheduled) return;
      state.isScheduled = true;
      later(() => { state.isScheduled = false; this._deliver(); });
    },
    _deliver() {
      const state = this._readableState;
      if (this.destroyed) return;
      while (state.flowing && state.buffer.length && !this.destroyed) this.emit("data", state.buffer.shift());
      if (this.listenerCount("readable") && (state.buffer.length || state.ended) && !state.endEmitted) this.emit("readable");
      if (state.ended && state.buffer.length === 0 && !state.endEmitted) {
        if (state.flowing === null && !this.listenerCount("readable") && !this.listenerCount("end")) return;
        if (state.flowing === false) return;
        state.endEmitted = true;
        this.readable = false;
        this.readableEnded = true;
        this.emit("end");
        if (this._writableState === undefined || this.writableFinished) this.destroy();
        return;
      }
      if ((state.flowing || this.listenerCount("readable")) && !state.ended) this._pull();
    },
    _pull() {
      const state = this._readableState;
      if (state.reading || state.ended || this.destroyed) return;
      state.reading = true;
      try { this._read(16384); } catch (error) { this.destroy(error); }
    },
    read(size) {
      const state = this._readableState;
      if (state.buffer.length === 0) { if (!state.ended) this._pull(); else this._schedule(); }
      if (state.buffer.length === 0) return null;
      if (state.objectMode) { this._schedule(); return state.buffer.shift(); }
      let whole = state.buffer.length === 1 ? state.buffer[0] : state.decoder ? state.buffer.join("") : Buffer.concat(state.buffer);
      if (size !== undefined && size < whole.length) { state.buffer = [whole.slice(size)]; whole = whole.slice(0, size); }
      else if (size !== undefined && size > whole.length && !state.ended) { state.buffer = [whole]; this._pull(); return null; }
      else state.buffer = [];
      this._schedule();
      return whole;
    },
    on(name, handler) {
      EventEmitter.prototype.on.call(this, name, handler);
      if (name === "data" && this._readableState.flowing !== false) this.resume();
      if (name === "readable" || name === "end") this._schedule();
      return this;
    },
    addListener(name, handler) { return this.on(name, handler); },
    resume() { this._readableState.flowing = true; this._schedule(); return this; },
    pause() { this._readableState.flowing = false; return this; },
    isPaused() { return this._readableState.flowing === false; },
    setEncoding(encoding) { this._readableState.decoder = new StringDecoder(encoding); this._readableState.buffer = this._readableState.buffer.map((part) => this._readableState.decoder.write(part)); return this; },
    pipe(target, options) {
      const data = (chunk) => { if (target.write(chunk) === false && target.writableNeedDrain) { this.pause(); target.once?.("drain", () => this.resume()); } };
      const end = () => { if (options?.end !== false && target !== process.stdout && target !== process.stderr) target.end?.(); };
      this._readableState.pipes.push({ target, data, end });
      this.on("data", data);
      this.on("end", end);
      target.emit?.("pipe", this);
      return target;
    },
    unpipe(target) {
      const { pipes } = this._readableState;
      for (const pipe of pipes.filter((pipe) => target === undefined || pipe.target === target)) { this.off("data", pipe.data); this.off("end", pipe.end); }
      this._readableState.pipes = pipes.filter((pipe) => target !== undefined && pipe.target !== target);
      return this;
    },
    async *[Symbol.asyncIterator]() {
      const state = this._readableState;
      let wake = () => {};
      let failure;
      const notice = () => wake();
      const fail = (error) => { failure = error; wake(); };
      EventEmitter.prototype.on.call(this, "error", fail);
      EventEmitter.prototype.on.call(this, "close", notice);
      this.on("readable", notice);
      try {
        for (;;) {
          if (failure) throw failure;
          const chunk = this.read();
          if (chunk !== null) { yield chunk; continue; }
          if (state.ended || this.destroyed) break;
          await new Promise((resolve) => { wake = resolve; });
        }
        if (failure) throw failure;
      } finally {
        this.off("readable", notice);
        this.off("close", notice);
        later(() => this.off("error", fail));
        if (!this.destroyed) this.destroy();
      }
    },
    iterator() { return this[Symbol.asyncIterator](); },
    async toArray() { const all = []; for await (const chunk of this) all.push(chunk); return all; },
    get readableLength() { return this._readableState.buffer.length; },
    get readableFlowing() { return this._readableState.flowing; },
    get readableObjectMode() { return this._readableState.objectMode; },
  });
  Readable.from = (source, options) => {
    if (typeof source === "string" || source instanceof Uint8Array) source = [source];
    const iterator = source[Symbol.asyncIterator]?.() ?? source[Symbol.iterator]();
    const stream = new Readable({ objectMode: true, ...options });
    stream._read = () => { Promise.resolve(iterator.next()).then(async ({ done, value }) => stream.push(done ? null : await value)).catch((error) => stream.destroy(error)); };
    return stream;
  };
  Readable.fromWeb = (web, options) => Readable.from(web, options);
  Readable.toWeb = (stream) => new ReadableStream({ async start(controller) { try { for await (const chunk of stream) controller.enqueue(chunk); controller.close(); } catch (error) { controller.error(error); } } });

  // ---- writing
  function Writable(options) {
    if (!(this instanceof Writable) && !this?._readableState) return new Writable(options);
    Stream.call(this, options);
    beginWriting(this, options ?? {});
  }
  function beginWriting(stream, options) {
    stream._writableState = { queue: [], isBusy: false, isEnding: false, objectMode: options.objectMode ?? options.writableObjectMode ?? false, decodeStrings: options.decodeStrings !== false };
    stream.writable = true;
    stream.destroyed = false;
    stream.writableEnded = false;
    stream.writableFinished = false;
    if (options.write) stream._write = options.write;
    if (options.final) stream._final = options.final;
    if (options.destroy) stream._destroy = options.destroy;
  }
  const writing = {
    _write(_chunk, _encoding, done) { done(); },
    _final(done) { done(); },
    write(chunk, encoding, done) {
      if (typeof encoding === "function") [encoding, done] = [undefined, encoding];
      const state = this._writableState;
      if (this.writableEnded || this.destroyed) {
        const error = Object.assign(new Error("write after end"), { code: "ERR_STREAM_WRITE_AFTER_END" });
        later(() => { done?.(error); this.destroy(error); });
        return false;
      }
      const whole = !state.objectMode && state.decodeStrings ? bytesOf(chunk, encoding) : chunk;
      state.queue.push({ chunk: whole, encoding: typeof whole === "string" ? encoding ?? "utf8" : "buffer", done });
      this._work();
      return state.queue.length < 16;
    },
    _work() {
      const state = this._writableState;
      if (state.isBusy || this.destroyed) return;
      const next = state.queue.shift();
      if (!next) {
        if (state.needsDrain) { state.needsDrain = false; later(() => this.emit("drain")); }
        if (this.writableEnded && !state.isEnding) this._finish();
        return;
      }
      state.isBusy = true;
      if (state.queue.length >= 15) state.needsDrain = true;
      const ended = (error) => {
        state.isBusy = false;
        next.done?.(error ?? null);
        if (error) this.destroy(error);
        else later(() => this._work());
      };
      try { this._write(next.chunk, next.encoding, ended); } catch (error) { ended(error); }
    },
    _finish() {
      this._writableState.isEnding = true;
      this._final((error) => later(() => {
        if (error) { this.destroy(error); return; }
        this.writableFinished = true;
        this.writable = false;
        this.emit("finish");
        if (this._readableState === undefined || this.readableEnded) this.destroy();
      }));
    },
    end(chunk, encoding, done) {
      if (typeof chunk === "function") [chunk, done] = [undefined, chunk];
      if (typeof encoding === "function") [encoding, done] = [undefined, encoding];
      if (chunk !== undefined && chunk !== null) this.write(chunk, encoding);
      if (done) this.once("finish", done);
      this.writableEnded = true;
      later(() => this._work());
      return this;
    },
    cork() {}, uncork() {},
    setDefaultEncoding() { return this; },
  };
  const writingState = { writableLength: { get() { return this._writableState.queue.length; }, configurable: true }, writableNeedDrain: { get() { return this._writableState.needsDrain === true; }, configurable: true }, writableObjectMode: { get() { return this._writableState.objectMode; }, configurable: true } };
  inherit(Writable, Stream, { ...destroyer, ...writing });
  Object.defineProperties(Writable.prototype, writingState);

  function Duplex(options) {
    if (!(this instanceof Duplex)) return new Duplex(options);
    Stream.call(this, options);
    beginReading(this, options ?? {});
    beginWriting(this, options ?? {});
  }
  inherit(Duplex, Readable, writing);
  Object.defineProperties(Duplex.prototype, writingState);
  Object.defineProperty(Writable, Symbol.hasInstance, { value(value) { return Function.prototype[Symbol.hasInstance].call(this, value) || (this === Writable && value instanceof Duplex); } });
  function Transform(options) {
    if (!(this instanceof Transform)) return new Transform(options);
    Duplex.call(this, options);
    if (options?.transform) this._transform = options.transform;
    if (options?.flush) this._flush = options.flush;
  }
  inherit(Transform, Duplex, {
    _transform(chunk, _encoding, done) { done(null, chunk); },
    _write(chunk, encoding, done) { this._transform(chunk, encoding, (error, value) => { if (value !== undefined && value !== null) this.push(value); done(error); }); },
    _final(done) {
      const end = (error, value) => { if (value !== undefined && value !== null) this.push(value); if (!error) this.push(null); done(error); };
      if (this._flush) this._flush(end); else end();
    },
  });
  function PassThrough(options) { if (!(this instanceof PassThrough)) return new PassThrough(options); Transform.call(this, options); }
  inherit(PassThrough, Transform, {});

  // ---- several streams
  function finished(stream, options, done) {
    if (typeof options === "function") done = options;
    let isOver = false;
    const end = (error) => { if (!isOver) { isOver = true; done(error); } };
    const isDone = () => (stream._readableState === undefined || stream.readableEnded || options?.readable === false) && (stream._writableState === undefined || stream.writableFinished || options?.writable === false);
    const check = () => { if (isDone()) end(); };
    stream.on("error", end);
    stream.on("finish", check);
    stream.on("end", check);
    stream.on("close", () => end(isDone() ? undefined : stream.errored ?? closedError()));
    if (stream.destroyed || isDone()) later(() => end(stream.errored ?? undefined));
    return () => { isOver = true; };
  }
  function pipeline(...values) {
    const done = typeof values.at(-1) === "function" && values.length > 2 && values.at(-1).length < 2 && !values.at(-1)[Symbol.asyncIterator] ? values.pop() : () => {};
    const streams = values.flat().filter((value) => typeof value?.getReader !== "undefined" || typeof value !== "object" || value?.pipe || value?.write || value?.[Symbol.asyncIterator] || value?.[Symbol.iterator]);
    let isOver = false;
    const end = (error) => { if (isOver) return; isOver = true; if (error) for (const stream of made) stream.destroy?.(); done(error); };
    const made = [];
    for (const part of streams) {
      const before = made.at(-1);
      let stream = part;
      if (typeof part === "function") {
        const result = part(before);
        if (typeof result?.then === "function") { result.then(() => end(), end); break; }
        stream = Readable.from(result);
      } else if (!part.on) stream = Readable.from(part);
      stream.on("error", end);
      if (before && typeof part !== "function") before.pipe(stream);
      made.push(stream);
    }
    const last = made.at(-1);
    if (last && typeof streams.at(-1) !== "function") finished(last, { readable: false }, end);
    return last;
  }
  const promises = {
    pipeline: (...streams) => new Promise((resolve, reject) => pipeline(...streams, (error) => (error ? reject(error) : resolve()))),
    finished: (stream, options) => new Promise((resolve, reject) => finished(stream, options ?? {}, (error) => (error ? reject(error) : resolve()))),
  };
  pipeline[promisify.custom] = promises.pipeline;
  finished[promisify.custom] = promises.finished;
  const addAbortSignal = (signal, stream) => { signal.addEventListener("abort", () => stream.destroy(signal.reason), { once: true }); return stream; };
  const stream = Object.assign(Stream, { Stream, Readable, Writable, Duplex, Transform, PassThrough, pipeline, finished, addAbortSignal, promises, isReadable: (value) => Boolean(value?.readable), isErrored: (value) => Boolean(value?.errored), getDefaultHighWaterMark: () => 16384 });

  // ---- streams of the web
  class ReadableStream {
    #queue = []; #waiting = []; #state = "open"; #error; #source; #controller; #isPulling = false;
    locked = false;
    constructor(source = {}) {
      this.#source = source;
      const settle = () => {
        while (this.#waiting.length && (this.#queue.length || this.#state !== "open")) {
          const { resolve, reject } = this.#waiting.shift();
          if (this.#queue.length) resolve({ done: false, value: this.#queue.shift() });
          else if (this.#state === "failed") reject(this.#error);
          else resolve({ done: true, value: undefined });
        }
      };
      this.#controller = {
        enqueue: (chunk) => { if (this.#state !== "open") throw new TypeError("the stream is closed"); this.#queue.push(chunk); settle(); },
        close: () => { this.#state = "closed"; settle(); }, error: (error) => { this.#state = "failed"; this.#error = error; settle(); }, desiredSize: 1,
      };
      Promise.resolve(source.start?.(this.#controller)).catch(this.#controller.error);
    }
    #pull() {
      if (this.#isPulling || this.#state !== "open" || !this.#source.pull) return;
      this.#isPulling = true;
      later(() => Promise.resolve(this.#source.pull(this.#controller)).then(() => { this.#isPulling = false; if (this.#waiting.length) this.#pull(); }, this.#controller.error));
    }
    #read() {
      if (this.#queue.length) return Promise.resolve({ done: false, value: this.#queue.shift() });
      if (this.#state === "failed") return Promise.reject(this.#error);
      if (this.#state === "closed") return Promise.resolve({ done: true, value: undefined });
      const next = new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
      this.#pull();
      return next;
    }
    getReader() {
      if (this.locked) throw new TypeError("ReadableStream is locked");
      this.locked = true;
      return { read: () => this.#read(), releaseLock: () => { this.locked = false; }, cancel: (reason) => this.cancel(reason), closed: Promise.resolve() };
    }
    async cancel(reason) { this.#queue = []; this.#controller.close(); await this.#source.cancel?.(reason); }
    async *[Symbol.asyncIterator]() { const reader = this.getReader(); try { for (;;) { const { done, value } = await reader.read(); if (done) return; yield value; } } finally { reader.releaseLock(); } }
    values() { return this[Symbol.asyncIterator](); }
    async pipeTo(target) { const writer = target.getWriter(); try { for await (const chunk of this) await writer.write(chunk); await writer.close(); } catch (error) { await writer.abort(error); throw error; } }
    pipeThrough(pair) { this.pipeTo(pair.writable).catch(() => {}); return pair.readable; }
    tee() {
      const both = [];
      const copies = [0, 1].map(() => new ReadableStream({ start: (controller) => { both.push(controller); } }));
      (async () => { try { for await (const chunk of this) both.forEach((controller) => controller.enqueue(chunk)); both.forEach((controller) => controller.close()); } catch (error) { both.forEach((controller) => controller.error(error)); } })();
      return copies;
    }
    static from(source) { const iterator = source[Symbol.asyncIterator]?.() ?? source[Symbol.iterator](); return new ReadableStream({ async pull(controller) { const { done, value } = await iterator.next(); if (done) controller.close(); else controller.enqueue(value); } }); }
  }
  class WritableStream {
    #sink; #last = Promise.resolve();
    locked = false;
    constructor(sink = {}) { this.#sink = sink; this.#last = Promise.resolve(sink.start?.({ error() {} })); }
    #then(work) { this.#last = this.#last.then(work); return this.#last; }
    getWriter() {
      this.locked = true;
      return { write: (chunk) => this.#then(() => this.#sink.write?.(chunk, { error() {} })), close: () => this.close(), abort: (reason) => this.abort(reason), releaseLock: () => { this.locked = false; }, ready: Promise.resolve(), closed: Promise.resolve(), desiredSize: 1 };
    }
    close() { return this.#then(() => this.#sink.close?.()); }
    async abort(reason) { await this.#sink.abort?.(reason); }
  }
  class TransformStream {
    constructor(transformer = {}) {
      let controller;
      this.readable = new ReadableStream({ start(given) { controller = given; } });
      controller.terminate = controller.close;
      const started = Promise.resolve(transformer.start?.(controller));
      this.writable = new WritableStream({
        start: () => started,
        write: async (chunk) => { if (transformer.transform) await transformer.transform(chunk, controller); else controller.enqueue(chunk); },
        close: async () => { await transformer.flush?.(controller); controller.close(); },
        abort: (reason) => controller.error(reason),
      });
    }
  }
  class TextDecoderStream extends TransformStream { constructor() { const decoder = new StringDecoder("utf8"); super({ transform: (chunk, controller) => { const text = decoder.write(Buffer.from(chunk)); if (text) controller.enqueue(text); }, flush: (controller) => { const text = decoder.end(); if (text) controller.enqueue(text); } }); } }
  class TextEncoderStream extends TransformStream { constructor() { super({ transform: (chunk, controller) => controller.enqueue(new TextEncoder().encode(chunk)) }); } }

  const wholeOf = async (source) => { const all = []; for await (const chunk of source) all.push(bytesOf(chunk)); return Buffer.concat(all); };
  const consumers = { buffer: wholeOf, text: async (source) => (await wholeOf(source)).toString("utf8"), json: async (source) => JSON.parse((await wholeOf(source)).toString("utf8")), arrayBuffer: async (source) => new Uint8Array(await wholeOf(source)).buffer, blob: async (source) => new Blob([await wholeOf(source)]) };
  return { stream, "stream/consumers": consumers, "stream/promises": promises, "stream/web": { ReadableStream, WritableStream, TransformStream, TextDecoderStream, TextEncoderStream } };
})
