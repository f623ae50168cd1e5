// Bytes and text: `Buffer`, `TextEncoder`, `TextDecoder`. Evaluated as a function of the native functions; returns
// them with what the other files need of it.
(function (native) {
  "use strict";
  const well = (text) => String(text).toWellFormed();
  const viewOf = (bytes) => (ArrayBuffer.isView(bytes) ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength) : new Uint8Array(bytes));
  // Bytes as a string with one character for each.
  const binary = (bytes) => {
    const view = viewOf(bytes);
    let text = "";
    for (let at = 0; at < view.length; at += 4096) text += String.fromCharCode(...view.subarray(at, at + 4096));
    return text;
  };
  const ENCODINGS = { utf8: "utf8", "utf-8": "utf8", ucs2: "utf16", "ucs-2": "utf16", utf16le: "utf16", "utf-16le": "utf16", latin1: "latin1", binary: "latin1", ascii: "ascii", hex: "hex", base64: "base64", base64url: "base64url" };
  const encodingOf = (name) => ENCODINGS[String(name ?? "utf8").toLowerCase()];
  function decodeText(text, encoding) {
    switch (encodingOf(encoding)) {
      // Up to the first pair that is none.
      case "hex": return Uint8Array.from(/^(?:[0-9a-f]{2})*/i.exec(text)[0].match(/../g) ?? [], (pair) => parseInt(pair, 16));
      case "base64": case "base64url": return native.fromBase64(text);
      case "latin1": case "ascii": return Uint8Array.from(text, (character) => character.charCodeAt(0) & 255);
      case "utf16": { const bytes = new Uint8Array(2 * text.length); for (let at = 0; at < text.length; at++) { const unit = text.charCodeAt(at); bytes[2 * at] = unit & 255; bytes[2 * at + 1] = unit >> 8; } return bytes; }
      default: return native.encode(well(text));
    }
  }
  const utf16 = (bytes) => { let text = ""; for (let at = 0; at + 1 < bytes.length; at += 2) text += String.fromCharCode(bytes[at] | (bytes[at + 1] << 8)); return text; };
  // The length of what ends with a whole character of UTF-8.
  function wholeLength(bytes) {
    for (let back = 1; back <= Math.min(3, bytes.length); back++) {
      const byte = bytes[bytes.length - back];
      if (byte >= 0xc0) return (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) > back ? bytes.length - back : bytes.length;
      if (byte < 0x80) break;
    }
    return bytes.length;
  }

  class TextEncoder {
    encoding = "utf-8";
    encode(text = "") { return native.encode(well(text)); }
    encodeInto(text, target) {
      let read = 0;
      let written = 0;
      for (const character of well(text)) {
        const bytes = native.encode(character);
        if (written + bytes.length > target.length) break;
        target.set(bytes, written);
        written += bytes.length;
        read += character.length;
      }
      return { read, written };
    }
  }
  // What 0x80 to 0x9f stand for in Windows-1252, which every label of Latin 1 means.
  const WINDOWS = "\u20ac\u0081\u201a\u0192\u201e\u2026\u2020\u2021\u02c6\u2030\u0160\u2039\u0152\u008d\u017d\u008f\u0090\u2018\u2019\u201c\u201d\u2022\u2013\u2014\u02dc\u2122\u0161\u203a\u0153\u009d\u017e\u0178";
  class TextDecoder {
    #kind; #held = new Uint8Array(0); #isBegun = false;
    constructor(label = "utf-8", options = {}) {
      const name = String(label).trim().toLowerCase();
      this.#kind = /^(unicode-1-1-)?utf-?8$/.test(name) ? "utf-8" : /^(utf-16(le)?|ucs-2|unicode|csunicode)$/.test(name) ? "utf-16le" : /^(latin-?1|l1|(us-)?ascii|iso-?8859-?1|(windows-|x-cp|cp)1252)$/.test(name) ? "windows-1252" : undefined;
      if (!this.#kind) throw new RangeError(`The "${label}" encoding is not supported`);
      this.fatal = options?.fatal === true;
      this.ignoreBOM = options?.ignoreBOM === true;
    }
    get encoding() { return this.#kind; }
    decode(input, options) {
      const given = input === undefined ? new Uint8Array(0) : viewOf(input);
      const all = this.#held.length ? Uint8Array.from([...this.#held, ...given]) : given;
      const goesOn = options?.stream === true;
      // A character that is not whole yet waits for its rest.
      const end = !goesOn ? all.length : this.#kind === "utf-8" ? wholeLength(all) : this.#kind === "utf-16le" ? all.length & ~1 : all.length;
      const part = all.subarray(0, end);
      this.#held = all.slice(end);
      let text = this.#kind === "utf-8" ? native.decode(binary(part), this.fatal) : this.#kind === "utf-16le" ? utf16(part).toWellFormed() : binary(part).replace(/[\u0080-\u009f]/g, (character) => WINDOWS[character.charCodeAt(0) - 128]);
      if (!this.#isBegun && !this.ignoreBOM && text.startsWith("\ufeff")) text = text.slice(1);
      this.#isBegun = goesOn && (this.#isBegun || part.length > 0);
      return text;
    }
  }

  class Buffer extends Uint8Array {
    constructor(value, encoding, length) {
      if (typeof value === "string") super(decodeText(value, encoding));
      else super(value, encoding, length);
    }
    static from(value, encoding, length) {
      if (typeof value === "string") return Buffer.#of(decodeText(value, encoding));
      if (value instanceof ArrayBuffer) return new Buffer(value, encoding ?? 0, length ?? value.byteLength - (encoding ?? 0));
      if (typeof value !== "object" || value === null) throw Object.assign(new TypeError('The first argument must be of type string or an instance of Buffer, ArrayBuffer, or Array or an Array-like Object.'), { code: "ERR_INVALID_ARG_TYPE" });
      if (value.type === "Buffer" && Array.isArray(value.data)) return Buffer.#of(value.data);
      const primitive = ArrayBuffer.isView(value) || Array.isArray(value) ? value : value.valueOf();
      return typeof primitive === "string" ? Buffer.from(primitive, encoding) : Buffer.#of(value);
    }
    static #of(bytes) { const buffer = new Buffer(bytes.length ?? 0); buffer.set(bytes); return buffer; }
    static alloc(size, fill = 0, encoding) { const buffer = new Buffer(size); return fill === 0 ? buffer : buffer.fill(fill, encoding); }
    static allocUnsafe(size) { return new Buffer(size); }
    static allocUnsafeSlow(size) { return new Buffer(size); }
    static isBuffer(value) { return value instanceof Buffer; }
    static isEncoding(name) { return typeof name === "string" && encodingOf(name) !== undefined; }
    static byteLength(value, encoding) { return typeof value === "string" ? decodeText(value, encoding).length : value.byteLength; }
    static concat(list, total) {
      const buffer = new Buffer(total ?? list.reduce((sum, item) => sum + item.length, 0));
      let at = 0;
      for (const item of list) { const part = item.subarray(0, buffer.length - at); buffer.set(part, at); at += part.length; }
      return buffer;
    }
    static compare(one, other) { return Buffer.prototype.compare.call(one, other); }
    toString(encoding, start = 0, end = this.length) {
      const bytes = this.subarray(Math.max(0, start), Math.max(0, end));
      switch (encodingOf(encoding)) {
        case "hex": return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
        case "base64": return native.toBase64(binary(bytes));
        case "base64url": return native.toBase64(binary(bytes)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
        case "latin1": return binary(bytes);
        case "ascii": return binary(bytes.map((byte) => byte & 127));
        case "utf16": return utf16(bytes);
        case undefined: throw Object.assign(new TypeError(`Unknown encoding: ${encoding}`), { code: "ERR_UNKNOWN_ENCODING" });
        default: return native.decode(binary(bytes), false);
      }
    }
    toLocaleString(...values) { return this.toString(...values); }
    toJSON() { return { type: "Buffer", data: Array.from(this) }; }
    equals(other) { return this.length === other.length && this.every((byte, at) => byte === other[at]); }
    compare(other, otherStart = 0, otherEnd = other.length, start = 0, end = this.length) {
      const [one, two] = [this.subarray(start, end), other.subarray(otherStart, otherEnd)];
      for (let at = 0; at < Math.min(one.length, two.length); at++) if (one[at] !== two[at]) return one[at] < two[at] ? -1 : 1;
      return Math.sign(one.length - two.length);
    }
    // (text), (text, encoding), (text, offset, encoding) and (text, offset, length, encoding)
    write(text, ...rest) {
      const encoding = typeof rest.at(-1) === "string" ? rest.pop() : undefined;
      const [offset = 0, length = this.length - offset] = rest;
      const bytes = decodeText(String(text), encoding);
      const room = Math.min(length, this.length - offset);
      const part = bytes.subarray(0, encodingOf(encoding) === "utf8" && bytes.length > room ? wholeLength(bytes.subarray(0, room)) : room);
      this.set(part, offset);
      return part.length;
    }
    copy(target, targetStart = 0, start = 0, end = this.length) {
      const part = this.subarray(start, Math.min(end, start + target.length - targetStart));
      target.set(part, targetStart);
      return part.length;
    }
    fill(value, start = 0, end = this.length, encoding = "utf8") {
      if (typeof start === "string") [start, end, encoding] = [0, this.length, start];
      if (typeof end === "string") [end, encoding] = [this.length, end];
      const pattern = typeof value === "string" ? decodeText(value, encoding) : ArrayBuffer.isView(value) ? viewOf(value) : undefined;
      if (!pattern) return super.fill(value, start, end);
      if (pattern.length === 0) return super.fill(0, start, end);
      for (let at = start; at < end; at++) this[at] = pattern[(at - start) % pattern.length];
      return this;
    }
    #find(value, from, encoding, method) {
      if (typeof value === "number") return from === undefined ? Uint8Array.prototype[method].call(this, value & 255) : Uint8Array.prototype[method].call(this, value & 255, from);
      if (typeof from === "string") [from, encoding] = [undefined, from];
      const wanted = binary(typeof value === "string" ? decodeText(value, encoding) : value);
      const start = from === undefined ? undefined : from < 0 ? Math.max(0, this.length + from) : from;
      return start === undefined ? binary(this)[method](wanted) : binary(this)[method](wanted, start);
    }
    indexOf(value, from, encoding) { return this.#find(value, from, encoding, "indexOf"); }
    lastIndexOf(value, from, encoding) { return this.#find(value, from, encoding, "lastIndexOf"); }
    includes(value, from, encoding) { return this.indexOf(value, from, encoding) >= 0; }
    slice(start, end) { return this.subarray(start, end); }
    #swap(size) {
      if (this.length % size) throw new RangeError(`Buffer size must be a multiple of ${8 * size}-bits`);
      for (let at = 0; at < this.length; at += size) this.subarray(at, at + size).reverse();
      return this;
    }
    swap16() { return this.#swap(2); }
    swap32() { return this.#swap(4); }
    swap64() { return this.#swap(8); }
    #number(at, size, isLittle, isSigned) {
      const bytes = this.subarray(at, at + size);
      if (bytes.length < size) throw Object.assign(new RangeError("Attempt to access memory outside buffer bounds"), { code: "ERR_BUFFER_OUT_OF_BOUNDS" });
      const number = (isLittle ? bytes.toReversed() : Array.from(bytes)).reduce((sum, byte) => sum * 256 + byte, 0);
      return isSigned && number >= 2 ** (8 * size - 1) ? number - 2 ** (8 * size) : number;
    }
    #putNumber(value, at, size, isLittle) {
      let rest = value < 0 ? value + 2 ** (8 * size) : value;
      for (let count = 0; count < size; count++) { this[isLittle ? at + count : at + size - 1 - count] = rest % 256; rest = Math.floor(rest / 256); }
      return at + size;
    }
    readUIntBE(at, size) { return this.#number(at, size, false, false); }
    readUIntLE(at, size) { return this.#number(at, size, true, false); }
    readIntBE(at, size) { return this.#number(at, size, false, true); }
    readIntLE(at, size) { return this.#number(at, size, true, true); }
    writeUIntBE(value, at, size) { return this.#putNumber(value, at, size, false); }
    writeUIntLE(value, at, size) { return this.#putNumber(value, at, size, true); }
    writeIntBE(value, at, size) { return this.#putNumber(value, at, size, false); }
    writeIntLE(value, at, size) { return this.#putNumber(value, at, size, true); }
    static poolSize = 8192;
  }
  // readInt16LE, writeDoubleBE and their kind
  const NUMBERS = { UInt8: ["Uint8", 1], Int8: ["Int8", 1], UInt16: ["Uint16", 2], Int16: ["Int16", 2], UInt32: ["Uint32", 4], Int32: ["Int32", 4], Float: ["Float32", 4], Double: ["Float64", 8], BigInt64: ["BigInt64", 8], BigUInt64: ["BigUint64", 8] };
  for (const [name, [kind, size]] of Object.entries(NUMBERS)) {
    for (const order of size === 1 ? [""] : ["LE", "BE"]) {
      const view = (buffer) => new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength);
      const outside = (error) => Object.assign(error, { code: "ERR_OUT_OF_RANGE" });
      const read = function (at = 0) { try { return view(this)[`get${kind}`](at, order === "LE"); } catch (error) { throw outside(error); } };
      const write = function (value, at = 0) { try { view(this)[`set${kind}`](at, value, order === "LE"); } catch (error) { throw outside(error); } return at + size; };
      for (const alias of new Set([name, name.replace("UInt", "Uint")])) {
        for (const [verb, value] of [["read", read], ["write", write]]) Object.defineProperty(Buffer.prototype, `${verb}${alias}${order}`, { value, writable: true, configurable: true });
      }
    }
  }
  return { binary, decodeText, wholeLength, well, Buffer, TextEncoder, TextDecoder };
})
