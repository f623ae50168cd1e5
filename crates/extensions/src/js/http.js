// `node:http`, `node:https`: a client that is made of `fetch`. `node:net`, `node:tls`, `node:dns`: there are no sockets;
// what an extension opens fails as an address does that nobody answers at. Evaluated as a function when an extension
// first needs one of them; returns the modules by name.
(function (platform, parts) {
  "use strict";
  const { Buffer } = platform;
  const { EventEmitter, stream, url, net } = parts;
  const later = queueMicrotask;
  const failure = (code, message, more) => Object.assign(new Error(`${code}: ${message}`), { code, errno: -1, ...more });

  // ---- requests
  class IncomingMessage extends stream.Readable {
    constructor(response, socket) {
      super();
      this.statusCode = response.status;
      this.statusMessage = response.statusText || STATUS_CODES[response.status] || "";
      this.headers = Object.fromEntries(response.headers);
      if (this.headers["set-cookie"] !== undefined) this.headers["set-cookie"] = [this.headers["set-cookie"]];
      this.rawHeaders = [...response.headers].flat();
      this.httpVersion = "1.1";
      this.complete = false;
      this.socket = this.connection = socket;
    }
    setTimeout() { return this; }
  }
  const placeOf = (scheme, given) => {
    const { protocol = scheme, hostname, host, port, path = "/", auth } = given;
    const name = hostname ?? host ?? "localhost";
    const bare = hostname === undefined && host !== undefined ? host.replace(/:\d+$/, "") : name;
    return new URL(`${protocol}//${auth ? `${auth}@` : ""}${bare.includes(":") && !bare.startsWith("[") ? `[${bare}]` : bare}${port ? `:${port}` : ""}${path}`);
  };
  class ClientRequest extends stream.Writable {
    #headers = new Map(); #parts = []; #address; #ending = new AbortController(); #timer;
    constructor(scheme, input, options, done) {
      super();
      const isAddress = typeof input === "string" || input instanceof URL;
      const given = isAddress ? options ?? {} : { ...input, ...options };
      this.#address = isAddress && given.path === undefined && given.hostname === undefined ? new URL(input) : placeOf(scheme, isAddress ? { ...url.urlToHttpOptions(new URL(input)), ...given } : given);
      this.method = String(given.method ?? "GET").toUpperCase();
      this.path = this.#address.pathname + this.#address.search;
      this.host = this.#address.hostname;
      this.protocol = this.#address.protocol;
      this.aborted = false;
      this.socket = this.connection = Object.assign(new EventEmitter(), { setTimeout() {}, setKeepAlive() {}, setNoDelay() {}, destroy() {}, ref() {}, unref() {}, remoteAddress: this.host, encrypted: scheme === "https:" });
      for (const [name, value] of Object.entries(given.headers ?? {})) if (value !== undefined) this.setHeader(name, value);
      if (given.auth) this.setHeader("authorization", `Basic ${Buffer.from(given.auth).toString("base64")}`);
      if (given.timeout) this.setTimeout(given.timeout);
      given.signal?.addEventListener("abort", () => this.destroy(given.signal.reason), { once: true });
      if (done) this.once("response", done);
      later(() => this.emit("socket", this.socket));
    }
    setHeader(name, value) { this.#headers.set(String(name).toLowerCase(), Array.isArray(value) ? value.join(", ") : String(value)); return this; }
    getHeader(name) { return this.#headers.get(String(name).toLowerCase()); }
    getHeaders() { return Object.fromEntries(this.#headers); }
    hasHeader(name) { return this.#headers.has(String(name).toLowerCase()); }
    removeHeader(name) { this.#headers.delete(String(name).toLowerCase()); }
    flushHeaders() {} setNoDelay() {} setSocketKeepAlive() {}
    setTimeout(wait, done) {
      if (done) this.once("timeout", done);
      clearTimeout(this.#timer);
      if (wait > 0) this.#timer = setTimeout(() => this.emit("timeout"), wait);
      return this;
    }
    abort() { this.aborted = true; this.emit("abort"); this.destroy(failure("ECONNRESET", "socket hang up")); }
    _write(chunk, _encoding, done) { this.#parts.push(chunk); done(); }
    _final(done) { this.#send(); done(); }
    _destroy(error, done) { clearTimeout(this.#timer); this.#ending.abort(); done(error); }
    async #send() {
      // What belongs to the connection is the host's.
      const headers = [...this.#headers].filter(([name]) => !["connection", "host", "content-length", "transfer-encoding", "accept-encoding"].includes(name));
      const body = this.#parts.length && this.method !== "GET" && this.method !== "HEAD" ? Buffer.concat(this.#parts) : undefined;
      let message;
      try {
        const response = await fetch(this.#address, { method: this.method, headers, body, redirect: "manual", signal: this.#ending.signal });
        clearTimeout(this.#timer);
        message = new IncomingMessage(response, this.socket);
        message.req = this;
        this.#receive(response, message);
      } catch (error) {
        clearTimeout(this.#timer);
        if (!this.#ending.signal.aborted) { this.emit("error", failure("ECONNREFUSED", error.message, { cause: error, syscall: "connect" })); this.emit("close"); }
        return;
      }
      this.res = message;
      if (!this.emit("response", message)) message.resume();
    }
    // Its content, as it arrives.
    async #receive(response, message) {
      try {
        for await (const part of response.body ?? []) message.push(Buffer.from(part));
        message.complete = true;
        message.push(null);
      } catch (error) {
        if (!message.destroyed) message.destroy(failure("ECONNRESET", error.message, { cause: error }));
      }
    }
    // The request goes on until its answer is there.
    destroy(error) { return error === undefined && this.writableFinished && !this.res && !this.aborted ? this : super.destroy(error); }
  }

  // ---- servers and sockets
  class Server extends EventEmitter {
    listening = false; maxConnections = 0; timeout = 0; keepAliveTimeout = 0; headersTimeout = 0; requestTimeout = 0;
    constructor(_options, connected) { super(); const listener = typeof _options === "function" ? _options : connected; if (typeof listener === "function") this.on("request", listener); }
    listen(...values) {
      const port = values.find((value) => typeof value === "number") ?? values[0]?.port ?? 0;
      later(() => this.emit("error", failure("EACCES", "an extension cannot open a server here", { syscall: "listen", port })));
      return this;
    }
    close(done) { later(() => { done?.(); this.emit("close"); }); return this; }
    closeAllConnections() {} closeIdleConnections() {}
    address() { return null; }
    setTimeout() { return this; } ref() { return this; } unref() { return this; }
    getConnections(done) { later(() => done(null, 0)); }
  }
  class Socket extends stream.Duplex {
    connecting = false; remoteAddress = undefined; remotePort = undefined;
    connect(...values) {
      const done = values.find((value) => typeof value === "function");
      const { host, port, path } = typeof values[0] === "object" ? values[0] : { port: values[0], host: values[1] };
      if (done) this.once("connect", done);
      this.connecting = true;
      const place = path ?? `${typeof host === "string" ? host : "localhost"}:${port}`;
      later(() => { this.connecting = false; this.destroy(failure("ECONNREFUSED", `an extension cannot open a connection here (${place}): fetch can`, { syscall: "connect", address: host, port })); });
      return this;
    }
    setTimeout() { return this; } setKeepAlive() { return this; } setNoDelay() { return this; } ref() { return this; } unref() { return this; }
    address() { return {}; }
  }
  const connect = (...values) => new Socket().connect(...values);
  Object.assign(net, { Socket, Stream: Socket, Server, connect, createConnection: connect, createServer: (options, listener) => new Server(options, listener) });

  const STATUS_CODES = { 100: "Continue", 101: "Switching Protocols", 200: "OK", 201: "Created", 202: "Accepted", 204: "No Content", 206: "Partial Content", 301: "Moved Permanently", 302: "Found", 303: "See Other", 304: "Not Modified", 307: "Temporary Redirect", 308: "Permanent Redirect", 400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 406: "Not Acceptable", 408: "Request Timeout", 409: "Conflict", 410: "Gone", 413: "Payload Too Large", 415: "Unsupported Media Type", 422: "Unprocessable Entity", 425: "Too Early", 429: "Too Many Requests", 500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout" };
  const METHODS = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"];
  class Agent extends EventEmitter { constructor(options = {}) { super(); this.options = options; this.sockets = {}; this.requests = {}; this.maxSockets = options.maxSockets ?? Infinity; } destroy() {} }
  class ServerResponse extends stream.Writable {}
  const moduleFor = (scheme) => {
    const request = (input, options, done) => (typeof options === "function" ? new ClientRequest(scheme, input, undefined, options) : new ClientRequest(scheme, input, options, done));
    return {
      request, get: (...values) => { const sent = request(...values); sent.end(); return sent; },
      Agent, globalAgent: new Agent(), ClientRequest, IncomingMessage, ServerResponse, OutgoingMessage: stream.Writable, Server,
      createServer: (options, listener) => new Server(options, listener), STATUS_CODES, METHODS, maxHeaderSize: 16384,
      validateHeaderName() {}, validateHeaderValue() {},
    };
  };

  // ---- names: the host looks them up when it sends a request
  const addressOf = (name) => (net.isIP(name) ? String(name) : String(name) === "localhost" ? "127.0.0.1" : undefined);
  const lookup = async (name, options) => {
    const address = addressOf(name);
    if (address === undefined) throw failure("ENOTFOUND", `getaddrinfo ENOTFOUND ${name}: names are looked up by fetch`, { hostname: String(name), syscall: "getaddrinfo" });
    const found = { address, family: net.isIP(address) };
    return options?.all ? [found] : found;
  };
  const resolve = async (name) => { const address = addressOf(name); if (address === undefined) throw failure("ENOTFOUND", `query ENOTFOUND ${name}`, { hostname: String(name) }); return [address]; };
  const promises = { lookup, resolve, resolve4: resolve, resolve6: resolve, reverse: resolve, setServers() {}, getServers: () => [] };
  const dns = {
    promises, setServers() {}, getServers: () => [], setDefaultResultOrder() {}, getDefaultResultOrder: () => "verbatim", NOTFOUND: "ENOTFOUND",
    lookup(name, options, done) { const call = done ?? options; lookup(name, typeof options === "object" ? options : undefined).then((found) => (Array.isArray(found) ? call(null, found) : call(null, found.address, found.family)), (error) => call(error)); },
  };
  for (const name of ["resolve", "resolve4", "resolve6", "reverse"]) dns[name] = (host, ...rest) => { const done = rest.pop(); promises[name](host).then((found) => done(null, found), (error) => done(error)); };
  const tls = { connect, TLSSocket: Socket, Server, createServer: (options, listener) => new Server(options, listener), createSecureContext: () => ({}), checkServerIdentity: () => undefined, rootCertificates: [], DEFAULT_MIN_VERSION: "TLSv1.2", DEFAULT_MAX_VERSION: "TLSv1.3" };
  // ---- undici: the host makes connections, so that its agents have nothing to do
  class Dispatcher extends EventEmitter { constructor(options) { super(); this.options = options; } compose() { return this; } async close() {} async destroy() {} }
  class UndiciAgent extends Dispatcher {}
  let dispatcher = new UndiciAgent();
  const { fetch, Headers, Request, Response, FormData } = globalThis;
  const undici = {
    fetch, Headers, Request, Response, FormData, Dispatcher, Agent: UndiciAgent, Client: class Client extends Dispatcher {}, Pool: class Pool extends Dispatcher {},
    ProxyAgent: class ProxyAgent extends Dispatcher {}, EnvHttpProxyAgent: class EnvHttpProxyAgent extends Dispatcher {},
    getGlobalDispatcher: () => dispatcher, setGlobalDispatcher: (given) => { dispatcher = given; }, install() {},
    async request(target, options = {}) {
      const answer = await fetch(String(target), { method: options.method, headers: options.headers, body: options.body ?? undefined, signal: options.signal });
      return { statusCode: answer.status, headers: Object.fromEntries(answer.headers), trailers: {}, opaque: options.opaque, body: Object.assign(stream.Readable.from([Buffer.from(await answer.clone().arrayBuffer())]), { text: () => answer.text(), json: () => answer.json(), arrayBuffer: () => answer.arrayBuffer() }) };
    },
  };
  return { http: moduleFor("http:"), https: moduleFor("https:"), dns, "dns/promises": promises, tls, undici };
})
