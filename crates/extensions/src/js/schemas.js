// `typebox`: what an extension writes as Type.Object({…}) is a JSON schema, and values are checked against schemas.
// Evaluated as a function; returns the module and the check of arguments.
(function () {
  "use strict";
  const optional = Symbol("optional");
  const schema = (fields, options = {}) => ({ ...fields, ...options });
  const namesOf = (keys) => (Array.isArray(keys) ? keys : keys?.enum ?? keys?.anyOf?.map((part) => part.const) ?? ("const" in (keys ?? {}) ? [keys.const] : [keys])).map(String);
  const union = (list, options) => (list.length === 1 && !options ? list[0] : list.length === 0 ? Type.Never(options) : Type.Union(list, options));
  const membersOf = (type) => type.anyOf ?? (type.enum ? type.enum.map((value) => Type.Literal(value)) : [type]);
  const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);
  const extending = (left, right) => isSame(left, right) || membersOf(right).some((part) => isSame(part, left) || (left.const !== undefined && part.type === typeof left.const && part.const === undefined && part.enum === undefined));
  const mapProperties = (object, change, options) => Type.Object(Object.fromEntries(Object.entries(object.properties ?? {}).map(([name, value]) => [name, change(value)])), options ?? (object.additionalProperties === undefined ? undefined : { additionalProperties: object.additionalProperties }));
  const Type = {
    Object(properties, options) {
      const required = Object.keys(properties).filter((name) => !properties[name][optional]);
      return schema({ type: "object", properties, ...(required.length ? { required } : {}) }, options);
    },
    String: (options) => schema({ type: "string" }, options),
    Number: (options) => schema({ type: "number" }, options),
    Integer: (options) => schema({ type: "integer" }, options),
    BigInt: (options) => schema({ type: "integer" }, options),
    Boolean: (options) => schema({ type: "boolean" }, options),
    Null: (options) => schema({ type: "null" }, options),
    Undefined: (options) => schema({ type: "undefined" }, options),
    Void: (options) => schema({ type: "void" }, options),
    Symbol: (options) => schema({ type: "symbol" }, options),
    Array: (items, options) => schema({ type: "array", items }, options),
    Tuple: (items, options) => schema({ type: "array", items, minItems: items.length, maxItems: items.length }, options),
    Union: (anyOf, options) => schema({ anyOf }, options),
    Intersect: (allOf, options) => schema({ allOf }, options),
    Literal: (value, options) => schema({ type: typeof value, const: value }, options),
    // A list, or an object as TypeScript makes of an enum: its numbers are also names there.
    Enum(values, options) { const all = Array.isArray(values) ? values : Object.entries(values).filter(([name, value]) => !(/^\d+$/.test(name) && typeof values[value] === "number")).map(([, value]) => value); return schema({ ...(all.every((value) => typeof value === "string") ? { type: "string" } : {}), enum: [...new Set(all)] }, options); },
    Record: (key, value, options) => (key?.anyOf || key?.enum || key?.const !== undefined ? Type.Object(Object.fromEntries(namesOf(key).map((name) => [name, value])), options) : schema(key?.pattern ? { type: "object", patternProperties: { [key.pattern]: value } } : { type: "object", additionalProperties: value }, options)),
    Any: (options) => schema({}, options),
    Unknown: (options) => schema({}, options),
    Never: (options) => schema({ not: {} }, options),
    Not: (inner, options) => schema({ not: inner }, options),
    Unsafe: (fields = {}) => ({ ...fields }),
    Optional: (inner, isOptional = true) => { const copy = { ...inner }; return isOptional ? Object.defineProperty(copy, optional, { value: true }) : copy; },
    Readonly: (inner) => inner, ReadonlyOptional: (inner) => Type.Optional(inner), ReadonlyObject: (inner) => inner, Immutable: (inner) => inner,
    Partial: (object, options) => mapProperties(object, (value) => Type.Optional(value), options),
    Required: (object, options) => mapProperties(object, (value) => Type.Optional(value, false), options),
    Pick: (object, keys, options) => Type.Object(Object.fromEntries(namesOf(keys).filter((name) => name in object.properties).map((name) => [name, object.properties[name]])), options),
    Omit: (object, keys, options) => { const names = namesOf(keys); return Type.Object(Object.fromEntries(Object.entries(object.properties).filter(([name]) => !names.includes(name))), options); },
    Composite: (objects, options) => Type.Object(Object.assign({}, ...objects.map((object) => object.properties)), options),
    Interface: (bases, properties, options) => Type.Object(Object.assign({}, ...bases.map((base) => base.properties), properties), options),
    Evaluate: (type) => (type.allOf ? Type.Composite(type.allOf) : type),
    KeyOf: (object, options) => union(Object.keys(object.properties ?? {}).map((name) => Type.Literal(name)), options),
    Index: (object, keys, options) => (object.type === "array" ? object.items : union(namesOf(keys).map((name) => object.properties[name]).filter(Boolean).map((value) => Type.Optional(value, false)), options)),
    Exclude: (from, what, options) => union(membersOf(from).filter((part) => !extending(part, what)), options),
    Extract: (from, what, options) => union(membersOf(from).filter((part) => extending(part, what)), options),
    Extends: (left, right, whenTrue, whenFalse) => (extending(left, right) ? whenTrue : whenFalse),
    Const: (value) => (Array.isArray(value) ? Type.Tuple(value.map(Type.Const)) : typeof value === "object" && value !== null ? Type.Object(Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, Type.Const(inner)]))) : Type.Literal(value)),
    TemplateLiteral(parts, options) {
      const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
      const of = (part) => (typeof part === "string" ? escaped(part) : part.const !== undefined ? escaped(String(part.const)) : part.anyOf ? `(${part.anyOf.map(of).join("|")})` : part.enum ? `(${part.enum.map((value) => escaped(String(value))).join("|")})` : part.type === "number" ? "-?\\d+(?:\\.\\d+)?" : part.type === "integer" ? "-?\\d+" : part.type === "boolean" ? "(true|false)" : ".*");
      const named = { string: ".*", number: "-?\\d+(?:\\.\\d+)?", integer: "-?\\d+", boolean: "(true|false)" };
      const source = typeof parts === "string" ? parts.split(/(\$\{[^}]*\})/).map((part) => { const inner = /^\$\{\s*(.*?)\s*\}$/.exec(part)?.[1]; return inner === undefined ? escaped(part) : named[inner] ?? `(${inner.split("|").map((word) => escaped(word.trim().replace(/^["']|["']$/g, ""))).join("|")})`; }).join("") : parts.map(of).join("");
      return schema({ type: "string", pattern: `^${source}$` }, options);
    },
    RegExp: (pattern, options) => schema({ type: "string", pattern: pattern.source ?? String(pattern) }, options),
    Ref: (target, options) => schema({ $ref: typeof target === "string" ? target : target.$id }, options),
    This: (options) => schema({ $ref: "#" }, options),
    Recursive: (make, options = {}) => { const $id = options.$id ?? `T${++lastRecursive}`; return schema({ ...make({ $ref: $id }), $id }, options); },
    Cyclic: ($defs, name, options) => schema({ $defs, $ref: name }, options),
    Module: (definitions) => ({ Import: (name, options) => schema({ $defs: definitions, $ref: name }, options), ...definitions }),
    Date: (options) => schema({ type: "string", format: "date-time" }, options),
    Uint8Array: (options) => schema({ type: "object" }, options), Function: (_parameters, _result, options) => schema({ type: "function" }, options), Constructor: (_parameters, _result, options) => schema({ type: "constructor" }, options), Promise: (_item, options) => schema({ type: "promise" }, options),
    Transform: (inner) => ({ Decode: (decode) => ({ Encode: (encode) => Object.defineProperty({ ...inner }, codec, { value: { decode, encode } }) }) }),
    Codec: (inner) => Type.Transform(inner),
    Decode: (inner, decode) => Object.defineProperty({ ...inner }, codec, { value: { decode } }), Encode: (inner, encode) => Object.defineProperty({ ...inner }, codec, { value: { encode } }),
    Refine: (inner, isFit, message) => Object.defineProperty({ ...inner }, refinement, { value: { isFit, message } }),
    Capitalize: (type) => type, Uncapitalize: (type) => type, Lowercase: (type) => type, Uppercase: (type) => type,
  };
  let lastRecursive = 0;
  const codec = Symbol("codec");
  const refinement = Symbol("refinement");

  // ---- checking values against schemas. `converts`: numbers and booleans that came as text are taken as meant, and
  // null for a field that need not be there as nothing.
  const kindOf = (value) => (value === null ? "null" : Array.isArray(value) ? "array" : typeof value);
  function convert(type, value) {
    if ((type === "number" || type === "integer") && typeof value === "string" && value.trim() !== "" && Number.isFinite(Number(value))) return Number(value);
    if (type === "boolean" && (value === "true" || value === "false")) return value === "true";
    if (type === "string" && (typeof value === "number" || typeof value === "boolean")) return String(value);
    return value;
  }
  const fits = (type, value) => type === "integer" ? Number.isInteger(value) || typeof value === "bigint" : type === "number" ? typeof value === "number" : type === "void" ? value === undefined : kindOf(value) === type;
  const FORMATS = { email: /^[^\s@]+@[^\s@]+\.[^\s@]+$/, uuid: /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i, date: /^\d{4}-\d\d-\d\d$/, "date-time": /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d/, ipv4: /^(?:\d{1,3}\.){3}\d{1,3}$/ };
  function check(wanted, given, path, problems, converts, definitions = {}) {
    const say = (message) => { problems.push({ path: path || "root", message }); return given; };
    if (typeof wanted !== "object" || wanted === null) return given;
    const known = wanted.$defs || wanted.$id ? { ...definitions, ...wanted.$defs, ...(wanted.$id ? { [wanted.$id]: wanted } : {}) } : definitions;
    if (wanted.$ref !== undefined) { const target = known[String(wanted.$ref).replace(/^#\/\$defs\//, "")]; return target ? check(target, given, path, problems, converts, known) : given; }
    const below = (inner, value, at = path, found = problems) => check(inner, value, at, found, converts, known);
    const isGood = (inner, value) => { const found = []; below(inner, value, path, found); return found.length === 0; };
    let value = given;
    const types = wanted.type === undefined ? [] : [wanted.type].flat();
    if (types.length && !types.some((type) => fits(type, value))) {
      if (converts) value = types.map((type) => convert(type, value)).find((converted) => types.some((type) => fits(type, converted))) ?? value;
      if (!types.some((type) => fits(type, value))) return say(`must be ${types.join(" or ")}`);
    }
    if ("const" in wanted && value !== wanted.const) return say(`must be ${JSON.stringify(wanted.const)}`);
    if (Array.isArray(wanted.enum) && !wanted.enum.includes(value)) return say(`must be one of ${wanted.enum.map((item) => JSON.stringify(item)).join(", ")}`);
    for (const alternatives of [wanted.anyOf, wanted.oneOf]) {
      if (!Array.isArray(alternatives)) continue;
      // As it is before as it may be meant.
      const tries = [false, ...(converts ? [true] : [])].flatMap((converting) => alternatives.map((alternative) => { const found = []; return { value: check(alternative, value, path, found, converting, known), found }; }));
      const good = tries.find(({ found }) => found.length === 0);
      if (!good) return say("must match one of the allowed forms");
      value = good.value;
    }
    for (const part of wanted.allOf ?? []) value = below(part, value);
    if (wanted.not && isGood(wanted.not, value)) return say("must not be of this form");
    if (typeof value === "number") {
      if (wanted.minimum !== undefined && value < wanted.minimum) say(`must be >= ${wanted.minimum}`);
      if (wanted.maximum !== undefined && value > wanted.maximum) say(`must be <= ${wanted.maximum}`);
      if (wanted.exclusiveMinimum !== undefined && value <= wanted.exclusiveMinimum) say(`must be > ${wanted.exclusiveMinimum}`);
      if (wanted.exclusiveMaximum !== undefined && value >= wanted.exclusiveMaximum) say(`must be < ${wanted.exclusiveMaximum}`);
      if (wanted.multipleOf !== undefined && Math.abs(value / wanted.multipleOf - Math.round(value / wanted.multipleOf)) > 1e-9) say(`must be multiple of ${wanted.multipleOf}`);
    }
    if (typeof value === "string") {
      if (wanted.minLength !== undefined && value.length < wanted.minLength) say(`must have at least ${wanted.minLength} characters`);
      if (wanted.maxLength !== undefined && value.length > wanted.maxLength) say(`must have at most ${wanted.maxLength} characters`);
      if (wanted.pattern !== undefined && !new RegExp(wanted.pattern, "u").test(value)) say(`must match ${wanted.pattern}`);
      if (wanted.format !== undefined && FORMATS[wanted.format] && !FORMATS[wanted.format].test(value)) say(`must match format "${wanted.format}"`);
    }
    if (Array.isArray(value)) {
      if (wanted.minItems !== undefined && value.length < wanted.minItems) say(`must have at least ${wanted.minItems} items`);
      if (wanted.maxItems !== undefined && value.length > wanted.maxItems) say(`must have at most ${wanted.maxItems} items`);
      if (wanted.uniqueItems && new Set(value.map((item) => JSON.stringify(item))).size < value.length) say("must not have duplicate items");
      if (wanted.contains && !value.some((item) => isGood(wanted.contains, item))) say("must contain at least one matching item");
      const itemSchema = (at) => (Array.isArray(wanted.items) ? wanted.items[at] : wanted.prefixItems?.[at] ?? wanted.items);
      value = value.map((item, at) => below(itemSchema(at), item, `${path}/${at}`));
    } else if (kindOf(value) === "object" && (wanted.properties || wanted.required || wanted.patternProperties || wanted.additionalProperties !== undefined)) {
      const copy = { ...value };
      const required = wanted.required ?? [];
      const patterns = Object.entries(wanted.patternProperties ?? {});
      for (const name of required) if (copy[name] === undefined && wanted.properties?.[name]?.type !== "undefined") problems.push({ path: `${path}/${name}`, message: "is required" });
      for (const name of Object.keys(copy)) {
        const own = wanted.properties?.[name] ?? patterns.find(([pattern]) => new RegExp(pattern, "u").test(name))?.[1];
        // Too much is let through where arguments are read, and wrong where a value is judged.
        if (own === undefined && wanted.additionalProperties === false && !converts) { problems.push({ path: `${path}/${name}`, message: "must not be there" }); continue; }
        const inner = own ?? (typeof wanted.additionalProperties === "object" ? wanted.additionalProperties : undefined);
        if (inner === undefined || (copy[name] === undefined && !required.includes(name))) continue;
        if (converts && copy[name] === null && !required.includes(name) && !isGood(inner, null)) { delete copy[name]; continue; }
        copy[name] = below(inner, copy[name], `${path}/${name}`);
      }
      value = copy;
    }
    if (wanted[refinement] && !wanted[refinement].isFit(value)) say(String(wanted[refinement].message ?? "must be refined"));
    return value;
  }
  const accepts = (wanted, value) => { const found = []; check(wanted, value, "", found, false); return found.length === 0; };
  function validate(name, wanted, given) {
    const problems = [];
    const value = check(wanted, given, "", problems, true);
    if (problems.length === 0) return value;
    const lines = problems.map(({ path, message }) => `  - ${path.replace(/^\//, "").replaceAll("/", ".")}: ${message}`);
    throw new Error(`Validation failed for tool "${name}":\n${lines.join("\n")}\n\nReceived arguments:\n${JSON.stringify(given, null, 2)}`);
  }

  // ---- values made of schemas
  const copyOf = (value) => (typeof value === "function" ? value() : typeof value === "object" && value !== null ? structuredClone(value) : value);
  function withDefaults(wanted, given) {
    const value = given === undefined && "default" in (wanted ?? {}) ? copyOf(wanted.default) : given;
    if (kindOf(value) === "object" && wanted?.properties) {
      for (const [name, inner] of Object.entries(wanted.properties)) { const made = withDefaults(inner, value[name]); if (made !== undefined) value[name] = made; }
    } else if (Array.isArray(value) && wanted?.items && !Array.isArray(wanted.items)) value.forEach((item, at) => { value[at] = withDefaults(wanted.items, item); });
    for (const part of wanted?.allOf ?? []) withDefaults(part, value);
    return value;
  }
  function clean(wanted, value) {
    if (kindOf(value) === "object" && wanted?.properties) {
      for (const name of Object.keys(value)) if (name in wanted.properties) clean(wanted.properties[name], value[name]); else if (typeof wanted.additionalProperties !== "object") delete value[name];
    } else if (Array.isArray(value) && wanted?.items && !Array.isArray(wanted.items)) value.forEach((item) => clean(wanted.items, item));
    else { const fitting = wanted?.anyOf?.find((part) => accepts(part, value)); if (fitting) clean(fitting, value); }
    return value;
  }
  function create(wanted) {
    if ("default" in wanted) return copyOf(wanted.default);
    if ("const" in wanted) return wanted.const;
    if (wanted.enum) return wanted.enum[0];
    if (wanted.anyOf ?? wanted.oneOf) return create((wanted.anyOf ?? wanted.oneOf)[0]);
    if (wanted.allOf) return Object.assign({}, ...wanted.allOf.map(create));
    switch ([wanted.type].flat()[0]) {
      case "object": return Object.fromEntries((wanted.required ?? []).map((name) => [name, create(wanted.properties[name])]));
      case "array": return Array.isArray(wanted.items) ? wanted.items.map(create) : Array.from({ length: wanted.minItems ?? 0 }, () => create(wanted.items ?? {}));
      case "string": return "x".repeat(wanted.minLength ?? 0);
      case "number": case "integer": return wanted.minimum ?? 0;
      case "boolean": return false;
      case "null": return null;
      default: return wanted.type === undefined ? {} : undefined;
    }
  }
  function coded(wanted, value, direction) {
    let made = value;
    const inside = () => {
      if (kindOf(made) === "object" && wanted?.properties) made = Object.fromEntries(Object.entries(made).map(([name, inner]) => [name, wanted.properties[name] ? coded(wanted.properties[name], inner, direction) : inner]));
      else if (Array.isArray(made) && wanted?.items && !Array.isArray(wanted.items)) made = made.map((item) => coded(wanted.items, item, direction));
    };
    if (direction === "decode") inside();
    if (wanted?.[codec]?.[direction]) made = wanted[codec][direction](made);
    if (direction === "encode") inside();
    return made;
  }
  const failed = (wanted, value) => { throw Object.assign(new Error("Parse"), { cause: { errors: Value.Errors(wanted, value) } }); };
  const judged = (wanted, value) => (accepts(wanted, value) ? value : failed(wanted, value));
  const isEqual = (one, other) => Object.is(one, other) || (typeof one === "object" && typeof other === "object" && one !== null && other !== null && Array.isArray(one) === Array.isArray(other) && Object.keys(one).length === Object.keys(other).length && Object.keys(one).every((key) => isEqual(one[key], other[key])));
  // An iterator that also is a list.
  const iterable = (list) => Object.assign(list, { First: () => list[0] });
  // Before versions had (schema, references, value), too.
  const last = (values) => values.at(-1);
  const Value = {
    Check: (wanted, ...rest) => accepts(wanted, last(rest)),
    Errors(wanted, ...rest) { const value = last(rest); const found = []; check(wanted, value, "", found, false); return iterable(found.map(({ path, message }) => { const place = path === "root" ? "" : path; return { path: place, instancePath: place, schemaPath: "#", message, value: place.split("/").slice(1).reduce((inner, name) => inner?.[name], value) }; })); },
    Convert(wanted, ...rest) { const value = last(rest); return check(wanted, value, "", [], true); },
    Default: (wanted, ...rest) => withDefaults(wanted, last(rest)), Clean: (wanted, ...rest) => clean(wanted, last(rest)), Create: (wanted) => create(wanted),
    Cast: (wanted, ...rest) => { const value = check(wanted, structuredClone(last(rest)), "", [], true); if (accepts(wanted, value)) return value; const made = create(wanted); if (kindOf(made) === "object" && kindOf(value) === "object") for (const [name, inner] of Object.entries(wanted.properties ?? {})) if (value[name] !== undefined && accepts(inner, value[name])) made[name] = value[name]; return made; },
    Repair: (wanted, value) => Value.Cast(wanted, value),
    Parse: (wanted, ...rest) => judged(wanted, coded(wanted, check(wanted, withDefaults(wanted, structuredClone(last(rest))), "", [], true), "decode")),
    Assert: (wanted, ...rest) => { judged(wanted, last(rest)); },
    Decode: (wanted, ...rest) => coded(wanted, judged(wanted, last(rest)), "decode"), Encode: (wanted, ...rest) => judged(wanted, coded(wanted, last(rest), "encode")), HasCodec: (wanted) => wanted?.[codec] !== undefined,
    Clone: (value) => structuredClone(value), Equal: isEqual,
  };
  const compile = (wanted) => ({ Check: (value) => accepts(wanted, value), Errors: (value) => Value.Errors(wanted, value), Decode: (value) => Value.Decode(wanted, value), Encode: (value) => Value.Encode(wanted, value), Parse: (value) => Value.Parse(wanted, value), Clean: (value) => clean(wanted, value), Type: () => wanted, Schema: () => wanted });
  const isKind = (...types) => (wanted) => types.includes(wanted?.type);
  const TypeGuard = { IsObject: isKind("object"), IsArray: isKind("array"), IsString: isKind("string"), IsNumber: isKind("number"), IsInteger: isKind("integer"), IsBoolean: isKind("boolean"), IsNull: isKind("null"), IsUnion: (wanted) => Array.isArray(wanted?.anyOf), IsIntersect: (wanted) => Array.isArray(wanted?.allOf), IsLiteral: (wanted) => wanted?.const !== undefined, IsEnum: (wanted) => Array.isArray(wanted?.enum), IsOptional: (wanted) => wanted?.[optional] === true, IsSchema: (wanted) => typeof wanted === "object" && wanted !== null, IsRef: (wanted) => wanted?.$ref !== undefined, IsNever: (wanted) => wanted?.not !== undefined };
  const registry = () => { const all = new Map(); return { Set: (name, value) => { all.set(name, value); }, Get: (name) => all.get(name), Has: (name) => all.has(name), Delete: (name) => all.delete(name), Clear: () => all.clear(), Entries: () => new Map(all) }; };
  const FormatRegistry = { ...registry(), Set: (name, isFit) => { FORMATS[name] = { test: isFit }; }, Has: (name) => name in FORMATS };
  const typebox = {
    ...Type, ...TypeGuard, ...Value, Type, Value, TypeGuard, FormatRegistry, TypeRegistry: registry(), Kind: Symbol.for("TypeBox.Kind"), OptionalKind: optional,
    TypeCompiler: { Compile: compile }, Compile: compile, CloneType: (type) => ({ ...type }), default: Type,
  };
  // Types and values have parts of one name.
  for (const name of ["Decode", "Encode"]) typebox[name] = (wanted, ...rest) => (typeof rest[0] === "function" ? Type[name](wanted, ...rest) : Value[name](wanted, ...rest));
  return { typebox, validate };
})
