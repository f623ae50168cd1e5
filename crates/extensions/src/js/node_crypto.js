// `node:crypto`, as far as it is digests, keys made of passwords, and random bytes. Evaluated as a function.
(function (native, platform, parts) {
  "use strict";
  const { Buffer, binary } = platform;
  const { bytesOf } = parts;
  const output = (bytes, encoding) => (encoding === undefined || encoding === "buffer" ? Buffer.from(bytes) : Buffer.from(bytes).toString(encoding));
  class Hash {
    #parts = "";
    #finish;
    constructor(finish, begun = "") { this.#finish = finish; this.#parts = begun; }
    copy() { return new Hash(this.#finish, this.#parts); }
    update(value, encoding) { this.#parts += binary(bytesOf(value, encoding)); return this; }
    digest(encoding) { return output(this.#finish(this.#parts), encoding); }
  }
  const algorithm = (name) => String(name).toLowerCase().replace("-", "");
  const passwordKey = (password, salt, rounds, length, digest) => Buffer.from(native.passwordKey(algorithm(digest ?? "sha1"), binary(bytesOf(password)), binary(bytesOf(salt)), rounds, length));
  // RFC 5869
  const derivedKey = (digest, key, salt, info, length) => {
    const mac = (secret, text) => binary(native.hmac(algorithm(digest), secret, text));
    const secret = mac(binary(bytesOf(salt)), binary(bytesOf(key)));
    let text = "";
    for (let last = "", count = 1; text.length < length; count++) { last = mac(secret, last + binary(bytesOf(info)) + String.fromCharCode(count)); text += last; }
    return Uint8Array.from(text.slice(0, length), (character) => character.charCodeAt(0)).buffer;
  };
  // With a callback as the last argument, the result goes there.
  const orLater = (work) => (...values) => {
    if (typeof values.at(-1) !== "function") return work(...values);
    const done = values.pop();
    queueMicrotask(() => { let result; try { result = work(...values); } catch (error) { done(error); return; } done(null, result); });
  };
  const fillRandomly = (target, offset = 0, size) => { const view = ArrayBuffer.isView(target) ? new Uint8Array(target.buffer, target.byteOffset, target.byteLength) : new Uint8Array(target); const end = size === undefined ? view.length : offset + size; view.set(native.random(end - offset), offset); return target; };
  const nodeCrypto = {
    Hash, Hmac: Hash, constants: {}, getHashes: () => ["md5", "sha1", "sha256", "sha384", "sha512"], getCiphers: () => [], getCurves: () => [], getFips: () => 0,
    pbkdf2Sync: passwordKey, pbkdf2: orLater(passwordKey), hkdfSync: derivedKey, hkdf: orLater(derivedKey), randomFillSync: fillRandomly, randomFill: orLater(fillRandomly),
    createHash: (name) => new Hash((text) => native.digest(algorithm(name), text)),
    createHmac: (name, key) => new Hash((text) => native.hmac(algorithm(name), binary(bytesOf(key)), text)),
    hash: (name, value, encoding = "hex") => output(native.digest(algorithm(name), binary(bytesOf(value))), encoding),
    randomUUID: platform.uuid,
    randomBytes: orLater((count) => Buffer.from(native.random(count))),
    randomInt: orLater((low, high) => { const [from, to] = high === undefined ? [0, low] : [low, high]; return from + Math.floor((new DataView(native.random(8).buffer).getUint32(0) / 4294967296) * (to - from)); }),
    timingSafeEqual: (one, other) => { let different = one.length ^ other.length; for (let at = 0; at < one.length; at++) different |= one[at] ^ other[at]; return different === 0; },
    webcrypto: crypto, subtle: crypto.subtle, getRandomValues: crypto.getRandomValues,
  };

  return nodeCrypto;
})
