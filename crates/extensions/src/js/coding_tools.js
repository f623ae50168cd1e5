// The tools of `pi-coding-agent` as an extension wraps them: they read, write and run through what the host allows,
// or through operations that the extension gives. Evaluated as a function of the built-in modules, which it completes.
(function (platform, builtIn) {
  "use strict";
  const codingAgent = builtIn("coding-agent");
  const fs = builtIn("fs").promises;
  const path = builtIn("path");
  const { Type } = builtIn("typebox");
  const MAX_LINES = 2000;
  const MAX_BYTES = 50 * 1024;
  const MAX_LINE_CHARACTERS = 2000;
  const textPart = (text) => ({ type: "text", text });
  const answer = (text, details) => ({ content: [textPart(text)], details });
  const placeOf = (folder, name) => path.resolve(folder, String(name).replace(/^@/, ""));
  // A path as people write it: from the folder, if it is below it.
  const shownName = (folder, place) => { const below = path.relative(folder, place); return below === "" || below.startsWith("..") ? place : below; };
  const withNotices = (text, notices) => (notices.length === 0 ? text : `${text}${text === "" || text.endsWith("\n") ? "" : "\n"}[${notices.join("; ")}]`);
  const detailsOf = (details) => (Object.values(details).some((value) => value !== undefined) ? details : undefined);
  const optional = (type, description, more) => Type.Optional(type({ description, ...more }));

  // ---- images
  function imageTypeOf(bytes) {
    const begin = Buffer.from(bytes.subarray(0, 12));
    const kinds = [["image/png", begin.subarray(0, 4).toString("hex") === "89504e47"], ["image/jpeg", begin.subarray(0, 3).toString("hex") === "ffd8ff"], ["image/gif", begin.subarray(0, 4).toString("latin1") === "GIF8"], ["image/webp", begin.subarray(0, 4).toString("latin1") === "RIFF" && begin.subarray(8, 12).toString("latin1") === "WEBP"]];
    return kinds.find(([, isMeant]) => isMeant)?.[0];
  }
  codingAgent.detectSupportedImageMimeTypeFromFile = async (file) => imageTypeOf(await fs.readFile(file)) ?? null;

  // ---- read: what it shows is what the built-in tool shows, because by that Hardpan knows what the model has seen
  const cutLine = (line) => {
    if (line.length <= MAX_LINE_CHARACTERS) return line;
    const end = /[\r\n]*$/.exec(line)[0];
    const signs = [...line.slice(0, line.length - end.length)];
    return signs.length <= MAX_LINE_CHARACTERS ? line : `${signs.slice(0, MAX_LINE_CHARACTERS).join("")}…[${signs.length - MAX_LINE_CHARACTERS} more characters]${end}`;
  };
  function pageOf(text, shown, offset, limit) {
    const lines = text.split("\n").map((line) => `${line}\n`);
    // A newline at the end begins no line.
    const last = lines.pop().slice(0, -1);
    if (last !== "") lines.push(last);
    const first = Math.max(1, Math.trunc(offset ?? 1));
    if (first > lines.length && first > 1) throw new Error(`${shown} has only ${lines.length} ${lines.length === 1 ? "line" : "lines"}: offset ${first} is past its end.`);
    const wanted = lines.slice(first - 1, first - 1 + Math.max(1, Math.trunc(limit ?? MAX_LINES)));
    const kept = [];
    let bytes = 0;
    for (const line of wanted.map(cutLine)) {
      const size = Buffer.byteLength(line);
      if (kept.length && bytes + size > MAX_BYTES) break;
      kept.push(line);
      bytes += size;
    }
    const end = first - 1 + kept.length;
    const notices = [];
    if (lines.length === 0) notices.push(`${shown} is empty`);
    else if (first > 1 || end < lines.length) notices.push(`lines ${first}-${end} of ${lines.length}`);
    if (end < lines.length) notices.push(`go on with offset=${end + 1}`);
    // Without a limit of its own, the call asked for all that follows.
    const truncation = end < lines.length && (limit === undefined || kept.length < wanted.length) ? codingAgent.truncateHead(lines.slice(first - 1).join("")) : undefined;
    return answer(withNotices(kept.join(""), notices), detailsOf({ truncation }));
  }

  // ---- bash
  // How long the host lets a program run, and how much of each stream it keeps.
  const HOST_SECONDS = 600;
  const HOST_BYTES = 4 << 20;
  const localOperations = {
    async exec(command, cwd, { onData, timeout, signal, env } = {}) {
      if (signal?.aborted) throw new Error("aborted");
      const usual = process.env;
      const changed = env ? Object.fromEntries(Object.entries(env).filter(([name, value]) => value !== undefined && usual[name] !== value)) : undefined;
      const running = platform.call("exec", { command: "bash", args: ["-c", command], cwd, env: changed, timeout: timeout > 0 ? timeout * 1000 : undefined });
      const result = await new Promise((resolve, reject) => {
        // What is cancelled never settles.
        const abort = () => { platform.cancel(running); reject(new Error("aborted")); };
        signal?.addEventListener("abort", abort, { once: true });
        running.then(resolve, reject).finally(() => signal?.removeEventListener("abort", abort));
      });
      for (const part of [result.stdout, result.stderr]) if (part) onData?.(Buffer.from(part));
      if (!result.killed) return { exitCode: result.code };
      const isFull = [result.stdout, result.stderr].some((printed) => Buffer.byteLength(printed) >= HOST_BYTES);
      throw new Error(isFull ? `Command ended: its output has more than ${codingAgent.formatSize(HOST_BYTES)}` : `timeout:${timeout > 0 ? Math.min(timeout, HOST_SECONDS) : HOST_SECONDS}`);
    },
  };
  // The whole output in a file of the extension's own; undefined where it has no folder.
  function keepOutput(output) {
    try {
      const file = path.join(builtIn("os").tmpdir(), `bash-${platform.uuid()}.log`);
      builtIn("fs").writeFileSync(file, output);
      return file;
    } catch { return undefined; }
  }
  function endOfOutput(output) {
    const truncation = codingAgent.truncateTail(output);
    if (!truncation.truncated) return { content: output, details: undefined };
    const fullOutputPath = keepOutput(output);
    const { totalLines, outputLines, outputBytes, lastLinePartial } = truncation;
    const shown = lastLinePartial ? `the last ${codingAgent.formatSize(outputBytes)} of line ${totalLines}` : `lines ${totalLines - outputLines + 1}-${totalLines} of ${totalLines}`;
    const notices = [shown, ...(fullOutputPath ? [`the whole output is in ${fullOutputPath}`] : [])];
    return { content: withNotices(truncation.content, notices), details: { truncation, fullOutputPath } };
  }
  const failureOf = (content, status) => new Error(content.trim() === "" ? status : `${content.replace(/\n+$/, "")}\n\n${status}`);
  const statusOf = (error) => {
    const message = String(error?.message ?? error);
    const [, seconds] = /^timeout:(.*)$/.exec(message) ?? [];
    return message === "aborted" ? "Command aborted" : seconds === undefined ? undefined : `Command timed out after ${seconds} seconds`;
  };
  const UPDATE_INTERVAL = 100;
  // Collects what a command prints, and shows the end of it now and then.
  function outputOf(onUpdate) {
    const decoder = new TextDecoder();
    let shownAt = -Infinity;
    let isShown = true;
    const output = {
      text: "",
      show() {
        isShown = true;
        shownAt = performance.now();
        const truncation = codingAgent.truncateTail(output.text.slice(-MAX_BYTES));
        onUpdate?.({ content: [textPart(truncation.content)], details: truncation.content.length < output.text.length ? { truncation } : undefined });
      },
      take(part) {
        output.text += typeof part === "string" ? part : decoder.decode(part, { stream: true });
        isShown = false;
        if (performance.now() - shownAt >= UPDATE_INTERVAL) output.show();
      },
      finish() { if (!isShown) output.show(); },
    };
    return output;
  }

  // ---- grep with operations of the extension: names come from the machine, contents from where it says
  async function searchWith(operations, { pattern, literal, ignoreCase, context = 0 }, files, nameFor, limit) {
    const expression = new RegExp(literal ? pattern.replace(/[.*+?^${}()|[\]\\]/g, "\\$&") : pattern, ignoreCase ? "i" : "");
    const found = [];
    let matches = 0;
    for (const file of files) {
      const lines = String(await operations.readFile(file)).split(/\r?\n/);
      const wanted = new Map();
      lines.forEach((line, at) => {
        if (matches >= limit || !expression.test(line)) return;
        matches++;
        for (let near = Math.max(0, at - context); near <= Math.min(lines.length - 1, at + context); near++) if (!wanted.has(near)) wanted.set(near, "-");
        wanted.set(at, ":");
      });
      for (const [at, mark] of [...wanted].sort(([one], [other]) => one - other)) found.push(`${nameFor(file)}${mark}${at + 1}${mark}${lines[at]}`);
    }
    return found;
  }
  // A list with what is said about the rest of it.
  function listed(lines, limit, nothing, limitName) {
    if (lines.length === 0) return answer(nothing);
    const isCut = lines.length > limit;
    const truncation = codingAgent.truncateHead(lines.slice(0, limit).join("\n"), { maxLines: Infinity });
    const notices = [];
    if (isCut || truncation.truncated) notices.push(`the first ${truncation.outputLines} of ${lines.length}; narrow what you ask for${truncation.truncated ? "" : ", or raise limit"}`);
    return answer(withNotices(truncation.content, notices), detailsOf({ truncation: truncation.truncated ? truncation : undefined, [limitName]: isCut ? limit : undefined }));
  }
  const LEFT_OUT = [".git", "node_modules"];

  // ---- edit: the text with newlines alone, and back again
  function replaceIn(content, edits, name) {
    const isWindows = content.includes("\r\n") && !/(^|[^\r])\n/.test(content);
    const plain = (text) => (isWindows ? String(text).replaceAll("\r\n", "\n") : String(text));
    const before = plain(content);
    const found = edits.map(({ oldText, newText }) => {
      const wanted = plain(oldText);
      if (wanted === "") throw new Error(`oldText is empty: it must be text that ${name} has`);
      const at = before.indexOf(wanted);
      let count = 0;
      for (let next = at; next >= 0; next = before.indexOf(wanted, next + 1)) count++;
      if (count !== 1) throw new Error(`The text to replace is there ${count} times in ${name}: it must be there once`);
      return { at, end: at + wanted.length, newText: plain(newText) };
    });
    found.sort((one, other) => one.at - other.at);
    let after = "";
    let from = 0;
    for (const { at, end, newText } of found) {
      if (at < from) throw new Error(`Two of the edits overlap in ${name}: make one edit of them`);
      after += before.slice(from, at) + newText;
      from = end;
    }
    after += before.slice(from);
    if (after === before) throw new Error(`The edits change nothing in ${name}`);
    return { before, after, written: isWindows ? after.replaceAll("\n", "\r\n") : after };
  }

  const definitions = {
    Read: (folder, { operations = {} }) => ({
      name: "read", label: "read",
      description: "Read a text file, or look at an image (PNG, JPEG, GIF, WebP). You get up to 2000 lines or 50 KB, whichever is less, without line numbers; a last line in brackets says which lines these are and how to go on.",
      parameters: Type.Object({
        path: Type.String({ description: "The file, from the working directory or absolute" }),
        offset: optional(Type.Number, "First line to show, counted from 1"),
        limit: optional(Type.Number, "Most lines to show"),
      }),
      async execute(_id, { path: name, offset, limit }, signal) {
        signal?.throwIfAborted();
        const place = placeOf(folder, name);
        await operations.access?.(place);
        const content = await (operations.readFile ?? fs.readFile)(place);
        const bytes = typeof content === "string" ? Buffer.from(content) : Buffer.from(content.buffer, content.byteOffset, content.byteLength);
        const shown = shownName(folder, place);
        const kind = operations.detectImageMimeType ? await operations.detectImageMimeType(place) : imageTypeOf(bytes);
        if (kind) return { content: [textPart(`${shown}: ${kind}`), { type: "image", data: bytes.toString("base64"), mimeType: kind }], details: undefined };
        return pageOf(bytes.toString("utf8"), shown, offset, limit);
      },
    }),
    Write: (folder, { operations = {} }) => ({
      name: "write", label: "write",
      description: "Write a whole file: it is created, with the folders above it, or overwritten. To change part of a file, use edit.",
      parameters: Type.Object({ path: Type.String({ description: "The file, from the working directory or absolute" }), content: Type.String({ description: "All that the file is to hold" }) }),
      async execute(_id, { path: name, content }) {
        const place = placeOf(folder, name);
        return codingAgent.withFileMutationQueue(place, async () => {
          await (operations.mkdir ?? ((parent) => fs.mkdir(parent, { recursive: true })))(path.dirname(place));
          await (operations.writeFile ?? fs.writeFile)(place, content);
          return answer(`Successfully wrote ${Buffer.byteLength(content)} bytes to ${name}`);
        });
      },
    }),
    Edit: (folder, { operations = {} }) => ({
      name: "edit", label: "edit",
      description: "Replace text in a file. Each oldText must be in the file exactly once, white space included. All edits are matched against the file as it is now, must not overlap, and are made together or not at all.",
      parameters: Type.Object({
        path: Type.String({ description: "The file, from the working directory or absolute" }),
        edits: Type.Array(Type.Object({ oldText: Type.String({ description: "Text that is in the file once" }), newText: Type.String({ description: "What comes in its place" }) }), { description: "One or more replacements" }),
      }),
      // Earlier releases had one edit, without a list.
      prepareArguments: ({ oldText, newText, ...rest }) => (rest.edits === undefined && oldText !== undefined ? { ...rest, edits: [{ oldText, newText }] } : rest),
      async execute(_id, { path: name, edits, oldText, newText }) {
        const place = placeOf(folder, name);
        return codingAgent.withFileMutationQueue(place, async () => {
          await operations.access?.(place);
          const content = (await (operations.readFile ?? fs.readFile)(place)).toString("utf8");
          const { before, after, written } = replaceIn(content, edits ?? [{ oldText, newText }], name);
          await (operations.writeFile ?? fs.writeFile)(place, written);
          const { diff, firstChangedLine } = codingAgent.generateDiffString(before, after);
          return answer(`Successfully replaced text in ${name}.`, { diff, patch: codingAgent.generateUnifiedPatch(name, before, after), firstChangedLine });
        });
      },
    }),
    Bash: (folder, { operations = {}, spawnHook, commandPrefix }) => ({
      name: "bash", label: "bash",
      description: "Run a bash command in the working directory. You get what it prints, standard output and errors; of long output the last 2000 lines or 50 KB, and a file with all of it.",
      parameters: Type.Object({ command: Type.String({ description: "The command line" }), timeout: optional(Type.Number, "Seconds after which the command is ended") }),
      async execute(_id, { command, timeout }, signal, onUpdate) {
        const whole = commandPrefix ? `${commandPrefix}\n${command}` : command;
        const start = spawnHook ? spawnHook({ command: whole, cwd: folder, env: { ...process.env } }) : { command: whole, cwd: folder, env: undefined };
        const output = outputOf(onUpdate);
        const run = operations.exec ?? localOperations.exec;
        let end = {};
        let error;
        try { end = (await run(start.command, start.cwd, { onData: output.take, signal, timeout, env: start.env })) ?? {}; } catch (thrown) { error = thrown; }
        output.finish();
        const { content, details } = endOfOutput(output.text);
        if (error !== undefined) {
          const status = statusOf(error);
          if (status === undefined && output.text === "") throw error;
          throw failureOf(content, status ?? String(error?.message ?? error));
        }
        if (signal?.aborted) throw failureOf(content, "Command aborted");
        const { exitCode } = end;
        if (exitCode !== 0 && exitCode !== null && exitCode !== undefined) throw failureOf(content, `Command exited with code ${exitCode}`);
        return answer(content || "(no output)", details);
      },
    }),
    Ls: (folder, { operations = {} }) => ({
      name: "ls", label: "ls",
      description: "List a folder, hidden files too, sorted by name; folders end with a slash. At most 500 entries, unless limit says otherwise.",
      parameters: Type.Object({ path: optional(Type.String, "Folder, by default the working directory"), limit: optional(Type.Number, "Most entries, by default 500") }),
      async execute(_id, { path: name = ".", limit = 500 }) {
        const place = placeOf(folder, name);
        if (operations.exists && !(await operations.exists(place))) throw new Error(`There is no ${name}`);
        const stat = operations.stat ?? fs.stat;
        if (operations.stat && !(await stat(place)).isDirectory()) throw new Error(`${name} is no folder`);
        const names = [...(await (operations.readdir ?? fs.readdir)(place))];
        names.sort((one, other) => (one.toLowerCase() < other.toLowerCase() ? -1 : 1));
        const lines = [];
        for (const [at, entry] of names.entries()) {
          // Of those that are not shown, nothing is asked.
          let isFolder = false;
          if (at < limit) try { isFolder = (await stat(path.join(place, entry))).isDirectory(); } catch { /* a link that leads nowhere */ }
          lines.push(entry + (isFolder ? "/" : ""));
        }
        return listed(lines, limit, "(empty directory)", "entryLimitReached");
      },
    }),
    Grep: (folder, { operations = {} }) => ({
      name: "grep", label: "grep",
      description: "Search the contents of files by a regular expression (extended syntax, within one line). You get path, line number and line; at most 100 matches unless limit says otherwise, and the first 500 characters of a line. Skips binary files, .git and node_modules.",
      parameters: Type.Object({
        pattern: Type.String({ description: "A regular expression, or plain text with literal" }),
        path: optional(Type.String, "File or folder, by default the working directory"),
        glob: optional(Type.String, "Only files of such names: *.ts"),
        ignoreCase: optional(Type.Boolean, "Take a and A for the same"),
        literal: optional(Type.Boolean, "The pattern is plain text"),
        context: optional(Type.Number, "Lines around each match"),
        limit: optional(Type.Number, "Most matches, by default 100"),
      }),
      async execute(_id, { pattern, path: name = ".", glob, ignoreCase, literal, context, limit = 100 }) {
        const place = placeOf(folder, name);
        const file = name === "." ? "." : String(name).replace(/^@/, "");
        const isFile = operations.isDirectory ? !(await operations.isDirectory(place)) : false;
        const lines = async (flags, wanted) => {
          const usual = ["-rIH", ...LEFT_OUT.map((left) => `--exclude-dir=${left}`), ...(glob ? [`--include=${String(glob).split("/").pop()}`] : [])];
          const found = await platform.call("exec", { command: "grep", args: [...usual, ...flags, "--", wanted, file], cwd: folder });
          // 1 without a word is "nothing found".
          const isFault = found.code > 1 || (found.code === 1 && found.stderr !== "");
          if (isFault && found.stdout === "") throw new Error(found.stderr.trim() || `grep ended with code ${found.code}`);
          return found.stdout.split("\n").filter((line) => line !== "").map((line) => line.replace(/^\.\//, ""));
        };
        const flags = [literal ? "-F" : "-E", ...(ignoreCase ? ["-i"] : [])];
        let found;
        if (operations.readFile) {
          const files = isFile ? [place] : (await lines(["-l"], "")).map((one) => placeOf(folder, one));
          found = await searchWith(operations, { pattern, literal, ignoreCase, context }, files, (one) => shownName(folder, one), limit + 1);
        } else found = await lines(["-n", ...flags, ...(context ? [`-C${context}`] : [])], pattern);
        return listed(found.map((line) => codingAgent.truncateLine(line).text), limit * (1 + 2 * (context ?? 0)), "No matches found", "matchLimitReached");
      },
    }),
    Find: (folder, { operations = {} }) => ({
      name: "find", label: "find",
      description: "Find files and folders by a glob: *.ts at any depth, src/**/*.ts from the folder. You get paths from that folder, at most 1000 unless limit says otherwise; folders end with a slash. Skips .git and node_modules.",
      parameters: Type.Object({
        pattern: Type.String({ description: "A glob with *, **, ? and {a,b}" }),
        path: optional(Type.String, "Folder, by default the working directory"),
        limit: optional(Type.Number, "Most paths, by default 1000"),
      }),
      async execute(_id, { pattern, path: name = ".", limit = 1000 }, signal) {
        const place = placeOf(folder, name);
        const nothing = "No files found matching pattern";
        if (operations.exists && !(await operations.exists(place))) throw new Error(`There is no ${name}`);
        if (operations.glob) {
          const found = await operations.glob(pattern, place, { ignore: LEFT_OUT.map((left) => `**/${left}/**`), limit });
          return listed(found.map((one) => { const below = path.isAbsolute(one) ? path.relative(place, one) : one; return below.replace(/^\.\//, "") + (one.endsWith("/") && !below.endsWith("/") ? "/" : ""); }), limit, nothing, "resultLimitReached");
        }
        if (!(await fs.stat(place)).isDirectory()) throw new Error(`${name} is no folder`);
        const lines = [];
        const wanted = pattern.includes("/") ? pattern : `**/${pattern}`;
        for await (const { name: below, entry } of platform.globs().walkSlowly(wanted, { cwd: place, dot: true, exclude: (one) => LEFT_OUT.includes(one) })) {
          signal?.throwIfAborted();
          lines.push(below + (entry.isDirectory() ? "/" : ""));
          if (lines.length > limit) break;
        }
        return listed(lines, limit, nothing, "resultLimitReached");
      },
    }),
  };
  for (const [name, make] of Object.entries(definitions)) {
    codingAgent[`create${name}Tool`] = (folder, options) => make(folder ?? process.cwd(), options ?? {});
    codingAgent[`create${name}ToolDefinition`] = codingAgent[`create${name}Tool`];
    codingAgent[`is${name}ToolResult`] ??= (event) => event?.toolName === name.toLowerCase();
  }
  codingAgent.createLocalBashOperations = () => localOperations;
  // Options of each tool are below its name.
  const several = (names) => (folder, options) => names.map((name) => codingAgent[`create${name}Tool`](folder, options?.[name.toLowerCase()] ?? options));
  codingAgent.createCodingTools = several(["Read", "Bash", "Edit", "Write"]);
  codingAgent.createReadOnlyTools = several(["Read", "Grep", "Find", "Ls"]);
})
