// `node:child_process`: every program goes through the host, which asks. Evaluated as a function; its
// result makes the module.
(function (native, platform, parts) {
  "use strict";
  const { EventEmitter, promisify } = parts;
  const { Buffer, binary, decodeText, well } = platform;
  const bytesOf = (value) => (typeof value === "string" ? decodeText(value) : value);
  const textOrBytes = (bytes, encoding) => (encoding === undefined || encoding === "buffer" || encoding === null ? bytes : bytes.toString(encoding));

  // Variables that differ from those that every program has.
  const changedVariables = (given = platform.ownVariables()) => {
    const usual = platform.usualVariables();
    return Object.fromEntries(Object.entries(given).filter(([name, value]) => value !== undefined && usual[name] !== String(value)).map(([name, value]) => [name, String(value)]));
  };
  const request = (file, args, options, input) => ({
    command: well(file), args: args.map(well), cwd: options.cwd === undefined ? undefined : String(options.cwd instanceof URL ? options.cwd.pathname : options.cwd),
    timeout: options.timeout, env: changedVariables(options.env), input: input === undefined ? undefined : native.toBase64(binary(bytesOf(input))), bytes: true,
  });
  // What was printed, as bytes.
  const printed = (result) => ({ ...result, stdout: Buffer.from(native.fromBase64(result.stdout)), stderr: Buffer.from(native.fromBase64(result.stderr)) });
  // A program that the host has ended, as it does after some time or some output, has no code.
  const endOf = (result) => (result.signal || result.killed ? [null, result.signal ?? "SIGTERM"] : [result.code, null]);
  const HOST_BYTES = 4 << 20;
  const ended = (file, list, result) => {
    const [code, errno] = [result.stdout, result.stderr].some((bytes) => bytes.length >= HOST_BYTES) ? ["ENOBUFS", -105] : ["ETIMEDOUT", -110];
    return Object.assign(new Error(`spawnSync ${file} ${code}`), { errno, code, syscall: `spawnSync ${file}`, path: file, spawnargs: list });
  };
  const abortError = (reason) => Object.assign(new Error("The operation was aborted", { cause: reason }), { name: "AbortError", code: "ABORT_ERR" });
  // A program that is not there.
  const absent = (verb, file, list) => Object.assign(new Error(`${verb} ${file} ENOENT`), { errno: -2, code: "ENOENT", syscall: `${verb} ${file}`, path: file, spawnargs: list });
  const failure = (command, result) => Object.assign(new Error(`Command failed: ${command}${result.stderr.length ? `\n${result.stderr}` : ""}`), { code: endOf(result)[0], status: endOf(result)[0], signal: endOf(result)[1], killed: result.killed, cmd: command, stdout: result.stdout, stderr: result.stderr });

  // (file, args?, options?) and (command, options?) as one form
  const listOf = (args, options) => (Array.isArray(args) ? [args.map(String), options ?? {}] : [[], args ?? {}]);
  const fileForm = (file, args, options) => {
    const [list, given] = listOf(args, options);
    return given.shell ? shellForm([file, ...list].join(" "), given) : { file: String(file), list, given, text: [file, ...list].join(" ") };
  };
  const shellForm = (command, options) => ({ file: "sh", list: ["-c", String(command)], given: options ?? {}, text: String(command) });

  class Input extends EventEmitter {
    parts = [];
    writable = true;
    constructor(ended) { super(); this.ended = ended; }
    write(part, encoding, done) { this.parts.push(Buffer.from(bytesOf(part))); (typeof encoding === "function" ? encoding : done)?.(); return true; }
    end(part) { if (part !== undefined && typeof part !== "function") this.write(part); this.writable = false; this.ended(); return this; }
    destroy() { this.end(); }
  }
  class Output extends EventEmitter {
    readable = true;
    encoding = undefined;
    setEncoding(encoding) { this.encoding = encoding; return this; }
    deliver(bytes) {
      if (bytes.length) this.emit("data", textOrBytes(bytes, this.encoding));
      this.emit("end");
      this.emit("close");
    }
    pipe(target) { this.on("data", (part) => target.write(part)); this.on("end", () => { if (target !== process.stdout && target !== process.stderr) target.end?.(); }); return target; }
    resume() { return this; } pause() { return this; } destroy() { return this; } unref() { return this; }
    async *[Symbol.asyncIterator]() {
      const parts = await new Promise((resolve) => { const all = []; this.on("data", (part) => all.push(part)); this.on("end", () => resolve(all)); });
      yield* parts;
    }
  }
  // Above the numbers that the system gives.
  let lastPid = 1 << 22;
  platform.children = new Map();
  function start({ file, list, given, text }, waitsForInput) {
    const child = new EventEmitter();
    let call;
    let isOver = false;
    const end = (code, signal) => {
      if (isOver) return;
      isOver = true;
      child.exitCode = code;
      child.signalCode = signal;
      given.signal?.removeEventListener("abort", abort);
      platform.children.delete(child.pid);
      child.emit("exit", code, signal);
      child.emit("close", code, signal);
    };
    const run = () => {
      if (call || isOver) return;
      const input = child.stdin.parts.length ? Buffer.concat(child.stdin.parts) : undefined;
      call = platform.call("exec", request(file, list, given, input));
      call.then((result) => {
        if (isOver) return;
        if (result.missing) { fail(absent("spawn", file, list)); return; }
        const all = printed(result);
        child.stdout.deliver(all.stdout);
        child.stderr.deliver(all.stderr);
        child.result?.(all, text);
        end(...endOf(result));
      }, fail);
    };
    const fail = (error) => {
      if (isOver) return;
      isOver = true;
      platform.children.delete(child.pid);
      child.failed?.(error);
      if (child.listenerCount("error")) child.emit("error", error);
      child.exitCode = -2;
      child.stdout.deliver(Buffer.alloc(0));
      child.stderr.deliver(Buffer.alloc(0));
      child.emit("close", -2, null);
    };
    const kill = (wanted = "SIGTERM", error = undefined) => {
      if (isOver) return false;
      child.killed = true;
      const signal = typeof wanted === "string" ? wanted : "SIGTERM";
      if (call) platform.cancel(call);
      if (error && child.listenerCount("error")) child.emit("error", error);
      child.stdout.deliver(Buffer.alloc(0));
      child.stderr.deliver(Buffer.alloc(0));
      if (error) child.failed?.(error);
      else child.result?.({ stdout: Buffer.alloc(0), stderr: Buffer.alloc(0), code: 143, signal, killed: true }, text);
      end(null, signal);
      return true;
    };
    const abort = () => { kill(given.killSignal, abortError(given.signal.reason)); };
    const stdio = Array.isArray(given.stdio) ? given.stdio[0] : given.stdio;
    Object.assign(child, { stdin: new Input(run), stdout: new Output(), stderr: new Output(), pid: ++lastPid, killed: false, exitCode: null, signalCode: null, spawnfile: file, spawnargs: [file, ...list], connected: false, kill: (signal) => kill(signal), ref() { return child; }, unref() { return child; }, disconnect() {} });
    child.stdio = [child.stdin, child.stdout, child.stderr];
    platform.children.set(child.pid, child);
    given.signal?.addEventListener("abort", abort, { once: true });
    if (given.signal?.aborted) queueMicrotask(abort);
    // A program starts when its input is there: at its end, or at once where none is given.
    queueMicrotask(() => {
      child.emit("spawn");
      if (!waitsForInput || stdio === "ignore" || stdio === "inherit" || child.stdin.parts.length === 0) run();
    });
    return child;
  }

  const withCallback = (form) => (...values) => {
    const done = typeof values[values.length - 1] === "function" ? values.pop() : () => {};
    const what = form(...values);
    const encoding = what.given.encoding === undefined ? "utf8" : what.given.encoding;
    const child = start(what, true);
    child.result = (all, text) => {
      const result = { ...all, stdout: textOrBytes(all.stdout, encoding), stderr: textOrBytes(all.stderr, encoding) };
      done(endOf(result)[0] === 0 ? null : failure(text, result), result.stdout, result.stderr);
    };
    child.failed = (error) => done(error, "", "");
    return child;
  };
  const asPromise = (work) => (...values) => new Promise((resolve, reject) => work(...values, (error, stdout, stderr) => (error ? reject(error) : resolve({ stdout, stderr }))));
  const promised = (work) => Object.assign(work, { [promisify.custom]: asPromise(work) });

  function runNow({ file, list, given, text }) {
    const result = printed(JSON.parse(native.wait("exec", JSON.stringify(request(file, list, given, given.input)))));
    const show = (bytes) => textOrBytes(bytes, given.encoding);
    if (result.missing) result.error = absent("spawnSync", file, list);
    else if (result.killed) result.error = ended(file, list, result);
    return { ...result, stdout: show(result.stdout), stderr: show(result.stderr), text };
  }
  const outputNow = (form) => (...values) => {
    const result = runNow(form(...values));
    if (result.error) throw Object.assign(result.error, { status: null, signal: result.missing ? null : endOf(result)[1], stdout: result.stdout, stderr: result.stderr });
    if (result.code !== 0) throw failure(result.text, result);
    return result.stdout;
  };
  return {
    exec: promised(withCallback(shellForm)),
    execFile: promised(withCallback(fileForm)),
    spawn: (file, args, options) => start(fileForm(file, args, options), true),
    execSync: outputNow(shellForm),
    execFileSync: outputNow(fileForm),
    spawnSync(file, args, options) {
      const result = runNow(fileForm(file, args, options));
      if (result.missing) return { pid: 0, status: null, signal: null, stdout: null, stderr: null, output: null, error: result.error };
      const [status, signal] = endOf(result);
      const error = result.error ? { error: result.error } : {};
      return { pid: 0, status, signal, stdout: result.stdout, stderr: result.stderr, output: [null, result.stdout, result.stderr], ...error };
    },
    fork() { throw new Error("child_process.fork is not available in an extension"); },
    ChildProcess: EventEmitter,
  };
})
