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
  class FormData {
    #entries = [];
    append(name, value) { this.#entries.push([String(name), value instanceof Blob ? value : String(value)]); }
    set(name, value) { this.delete(name); this.append(name, value); }
    get(name) { return this.#entries.find(([known]) => known === name)?.[1] ?? null; }
    has(name) { return this.#entries.some(([known]) => known === name); }
    delete(name) { this.#entries = this.#entries.filter(([known]) => known !== name); }
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
    if (body instanceof URLSearchParams) return [bytesOf(body.toString()), "application/x-www-form-urlencoded;charset=UTF-8"];
    if (body instanceof Blob) return [Blob.bytes(body), body.type || undefined];
    if (body instanceof FormData) {
      const boundary = `----hardpan${platform.uuid().replaceAll("-", "")}`;
      const parts = [];
      for (const [name, value] of body) {
        const file = value instanceof Blob ? `; filename="blob"\r\nContent-Type: ${value.type || "application/octet-stream"}` : "";
        parts.push(bytesOf(`--${boundary}\r\nContent-Disposition: form-data; name="${name.replaceAll('"', "%22")}"${file}\r\n\r\n`), bytesOf(value), bytesOf("\r\n"));
      }
      return [Buffer.concat([...parts, bytesOf(`--${boundary}--\r\n`)]), `multipart/form-data; boundary=${boundary}`];
    }
    return [bytesOf(body), typeof body === "string" ? "text/plain;charset=UTF-8" : undefined];
  }

  class Body {
    #bytes;
    bodyUsed = false;
    constructor(bytes) { this.#bytes = bytes; }
    static bytes(body) { return body.#bytes; }
    #take() {
      if (this.bodyUsed) throw new TypeError("Body is unusable: Body has already been read");
      this.bodyUsed = this.#bytes !== undefined;
      return this.#bytes ?? Buffer.alloc(0);
    }
    async text() { return this.#take().toString("utf8").replace(/^\ufeff/, ""); }
    async json() { return JSON.parse(await this.text()); }
    async arrayBuffer() { return copyOf(this.#take()); }
    async bytes() { return new Uint8Array(this.#take()); }
    async blob() { return new Blob([this.#take()], { type: this.headers.get("content-type") ?? "" }); }
    // The whole content as one part.
    get body() {
      if (this.#bytes === undefined) return null;
      const take = () => this.#take();
      let isDone = false;
      const read = async () => { if (isDone) return { done: true, value: undefined }; isDone = true; const value = new Uint8Array(take()); return value.length ? { done: false, value } : { done: true, value: undefined }; };
      return {
        locked: false,
        getReader: () => ({ read, releaseLock() {}, cancel: async () => { isDone = true; }, closed: Promise.resolve() }),
        cancel: async () => { isDone = true; },
        async *[Symbol.asyncIterator]() { const part = await read(); if (!part.done) yield part.value; },
      };
    }
  }
  class Request extends Body {
    constructor(input, init = {}) {
      const from = input instanceof Request ? input : undefined;
      const [bytes, type] = init.body === undefined || init.body === null ? [from && Body.bytes(from), undefined] : encodeBody(init.body);
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
    clone() { return new Response(Body.bytes(this), this); }
    static json(value, init = {}) { const headers = new Headers(init.headers); if (!headers.has("content-type")) headers.set("content-type", "application/json"); return new Response(JSON.stringify(value), { ...init, headers }); }
    static error() { return new Response(null, { status: 0 }); }
  }

  async function fetch(input, init) {
    const request = new Request(input, init);
    request.signal.throwIfAborted();
    const bytes = Body.bytes(request);
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
    return new Response(answer.body === undefined ? null : native.fromBase64(answer.body), answer);
  }
  for (const [name, value] of Object.entries({ Headers, Request, Response, FormData, Blob, fetch })) define(name, value);
})
