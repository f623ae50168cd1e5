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
  class Collator {
    #options;
    constructor(_locale, options = {}) { this.#options = options; }
    compare = (one, other) => {
      const fold = (text) => (this.#options.sensitivity === "base" || this.#options.sensitivity === "accent" ? String(text).toLowerCase() : String(text));
      const [a, b] = [fold(one), fold(other)];
      if (!this.#options.numeric) return a.localeCompare(b);
      const [left, right] = [a.split(/(\d+)/), b.split(/(\d+)/)];
      for (let at = 0; at < Math.min(left.length, right.length); at++) {
        if (left[at] === right[at]) continue;
        return at % 2 ? Number(left[at]) - Number(right[at]) || left[at].localeCompare(right[at]) : left[at].localeCompare(right[at]);
      }
      return left.length - right.length;
    };
    resolvedOptions() { return { locale: "en-US", ...this.#options }; }
  }
  class PluralRules { select(number) { return number === 1 ? "one" : "other"; } }
  class ListFormat {
    #word;
    constructor(_locale, options = {}) { this.#word = options.type === "disjunction" ? "or" : "and"; }
    format(list) { const all = [...list]; return all.length < 2 ? all.join("") : all.length === 2 ? all.join(` ${this.#word} `) : `${all.slice(0, -1).join(", ")}, ${this.#word} ${all[all.length - 1]}`; }
  }
  class RelativeTimeFormat {
    format(value, unit) { const count = Math.abs(value); const name = String(unit).replace(/s$/, "") + (count === 1 ? "" : "s"); return value < 0 ? `${count} ${name} ago` : `in ${count} ${name}`; }
  }
  define("Intl", { Segmenter, NumberFormat, DateTimeFormat, Collator, PluralRules, ListFormat, RelativeTimeFormat, getCanonicalLocales: (locales = []) => [locales].flat(), supportedValuesOf: () => [] });
  Object.defineProperty(Number.prototype, "toLocaleString", { value(locale, options) { return new NumberFormat(locale, options).format(this); }, writable: true, configurable: true });
  for (const [name, usual] of [["toLocaleString", { dateStyle: "short", timeStyle: "medium" }], ["toLocaleDateString", { dateStyle: "short" }], ["toLocaleTimeString", { timeStyle: "medium" }]]) {
    Object.defineProperty(Date.prototype, name, { value(locale, options) { return new DateTimeFormat(locale, options && Object.keys(options).some((key) => key !== "timeZone" && key !== "hour12") ? options : { ...usual, ...options }).format(this); }, writable: true, configurable: true });
  }
})
