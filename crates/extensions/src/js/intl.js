// `Intl` as far as extensions use it: English, and the time of this machine. Evaluated as a function.
(function (define) {
  "use strict";
  const mark = /^(?:\p{Mark}|[\u200b-\u200d\ufe00-\ufe0f]|[\u{1f3fb}-\u{1f3ff}])$/u;
  const region = /^[\u{1f1e6}-\u{1f1ff}]$/u;
  function* graphemes(text) {
    let start = 0, part = "", joins = false, regions = 0;
    for (const character of text) {
      const isRegion = region.test(character);
      if (part !== "" && !joins && !mark.test(character) && !(isRegion && regions === 1) && !(part === "\r" && character === "\n")) {
        yield { segment: part, index: start, input: text };
        start += part.length;
        part = "";
        regions = 0;
      }
      part += character;
      regions = isRegion ? regions + 1 : regions;
      joins = character === "\u200d";
    }
    if (part !== "") yield { segment: part, index: start, input: text };
  }
  const pieces = (text, pattern, describe) => [...text.matchAll(pattern)].map((found) => ({ segment: found[0], index: found.index, input: text, ...describe(found[0]) }));
  class Segmenter {
    #kind;
    constructor(_locale, options = {}) { this.#kind = options.granularity ?? "grapheme"; }
    segment(input) {
      const text = String(input);
      const all = () => this.#kind === "word" ? pieces(text, /[\p{L}\p{N}\p{M}_']+|\s+|[^\s]/gu, (part) => ({ isWordLike: /[\p{L}\p{N}]/u.test(part) })) : this.#kind === "sentence" ? pieces(text, /[^.!?]*[.!?]*\s*/gu, () => ({})).filter((part) => part.segment) : graphemes(text);
      return { [Symbol.iterator]: () => all()[Symbol.iterator](), containing: (at = 0) => [...all()].find((part) => at >= part.index && at < part.index + part.segment.length) };
    }
    resolvedOptions() { return { locale: "en-US", granularity: this.#kind }; }
  }
  class NumberFormat {
    #options;
    constructor(_locale, options = {}) { this.#options = options; }
    format(value) {
      const { style, currency = "USD", notation, minimumFractionDigits, maximumFractionDigits } = this.#options;
      const least = minimumFractionDigits ?? (style === "currency" ? 2 : 0);
      const most = Math.max(least, maximumFractionDigits ?? (style === "currency" ? 2 : style === "percent" ? 0 : 3));
      let number = style === "percent" ? Number(value) * 100 : Number(value);
      let unit = "";
      if (notation === "compact") for (const [size, letter] of [[1e12, "T"], [1e9, "B"], [1e6, "M"], [1e3, "K"]]) if (Math.abs(number) >= size) { number /= size; unit = letter; break; }
      if (!Number.isFinite(number)) return Number.isNaN(number) ? "NaN" : number < 0 ? "-∞" : "∞";
      let [whole, part = ""] = Math.abs(number).toFixed(notation === "compact" && maximumFractionDigits === undefined ? 1 : most).split(".");
      while (part.length > least && part.endsWith("0")) part = part.slice(0, -1);
      if (this.#options.useGrouping !== false) whole = whole.replace(/\B(?=(\d{3})+$)/g, ",");
      const sign = style === "currency" ? ({ USD: "$", EUR: "€", GBP: "£", JPY: "¥" })[currency] ?? `${currency} ` : "";
      return `${number < 0 ? "-" : ""}${sign}${whole}${part ? `.${part}` : ""}${unit}${style === "percent" ? "%" : ""}`;
    }
    resolvedOptions() { return { locale: "en-US", numberingSystem: "latn", ...this.#options }; }
  }
  const two = (number) => String(number).padStart(2, "0");
  const months = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
  const days = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
  class DateTimeFormat {
    #options;
    constructor(_locale, options = {}) { this.#options = options; }
    format(value) {
      const date = value === undefined ? new Date() : new Date(value);
      const o = this.#options;
      const isUtc = o.timeZone === "UTC" || o.timeZone === "GMT";
      const get = (name) => (isUtc ? date[`getUTC${name}`]() : date[`get${name}`]());
      const asksDate = o.year || o.month || o.day || o.weekday || o.dateStyle;
      const asksTime = o.hour || o.minute || o.second || o.timeStyle;
      const parts = [];
      if (asksDate || !asksTime) {
        if (o.month === "long" || o.month === "short" || (o.dateStyle && o.dateStyle !== "short")) {
          const name = months[get("Month")];
          parts.push([o.weekday && days[get("Day")].slice(0, o.weekday === "long" ? undefined : 3), [o.month === "long" || o.dateStyle === "long" || o.dateStyle === "full" ? name : name.slice(0, 3), o.day === undefined && !o.dateStyle ? undefined : get("Date")].filter(Boolean).join(" "), (o.year || o.dateStyle) && get("FullYear")].filter(Boolean).join(", "));
        } else {
          const all = !asksDate || o.dateStyle;
          const date = [(all || o.month) && (o.month === "2-digit" ? two(get("Month") + 1) : get("Month") + 1), (all || o.day) && (o.day === "2-digit" ? two(get("Date")) : get("Date")), (all || o.year) && get("FullYear")].filter(Boolean).join("/");
          parts.push([o.weekday && days[get("Day")].slice(0, o.weekday === "long" ? undefined : 3), date].filter(Boolean).join(", "));
        }
      }
      if (asksTime) {
        const is12 = o.hour12 ?? (o.hourCycle === undefined || o.hourCycle === "h12");
        const hour = get("Hours");
        const shown = is12 ? hour % 12 || 12 : hour;
        parts.push(`${!is12 || o.hour === "2-digit" ? two(shown) : shown}:${two(get("Minutes"))}${o.second || o.timeStyle === "medium" ? `:${two(get("Seconds"))}` : ""}${is12 ? (hour < 12 ? " AM" : " PM") : ""}`);
      }
      return parts.join(", ");
    }
    formatToParts(value) { return [{ type: "literal", value: this.format(value) }]; }
    resolvedOptions() { return { locale: "en-US", calendar: "gregory", numberingSystem: "latn", timeZone: globalThis.process?.env.TZ || "UTC", ...this.#options }; }
  }
  // Signs before digits before letters; letters first by what they are, then by their accents, then small before large.
  const rankOf = (character) => (/\p{L}/u.test(character) ? 3 : /\p{N}/u.test(character) ? 2 : /\s/.test(character) ? 0 : 1);
  const inOrder = (one, other) => (one < other ? -1 : one > other ? 1 : 0);
  function collate(one, other, sensitivity = "variant") {
    if (one === other) return 0;
    const [a, b] = [one, other].map((text) => text.normalize("NFD"));
    const bases = [a, b].map((text) => [...text.replace(/\p{Mark}/gu, "").toLowerCase()]);
    for (let at = 0; at < Math.min(bases[0].length, bases[1].length); at++) {
      const [left, right] = [bases[0][at], bases[1][at]];
      if (left !== right) return inOrder(rankOf(left), rankOf(right)) || inOrder(left, right);
    }
    const byLength = inOrder(bases[0].length, bases[1].length);
    if (byLength || sensitivity === "base") return byLength;
    const byAccent = sensitivity === "case" ? 0 : inOrder(a.toLowerCase(), b.toLowerCase());
    if (byAccent || sensitivity === "accent") return byAccent;
    for (let at = 0; at < Math.min(a.length, b.length); at++) if (a[at] !== b[at]) return a[at] === a[at].toLowerCase() ? -1 : 1;
    return 0;
  }
  class Collator {
    #options;
    constructor(_locale, options = {}) { this.#options = options ?? {}; }
    compare = (one, other) => {
      const [a, b] = [String(one), String(other)];
      const { sensitivity } = this.#options;
      if (!this.#options.numeric) return collate(a, b, sensitivity);
      const [left, right] = [a.split(/(\d+)/), b.split(/(\d+)/)];
      for (let at = 0; at < Math.min(left.length, right.length); at++) {
        if (left[at] === right[at]) continue;
        return at % 2 ? Math.sign(Number(left[at]) - Number(right[at])) || collate(left[at], right[at], sensitivity) : collate(left[at], right[at], sensitivity);
      }
      return Math.sign(left.length - right.length);
    };
    resolvedOptions() { return { locale: "en-US", ...this.#options }; }
  }
  class PluralRules {
    #isOrdinal;
    constructor(_locale, options = {}) { this.#isOrdinal = options?.type === "ordinal"; }
    select(number) {
      if (!this.#isOrdinal) return number === 1 ? "one" : "other";
      const [last, tens] = [number % 10, Math.floor(number / 10) % 10];
      return tens === 1 ? "other" : ({ 1: "one", 2: "two", 3: "few" })[last] ?? "other";
    }
    resolvedOptions() { return { locale: "en-US", type: this.#isOrdinal ? "ordinal" : "cardinal" }; }
  }
  class ListFormat {
    #word;
    constructor(_locale, options = {}) { this.#word = options.type === "disjunction" ? "or" : "and"; }
    format(list) { const all = [...list]; return all.length < 2 ? all.join("") : all.length === 2 ? all.join(` ${this.#word} `) : `${all.slice(0, -1).join(", ")}, ${this.#word} ${all[all.length - 1]}`; }
  }
  const NEAR = { day: ["yesterday", "today", "tomorrow"], year: ["last year", "this year", "next year"], month: ["last month", "this month", "next month"], week: ["last week", "this week", "next week"], quarter: ["last quarter", "this quarter", "next quarter"], hour: [undefined, "this hour"], minute: [undefined, "this minute"], second: [undefined, "now"] };
  class RelativeTimeFormat {
    #isAuto;
    constructor(_locale, options = {}) { this.#isAuto = options?.numeric === "auto"; }
    format(value, unit) { const near = this.#isAuto ? NEAR[String(unit).replace(/s$/, "")]?.[value + 1] : undefined; if (near !== undefined) return near; const count = Math.abs(value); const name = String(unit).replace(/s$/, "") + (count === 1 ? "" : "s"); return value < 0 ? `${count} ${name} ago` : `in ${count} ${name}`; }
  }
  class DisplayNames { of(code) { return String(code); } }
  class Locale { constructor(tag) { this.baseName = String(tag); [this.language, this.region] = this.baseName.split("-"); } toString() { return this.baseName; } }
  // Some are called without `new`, too.
  const kinds = { Segmenter, NumberFormat, DateTimeFormat, Collator, PluralRules, ListFormat, RelativeTimeFormat, DisplayNames, Locale };
  for (const [name, kind] of Object.entries(kinds)) { kind.supportedLocalesOf = (locales = []) => [locales].flat(); kinds[name] = new Proxy(kind, { apply: (target, _self, values) => new target(...values) }); }
  define("Intl", { ...kinds, getCanonicalLocales: (locales = []) => [locales].flat(), supportedValuesOf: () => [] });
  Object.defineProperty(String.prototype, "localeCompare", { value(other, locale, options) { return new Collator(locale, options).compare(this, other); }, writable: true, configurable: true });
  Object.defineProperty(BigInt.prototype, "toLocaleString", { value(locale, options) { return new NumberFormat(locale, options).format(this); }, writable: true, configurable: true });
  Object.defineProperty(Number.prototype, "toLocaleString", { value(locale, options) { return new NumberFormat(locale, options).format(this); }, writable: true, configurable: true });
  for (const [name, usual] of [["toLocaleString", { dateStyle: "short", timeStyle: "medium" }], ["toLocaleDateString", { dateStyle: "short" }], ["toLocaleTimeString", { timeStyle: "medium" }]]) {
    Object.defineProperty(Date.prototype, name, { value(locale, options) { return new DateTimeFormat(locale, options && Object.keys(options).some((key) => key !== "timeZone" && key !== "hour12") ? options : { ...usual, ...options }).format(this); }, writable: true, configurable: true });
  }
})
