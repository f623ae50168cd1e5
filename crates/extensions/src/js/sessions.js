// Entries of a session and messages, as `pi-coding-agent` lets extensions read them: what of a path the model sees,
// and texts made of messages. Evaluated as a function; returns those functions.
(function () {
  "use strict";
  const partsOf = (content) => (typeof content === "string" ? [{ type: "text", text: content }] : content ?? []);
  const textOf = (content) => partsOf(content).filter((part) => part.type === "text").map((part) => part.text).join("\n");
  const timeOf = (entry) => new Date(entry.timestamp).getTime();
  const COMPACTION_SUMMARY_PREFIX = "The conversation history before this point was compacted into the following summary:\n\n<summary>\n";
  const COMPACTION_SUMMARY_SUFFIX = "\n</summary>";
  const BRANCH_SUMMARY_PREFIX = "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n";
  const BRANCH_SUMMARY_SUFFIX = "</summary>";
  const userText = (text, timestamp) => [{ role: "user", content: [{ type: "text", text }], timestamp }];

  // ---- messages
  function bashExecutionToText({ command, output, exitCode, cancelled, truncated, fullOutputPath }) {
    let text = `Ran \`${command}\`\n${output ? `\`\`\`\n${output}\n\`\`\`` : "(no output)"}`;
    if (cancelled) text += "\n\n(command cancelled)";
    else if (exitCode !== null && exitCode !== undefined && exitCode !== 0) text += `\n\nCommand exited with code ${exitCode}`;
    return truncated && fullOutputPath ? `${text}\n\n[Output truncated. Full output: ${fullOutputPath}]` : text;
  }
  const convertToLlm = (messages) => messages.flatMap((message) => {
    switch (message.role) {
      case "custom": return [{ role: "user", content: partsOf(message.content), timestamp: message.timestamp }];
      case "bashExecution": return message.excludeFromContext ? [] : userText(bashExecutionToText(message), message.timestamp);
      case "compactionSummary": return userText(COMPACTION_SUMMARY_PREFIX + message.summary + COMPACTION_SUMMARY_SUFFIX, message.timestamp);
      case "branchSummary": return userText(BRANCH_SUMMARY_PREFIX + message.summary + BRANCH_SUMMARY_SUFFIX, message.timestamp);
      case "user": case "assistant": case "toolResult": return [message];
      default: return [];
    }
  });
  const RESULT_LENGTH = 2000;
  const shortened = (text) => (text.length > RESULT_LENGTH ? `${text.slice(0, RESULT_LENGTH)}\n\n[... ${text.length - RESULT_LENGTH} more characters truncated]` : text);
  const serializeConversation = (messages) => messages.flatMap((message) => {
    const text = textOf(message.content);
    if (message.role === "user") return text ? [`[User]: ${text}`] : [];
    if (message.role === "toolResult") return text ? [`[Tool result]: ${shortened(text)}`] : [];
    if (message.role !== "assistant") return [];
    const thoughts = partsOf(message.content).filter((part) => part.type === "thinking").map((part) => part.thinking).join("\n");
    const calls = partsOf(message.content).filter((part) => part.type === "toolCall").map((part) => `${part.name}(${Object.entries(part.arguments ?? {}).map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(", ")})`);
    return [...(thoughts ? [`[Assistant thinking]: ${thoughts}`] : []), ...(text ? [`[Assistant]: ${text}`] : []), ...(calls.length ? [`[Assistant tool calls]: ${calls.join("; ")}`] : [])];
  }).join("\n\n");
  const calculateContextTokens = (usage) => usage.totalTokens || usage.input + usage.output + usage.cacheRead + usage.cacheWrite;
  const IMAGE_CHARACTERS = 4800;
  // Four characters are taken for a token.
  function estimateTokens(message) {
    const lengthOf = (part) => (part.type === "text" ? part.text.length : part.type === "thinking" ? part.thinking.length : part.type === "toolCall" ? part.name.length + JSON.stringify(part.arguments).length : part.type === "image" ? IMAGE_CHARACTERS : 0);
    const characters = message.role === "bashExecution" ? message.command.length + message.output.length : message.summary !== undefined ? message.summary.length : partsOf(message.content).reduce((sum, part) => sum + lengthOf(part), 0);
    return Math.ceil(characters / 4);
  }
  const hasUsage = (message) => message?.role === "assistant" && message.usage && !["aborted", "error"].includes(message.stopReason);
  const getLastAssistantUsage = (entries) => entries.findLast((entry) => hasUsage(entry.message))?.message.usage;
  function estimateContextTokens(messages) {
    const at = messages.findLastIndex(hasUsage);
    const usageTokens = at < 0 ? 0 : calculateContextTokens(messages[at].usage);
    const trailingTokens = messages.slice(at + 1).reduce((sum, message) => sum + estimateTokens(message), 0);
    return { tokens: usageTokens + trailingTokens, usageTokens, trailingTokens, lastUsageIndex: at < 0 ? null : at };
  }
  const DEFAULT_COMPACTION_SETTINGS = { enabled: true, reserveTokens: 16384, keepRecentTokens: 20000 };
  const shouldCompact = (tokens, window, settings = DEFAULT_COMPACTION_SETTINGS) => settings.enabled !== false && tokens > window - settings.reserveTokens;

  // ---- entries
  function pathOf(entries, leafId, byId) {
    const known = byId ?? new Map(entries.map((entry) => [entry.id, entry]));
    if (leafId === null) return [];
    const path = [];
    for (let entry = leafId === undefined ? entries.at(-1) : known.get(leafId); entry; entry = known.get(entry.parentId)) path.unshift(entry);
    return path;
  }
  const getLatestCompactionEntry = (entries) => entries.findLast((entry) => entry.type === "compaction") ?? null;
  // What of a path the model sees: the last summary, what it kept, and what came after it.
  function buildContextEntries(entries, leafId, byId) {
    const path = pathOf(entries, leafId, byId);
    const compaction = getLatestCompactionEntry(path);
    if (!compaction) return path;
    const at = path.indexOf(compaction);
    const kept = path.findIndex((entry) => entry.id === compaction.firstKeptEntryId);
    return [compaction, ...(kept < 0 ? [] : path.slice(kept, at)), ...path.slice(at + 1)];
  }
  function sessionEntryToContextMessages(entry) {
    const timestamp = timeOf(entry);
    switch (entry.type) {
      case "message": return [entry.message];
      case "custom_message": return [{ role: "custom", customType: entry.customType, content: entry.content, display: entry.display, details: entry.details, timestamp }];
      case "compaction": return [{ role: "compactionSummary", summary: entry.summary, tokensBefore: entry.tokensBefore, timestamp }];
      case "branch_summary": return entry.summary ? [{ role: "branchSummary", summary: entry.summary, fromId: entry.fromId, timestamp }] : [];
      default: return [];
    }
  }
  function buildSessionProjection(entries, leafId, byId) {
    const path = pathOf(entries, leafId, byId);
    const shown = buildContextEntries(entries, leafId, byId).map((sourceEntry) => ({ sourceEntry, messages: sessionEntryToContextMessages(sourceEntry) }));
    const answer = path.findLast((entry) => entry.type === "message" && entry.message.role === "assistant" && entry.message.model);
    const chosen = path.findLast((entry) => entry.type === "model_change");
    const isLater = chosen && (!answer || path.indexOf(chosen) > path.indexOf(answer));
    const model = isLater ? { provider: chosen.provider, modelId: chosen.modelId } : answer ? { provider: answer.message.provider, modelId: answer.message.model } : null;
    return { entries: shown, messages: shown.flatMap(({ messages }) => messages), thinkingLevel: path.findLast((entry) => entry.type === "thinking_level_change")?.thinkingLevel ?? "off", model };
  }
  function buildSessionContext(entries, leafId, byId) {
    const { messages, thinkingLevel, model } = buildSessionProjection(entries, leafId, byId);
    return { messages, thinkingLevel, model };
  }
  const parseSessionEntries = (content) => String(content).trim().split("\n").flatMap((line) => { try { return line.trim() ? [JSON.parse(line)] : []; } catch { return []; } });

  // ---- the words after a command, and a template's places for them
  function parseCommandArgs(text) {
    const words = [];
    for (const found of String(text).matchAll(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g)) words.push(found[0].replace(/"([^"]*)"|'([^']*)'/g, (_all, double, single) => double ?? single));
    return words;
  }
  const substituteArgs = (template, words) => String(template).replace(/\$\{@:(\d+)(?::(\d+))?\}|\$\{(\d+)(?::-([^}]*))?\}|\$(\d+)|\$ARGUMENTS|\$@/g, (_all, from, count, braced, usual, number) => {
    if (from !== undefined) { const start = Math.max(0, Number(from) - 1); return words.slice(start, count === undefined ? undefined : start + Number(count)).join(" "); }
    if (braced !== undefined) return words[Number(braced) - 1] || usual || "";
    return number !== undefined ? words[Number(number) - 1] ?? "" : words.join(" ");
  });

  // ---- differences of texts, line by line
  function changedLines(before, after) {
    const [old, young] = [before.split("\n"), after.split("\n")];
    let start = 0;
    while (start < old.length && start < young.length && old[start] === young[start]) start++;
    let [oldEnd, newEnd] = [old.length, young.length];
    while (oldEnd > start && newEnd > start && old[oldEnd - 1] === young[newEnd - 1]) { oldEnd--; newEnd--; }
    const [left, right] = [old.slice(start, oldEnd), young.slice(start, newEnd)];
    const script = old.slice(0, start).map((text) => [" ", text]);
    // The longest common lines, unless the texts are too long to look for them.
    if (left.length * right.length > 1_000_000) script.push(...left.map((text) => ["-", text]), ...right.map((text) => ["+", text]));
    else {
      const table = Array.from({ length: left.length + 1 }, () => new Uint32Array(right.length + 1));
      for (let i = left.length - 1; i >= 0; i--) for (let j = right.length - 1; j >= 0; j--) table[i][j] = left[i] === right[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
      let [i, j] = [0, 0];
      while (i < left.length || j < right.length) {
        if (i < left.length && j < right.length && left[i] === right[j]) { script.push([" ", left[i++]]); j++; } else if (i < left.length && (j >= right.length || table[i + 1][j] >= table[i][j + 1])) script.push(["-", left[i++]]);
        else script.push(["+", right[j++]]);
      }
    }
    return [...script, ...old.slice(oldEnd).map((text) => [" ", text])];
  }
  // Each line with its number; lines that did not change only near those that did.
  function generateDiffString(before, after, context = 4) {
    const script = changedLines(before, after);
    const near = script.map(([sign], at) => sign !== " " || script.slice(Math.max(0, at - context), at + context + 1).some(([other]) => other !== " "));
    const width = String(Math.max(before.split("\n").length, after.split("\n").length)).length;
    const lines = [];
    let [oldNumber, newNumber, firstChangedLine] = [1, 1, undefined];
    script.forEach(([sign, text], at) => {
      if (sign !== " ") firstChangedLine ??= newNumber;
      const number = sign === "+" ? newNumber : oldNumber;
      if (near[at]) lines.push(`${sign}${String(number).padStart(width)} ${text}`);
      else if (at === 0 || near[at - 1]) lines.push(` ${" ".repeat(width)} ...`);
      if (sign !== "+") oldNumber++;
      if (sign !== "-") newNumber++;
    });
    return { diff: lines.join("\n"), firstChangedLine };
  }
  function generateUnifiedPatch(name, before, after, context = 4) {
    const script = changedLines(before.replace(/\n$/, ""), after.replace(/\n$/, ""));
    const out = [`--- ${name}`, `+++ ${name}`];
    let [oldNumber, newNumber] = [1, 1];
    for (let at = 0; at < script.length; ) {
      const next = script.findIndex(([sign], index) => index >= at && sign !== " ");
      if (next < 0) break;
      const from = Math.max(at, next - context);
      let end = next;
      for (let index = next; index < script.length && index - end <= 2 * context; index++) if (script[index][0] !== " ") end = index;
      const to = Math.min(script.length, end + context + 1);
      const count = (signs, start, stop) => script.slice(start, stop).filter(([sign]) => signs.includes(sign)).length;
      oldNumber += count(" -", at, from);
      newNumber += count(" +", at, from);
      const [oldCount, newCount] = [count(" -", from, to), count(" +", from, to)];
      out.push(`@@ -${oldNumber},${oldCount} +${newNumber},${newCount} @@`, ...script.slice(from, to).map(([sign, text]) => sign + text));
      oldNumber += oldCount;
      newNumber += newCount;
      at = to;
    }
    return `${out.join("\n")}\n`;
  }
  return {
    partsOf, textOf, bashExecutionToText, convertToLlm, serializeConversation, calculateContextTokens, estimateTokens, estimateContextTokens, getLastAssistantUsage, DEFAULT_COMPACTION_SETTINGS, shouldCompact,
    getLatestCompactionEntry, buildContextEntries, buildSessionProjection, buildSessionContext, sessionEntryToContextMessages, parseSessionEntries, migrateSessionEntries() {}, parseCommandArgs, substituteArgs, generateDiffString, generateUnifiedPatch,
    COMPACTION_SUMMARY_PREFIX, COMPACTION_SUMMARY_SUFFIX, BRANCH_SUMMARY_PREFIX, BRANCH_SUMMARY_SUFFIX,
  };
})
