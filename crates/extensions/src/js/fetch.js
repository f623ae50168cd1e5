// `fetch` and what belongs to it, as globals. The host decides which addresses may be reached.
(function (native, platform) {
  "use strict";
  const { Buffer, binary, define, well } = platform;
  const nameOf = (name) => {
    const plain = String(name).toLowerCase();
    if (!/^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(plain)) throw new TypeError(`Header name must be a valid HTTP token ["${name}"]`);
    return plain;
  };
  class Headers {
    #pairs = new Map();
    constructor(init) {
      if (init === undefined || init === null) return;
      const pairs = typeof init[Symbol.iterator] === "function" ? init : Object.entries(init);
      for (const [name, value] of pairs) if (value !== undefined) this.append(name, value);
    }
    append(name, value) { const key = nameOf(name); const text = well(value).trim(); this.#pairs.set(key, this.#pairs.has(key) ? `${this.#pairs.get(key)}, ${text}` : text); }
    set(name, value) { this.#pairs.set(nameOf(name), well(value).trim()); }
    get(name) { return this.#pairs.get(nameOf(name)) ?? null; }
    has(name) { return this.#pairs.has(nameOf(name)); }
    delete(name) { this.#pairs.delete(nameOf(name)); }
    getSetCookie() { return this.has("set-cookie") ? [this.get("set-cookie")] : []; }
    forEach(visit, self) { for (const [name, value] of this) visit.call(self, value, name, this); }
    keys() { return [...this.#pairs.keys()].sort()[Symbol.iterator](); }
    values() { return [...this].map(([, value]) => value)[Symbol.iterator](); }
    entries() { return [...this.#pairs].sort(([one], [other]) => (one < other ? -1 : 1))[Symbol.iterator](); }
    [Symbol.iterator]() { return this.entries(); }
  }

  class Blob {
    #bytes;
    constructor(parts = [], options = {}) { this.#bytes = Buffer.concat(parts.map((part) => bytesOf(part) ?? Buffer.alloc(0))); this.type = options.type ?? ""; }
    get size() { return this.#bytes.length; }
    static bytes(blob) { return blob.#bytes; }
    async text() { return this.#bytes.toString("utf8"); }
    async arrayBuffer() { return copyOf(this.#bytes); }
    async bytes() { return new Uint8Array(this.#bytes); }
    slice(start, end, type) { return new Blob([this.#bytes.subarray(start, end)], { type }); }
  }
  class File extends Blob {
    constructor(parts, name, options = {}) { super(parts, options); this.name = String(name); this.lastModified = options.lastModified ?? Date.now(); }
  }
  class FormData {
    #entries = [];
    append(name, value) { this.#entries.push([String(name), value instanceof Blob ? value : String(value)]); }
    set(name, value) { this.delete(name); this.append(name, value); }
    get(name) { return this.#entries.find(([known]) => known === name)?.[1] ?? null; }
    has(name) { return this.#entries.some(([known]) => known === name); }
    delete(name) { this.#entries = this.#entries.filter(([known]) => known !== name); }
    getAll(name) { return this.#entries.filter(([known]) => known === name).map(([, value]) => value); }
    forEach(visit) { for (const [name, value] of this.#entries) visit(value, name, this); }
    keys() { return this.#entries.map(([name]) => name)[Symbol.iterator](); }
    values() { return this.#entries.map(([, value]) => value)[Symbol.iterator](); }
    entries() { return this.#entries[Symbol.iterator](); }
    [Symbol.iterator]() { return this.entries(); }
  }
  const copyOf = (bytes) => bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  function bytesOf(body) {
    if (body === undefined || body === null) return undefined;
    if (body instanceof ArrayBuffer) return Buffer.from(body);
    if (ArrayBuffer.isView(body)) return Buffer.from(new Uint8Array(body.buffer, body.byteOffset, body.byteLength));
    if (body instanceof Blob) return Blob.bytes(body);
    return Buffer.from(well(body));
  }
  // The bytes of a body, and the type that it has unless a header says otherwise.
  function encodeBody(body) {
    if (body instanceof Arriving) return [body, undefined];
    if (typeof body?.[Symbol.asyncIterator] === "function") return [Arriving.ofStream(body), undefined];
    if (body instanceof URLSearchParams) return [bytesOf(body.toString()), "application/x-www-form-urlencoded;charset=UTF-8"];
    if (body instanceof Blob) return [Blob.bytes(body), body.type || undefined];
    if (body instanceof FormData) {
      const boundary = `----hardpan${platform.uuid().replaceAll("-", "")}`;
      const parts = [];
      for (const [name, value] of body) {
        const file = value instanceof Blob ? `; filename="${value.name ?? "blob"}"\r\nContent-Type: ${value.type || "application/octet-stream"}` : "";
        parts.push(bytesOf(`--${boundary}\r\nContent-Disposition: form-data; name="${name.replaceAll('"', "%22")}"${file}\r\n\r\n`), bytesOf(value), bytesOf("\r\n"));
      }
      return [Buffer.concat([...parts, bytesOf(`--${boundary}--\r\n`)]), `multipart/form-data; boundary=${boundary}`];
    }
    return [bytesOf(body), typeof body === "string" ? "text/plain;charset=UTF-8" : undefined];
  }

  // What arrives of an answer or of a stream, part by part. Each of its copies reads it from the beginning.
  class Arriving {
    #parts = []; #isOver = false; #error; #reading; #next; #end; #copies = 1;
    // `next` gives the next part, undefined after the last one; `end` is called if nobody wants the rest.
    constructor(next, end) { this.#next = next; this.#end = end; }
    static ofAnswer(id) {
      const read = async () => { const part = await platform.call("fetch.read", { body: id }); return part === undefined ? undefined : native.fromBase64(part); };
      return new Arriving(read, () => platform.now("fetch.close", { body: id }));
    }
    static ofStream(stream) {
      const parts = stream[Symbol.asyncIterator]();
      return new Arriving(async () => (await parts.next()).value, () => { parts.return?.(); });
    }
    copy() { this.#copies++; return this; }
    // The part of this number; undefined after the last one.
    async part(number) {
      while (this.#parts.length <= number && !this.#isOver) {
        this.#reading ??= this.#read();
        await this.#reading;
      }
      if (this.#error !== undefined && this.#parts.length <= number) throw this.#error;
      return this.#parts[number];
    }
    async #read() {
      try {
        const part = await this.#next();
        if (part === undefined) this.#isOver = true;
        else this.#parts.push(part);
      } catch (error) {
        this.fail(Object.assign(new TypeError(`terminated: ${error.message}`), { cause: error }));
      }
      this.#reading = undefined;
    }
    async whole() {
      const parts = [];
      for (let part; (part = await this.part(parts.length)) !== undefined; ) parts.push(bytesOf(part));
      return Buffer.concat(parts);
    }
    fail(error) { if (this.#isOver) return; this.#isOver = true; this.#error = error; this.#end(); }
    // One of its readers wants no more.
    close() { if (--this.#copies <= 0) this.fail(undefined); }
  }

  class Body {
    #content; // nothing, bytes, or what arrives
    bodyUsed = false;
    constructor(content) { this.#content = content; }
    static content(body) { return body.#content; }
    #use() {
      if (this.bodyUsed) throw new TypeError("Body is unusable: Body has already been read");
      this.bodyUsed = this.#content !== undefined;
    }
    async #take() {
      if (this.#stream?.locked) throw new TypeError("Body is unusable: Body is locked");
      this.#use();
      if (this.#content === undefined) return Buffer.alloc(0);
      return this.#content instanceof Arriving ? this.#content.whole() : this.#content;
    }
    async text() { return (await this.#take()).toString("utf8").replace(/^\ufeff/, ""); }
    async json() { return JSON.parse(await this.text()); }
    async arrayBuffer() { return copyOf(await this.#take()); }
    async bytes() { return new Uint8Array(await this.#take()); }
    async blob() { return new Blob([await this.#take()], { type: this.headers.get("content-type") ?? "" }); }
    #stream;
    get body() {
      if (this.#content === undefined) return null;
      this.#stream ??= this.#makeStream();
      return this.#stream;
    }
    #makeStream() {
      const content = this.#content;
      let number = 0;
      const part = async () => {
        if (number === 0) this.#use();
        if (content instanceof Arriving) return content.part(number++);
        return number++ === 0 && content.length ? content : undefined;
      };
      return new ReadableStream({
        pull: async (controller) => { const next = await part(); if (next === undefined) controller.close(); else controller.enqueue(new Uint8Array(bytesOf(next))); },
        cancel: () => { if (content instanceof Arriving) content.close(); },
      });
    }
  }
  class Request extends Body {
    constructor(input, init = {}) {
      const from = input instanceof Request ? input : undefined;
      const [bytes, type] = init.body === undefined || init.body === null ? [from && Body.content(from), undefined] : encodeBody(init.body);
      super(bytes);
      this.url = from ? from.url : String(new URL(String(input)));
      this.method = String(init.method ?? from?.method ?? "GET").toUpperCase();
      this.headers = new Headers(init.headers ?? from?.headers);
      if (type && !this.headers.has("content-type")) this.headers.set("content-type", type);
      this.signal = init.signal ?? from?.signal ?? new AbortController().signal;
      this.redirect = init.redirect ?? from?.redirect ?? "follow";
      if (bytes !== undefined && (this.method === "GET" || this.method === "HEAD")) throw new TypeError("Request with GET/HEAD method cannot have body.");
    }
    clone() { return new Request(this); }
  }
  class Response extends Body {
    constructor(body, init = {}) {
      const [bytes, type] = encodeBody(body);
      super(bytes);
      this.status = init.status ?? 200;
      this.statusText = init.statusText ?? "";
      this.headers = new Headers(init.headers);
      if (type && !this.headers.has("content-type")) this.headers.set("content-type", type);
      this.url = init.url ?? "";
      this.redirected = init.redirected ?? false;
      this.type = "default";
    }
    get ok() { return this.status >= 200 && this.status < 300; }
    clone() {
      if (this.bodyUsed) throw new TypeError("Response.clone: Body has already been consumed.");
      const content = Body.content(this);
      return new Response(content instanceof Arriving ? content.copy() : content, this);
    }
    static json(value, init = {}) { const headers = new Headers(init.headers); if (!headers.has("content-type")) headers.set("content-type", "application/json"); return new Response(JSON.stringify(value), { ...init, headers }); }
    static error() { return new Response(null, { status: 0 }); }
  }

  async function fetch(input, init) {
    const request = new Request(input, init);
    request.signal.throwIfAborted();
    const given = Body.content(request);
    const bytes = given instanceof Arriving ? await given.whole() : given;
    const call = platform.call("fetch", {
      url: request.url, method: request.method, headers: [...request.headers], redirect: request.redirect,
      body: bytes === undefined ? undefined : native.toBase64(binary(bytes)),
    });
    const aborted = new Promise((_resolve, reject) => request.signal.addEventListener("abort", () => { platform.cancel(call); reject(request.signal.reason); }, { once: true }));
    let answer;
    try {
      answer = await Promise.race([call, aborted]);
    } catch (error) {
      if (request.signal.aborted) throw error;
      throw Object.assign(new TypeError("fetch failed"), { message: `fetch failed: ${error.message}`, cause: error });
    }
    const hasContent = ![204, 205, 304].includes(answer.status) && request.method !== "HEAD";
    const content = Arriving.ofAnswer(answer.body);
    if (!hasContent) content.close();
    else request.signal.addEventListener("abort", () => content.fail(request.signal.reason), { once: true });
    return new Response(hasContent ? content : null, answer);
  }
  for (const [name, value] of Object.entries({ Headers, Request, Response, FormData, Blob, File, fetch })) define(name, value);
})
