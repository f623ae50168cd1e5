// `node:assert`, and what compares values and reads arguments in `node:util`. Evaluated as a function when an extension
// first needs it; returns the modules by name.
(function (platform) {
  "use strict";
  const { inspect } = platform;
  const tagOf = (value) => Object.prototype.toString.call(value);
  // Whether two values are alike all the way down; loosely, `==` is enough for what is no object.
  function isAlike(one, other, isStrict, seen = new Map()) {
    if (Object.is(one, other)) return true;
    if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return !isStrict && (one == other || (one !== one && other !== other));
    if (isStrict && Object.getPrototypeOf(one) !== Object.getPrototypeOf(other)) return false;
    if (tagOf(one) !== tagOf(other) || Array.isArray(one) !== Array.isArray(other)) return false;
    if (seen.get(one) === other) return true;
    seen.set(one, other);
    const alike = (left, right) => isAlike(left, right, isStrict, seen);
    if (one instanceof Date && one.getTime() !== other.getTime()) return false;
    if (one instanceof RegExp && (String(one) !== String(other) || one.lastIndex !== other.lastIndex)) return false;
    if (one instanceof Error && (one.message !== other.message || one.name !== other.name)) return false;
    if (one instanceof String || one instanceof Number || one instanceof Boolean) { if (!Object.is(one.valueOf(), other.valueOf())) return false; }
    if (one instanceof Promise || one instanceof WeakMap || one instanceof WeakSet) return false;
    if (one instanceof Map) {
      if (one.size !== other.size) return false;
      for (const [key, value] of one) {
        const known = other.has(key) ? key : typeof key === "object" && key !== null ? [...other.keys()].find((candidate) => alike(key, candidate)) : undefined;
        if ((known === undefined && !other.has(key)) || !alike(value, other.get(known))) return false;
      }
    } else if (one instanceof Set) {
      if (one.size !== other.size) return false;
      for (const value of one) if (!other.has(value) && ![...other].some((candidate) => alike(value, candidate))) return false;
    }
    if (one instanceof ArrayBuffer) return alike(new Uint8Array(one), new Uint8Array(other));
    if ((Array.isArray(one) || ArrayBuffer.isView(one)) && one.length !== other.length) return false;
    const keysOf = (value) => [...Object.keys(value), ...(isStrict ? Object.getOwnPropertySymbols(value).filter((key) => Object.prototype.propertyIsEnumerable.call(value, key)) : [])];
    const keys = keysOf(one);
    return keys.length === keysOf(other).length && keys.every((key) => Object.hasOwn(other, key) && alike(one[key], other[key]));
  }

  class AssertionError extends Error {
    constructor({ message, actual, expected, operator } = {}) {
      super(message ?? `${inspect(actual)} ${operator} ${inspect(expected)}`);
      this.name = "AssertionError";
      Object.assign(this, { generatedMessage: message === undefined, code: "ERR_ASSERTION", actual, expected, operator });
    }
  }
  const require = (isTrue, message, actual, expected, operator, text) => {
    if (isTrue) return;
    if (message instanceof Error) throw message;
    throw Object.assign(new AssertionError({ message: message ?? text, actual, expected, operator }), { generatedMessage: message === undefined });
  };
  const differs = (what, actual, expected) => `Expected ${what}:\n\n${inspect(actual)} !== ${inspect(expected)}\n`;
  const ok = (...values) => require(values[0], values[1], values[0], true, "==", values.length === 0 ? "No value argument passed to `assert.ok()`" : "The expression evaluated to a falsy value");
  // Whether an error is as it was expected: a class, a pattern, a function that judges it, or fields.
  function isExpected(error, expected) {
    if (expected === undefined) return true;
    if (expected instanceof RegExp) return expected.test(String(error));
    if (typeof expected === "function") {
      if (expected.prototype !== undefined && error instanceof expected) return true;
      if (expected === Error || Error.isPrototypeOf?.(expected)) return false;
      return expected.call({}, error) === true;
    }
    return Object.keys(expected).concat(expected instanceof Error ? ["message", "name"] : []).every((key) => (expected[key] instanceof RegExp && typeof error?.[key] === "string" ? expected[key].test(error[key]) : isAlike(error?.[key], expected[key], true)));
  }
  const judge = (error, expected, message) => {
    const text = typeof expected === "string" ? expected : message;
    if (typeof expected === "string" || isExpected(error, expected)) return;
    if (text !== undefined || typeof expected !== "function") require(false, text, error, expected, "throws", `The error is not the expected one: ${inspect(error)}`);
    throw error;
  };
  const missing = (expected, message, operator) => require(false, typeof expected === "string" ? expected : message, undefined, expected, operator, operator === "throws" ? "Missing expected exception." : "Missing expected rejection.");
  const unwanted = (error, message, operator) => require(false, message, error, undefined, operator, `Got unwanted ${operator === "doesNotThrow" ? "exception" : "rejection"}.\nActual message: "${error?.message}"`);
  const settled = async (work) => { try { await (typeof work === "function" ? work() : work); return { isGood: true }; } catch (error) { return { error }; } };
  const common = {
    AssertionError, ok,
    fail(message = "Failed") { require(false, message, undefined, undefined, "fail"); },
    throws(work, expected, message) { try { work(); } catch (error) { judge(error, expected, message); return; } missing(expected, message, "throws"); },
    doesNotThrow(work, expected, message) { try { work(); } catch (error) { unwanted(error, typeof expected === "string" ? expected : message, "doesNotThrow"); } },
    async rejects(work, expected, message) { const result = await settled(work); if (result.isGood) missing(expected, message, "rejects"); else judge(result.error, expected, message); },
    async doesNotReject(work, expected, message) { const result = await settled(work); if (!result.isGood) unwanted(result.error, typeof expected === "string" ? expected : message, "doesNotReject"); },
    ifError(value) { if (value !== null && value !== undefined) throw value instanceof Error ? value : new AssertionError({ message: `ifError got unwanted exception: ${inspect(value)}`, actual: value, operator: "ifError" }); },
    match(text, pattern, message) { require(typeof text === "string" && pattern.test(text), message, text, pattern, "match", `The input did not match the regular expression ${pattern}. Input:\n\n${inspect(text)}\n`); },
    doesNotMatch(text, pattern, message) { require(typeof text !== "string" || !pattern.test(text), message, text, pattern, "doesNotMatch", `The input was expected to not match the regular expression ${pattern}. Input:\n\n${inspect(text)}\n`); },
    strictEqual(one, other, message) { require(Object.is(one, other), message, one, other, "strictEqual", differs("values to be strictly equal", one, other)); },
    notStrictEqual(one, other, message) { require(!Object.is(one, other), message, one, other, "notStrictEqual", `Expected "actual" to be strictly unequal to: ${inspect(other)}`); },
    deepStrictEqual(one, other, message) { require(isAlike(one, other, true), message, one, other, "deepStrictEqual", differs("values to be strictly deep-equal", one, other)); },
    notDeepStrictEqual(one, other, message) { require(!isAlike(one, other, true), message, one, other, "notDeepStrictEqual", `Expected "actual" not to be strictly deep-equal to: ${inspect(other)}`); },
    partialDeepStrictEqual(one, other, message) { const holds = (whole, part) => (typeof part === "object" && part !== null && typeof whole === "object" && whole !== null ? Object.keys(part).every((key) => holds(whole[key], part[key])) : Object.is(whole, part)); require(holds(one, other), message, one, other, "partialDeepStrictEqual"); },
  };
  const strict = Object.assign((...values) => ok(...values), common, { equal: common.strictEqual, notEqual: common.notStrictEqual, deepEqual: common.deepStrictEqual, notDeepEqual: common.notDeepStrictEqual });
  const assert = Object.assign((...values) => ok(...values), common, {
    equal(one, other, message) { require(one == other || (one !== one && other !== other), message, one, other, "=="); },
    notEqual(one, other, message) { require(one != other, message, one, other, "!="); },
    deepEqual(one, other, message) { require(isAlike(one, other, false), message, one, other, "deepEqual", differs("values to be loosely deep-equal", one, other)); },
    notDeepEqual(one, other, message) { require(!isAlike(one, other, false), message, one, other, "notDeepEqual"); },
  });
  assert.strict = strict.strict = strict;

  // ---- the arguments of a command line
  function parseArgs({ args = [], options = {}, strict: isStrict = true, allowPositionals = !isStrict, allowNegative = false, tokens: wantsTokens = false } = {}) {
    const values = Object.create(null);
    const positionals = [];
    const tokens = [];
    const wrong = (text, code) => { throw Object.assign(new TypeError(text), { code }); };
    const put = (name, rawName, value, index) => {
      const option = options[name];
      if (!option && isStrict) wrong(`Unknown option '${rawName}'`, "ERR_PARSE_ARGS_UNKNOWN_OPTION");
      const given = value ?? true;
      tokens.push({ kind: "option", name, rawName, index, value });
      if (option?.multiple) (values[name] ??= []).push(given);
      else values[name] = given;
    };
    const takes = (name) => options[name]?.type === "string";
    for (let at = 0; at < args.length; at++) {
      const word = args[at];
      const index = at;
      if (word === "--") {
        tokens.push({ kind: "option-terminator", index });
        for (const rest of args.slice(at + 1)) positionals.push(rest);
        if (positionals.length && !allowPositionals) wrong(`Unexpected argument '${positionals[0]}'`, "ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL");
        break;
      }
      if (word.startsWith("--")) {
        const equals = word.indexOf("=");
        const name = equals < 0 ? word.slice(2) : word.slice(2, equals);
        const negated = allowNegative && name.startsWith("no-") && options[name.slice(3)]?.type === "boolean";
        if (equals >= 0) {
          if (isStrict && options[name] && !takes(name)) wrong(`Option '--${name}' does not take an argument`, "ERR_PARSE_ARGS_INVALID_OPTION_VALUE");
          put(name, `--${name}`, word.slice(equals + 1), index);
        } else if (takes(name)) {
          if (at + 1 >= args.length || (isStrict && args[at + 1].startsWith("-") && args[at + 1].length > 1)) wrong(`Option '--${name} <value>' argument missing`, "ERR_PARSE_ARGS_INVALID_OPTION_VALUE");
          put(name, `--${name}`, args[++at], index);
        } else if (negated) { put(name.slice(3), word, false, index); } else put(name, `--${name}`, undefined, index);
      } else if (word.startsWith("-") && word.length > 1) {
        for (let letter = 1; letter < word.length; letter++) {
          const short = word[letter];
          const name = Object.keys(options).find((known) => options[known].short === short) ?? short;
          if (!takes(name)) { put(name, `-${short}`, undefined, index); continue; }
          const rest = word.slice(letter + 1);
          if (rest === "" && at + 1 >= args.length) wrong(`Option '-${short}, --${name} <value>' argument missing`, "ERR_PARSE_ARGS_INVALID_OPTION_VALUE");
          put(name, `-${short}`, rest === "" ? args[++at] : rest, index);
          break;
        }
      } else {
        if (!allowPositionals) wrong(`Unexpected argument '${word}'. This command does not take positional arguments`, "ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL");
        positionals.push(word);
        tokens.push({ kind: "positional", index, value: word });
      }
    }
    for (const [name, option] of Object.entries(options)) if (option.default !== undefined && values[name] === undefined) values[name] = option.default;
    return { values, positionals, ...(wantsTokens ? { tokens } : {}) };
  }
  return { assert, "assert/strict": strict, isAlike, parseArgs };
})
