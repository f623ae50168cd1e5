//! The functions that the engine's own JavaScript is given. Extensions never see them.
//!
//! Bytes come from JavaScript as a string with one character for each: reading a typed array in place
//! would need `unsafe`.

#![expect(clippy::needless_pass_by_value, reason = "the engine hands over what it has converted")]

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use ring::rand::SecureRandom;
use ring::{digest, hmac, pbkdf2, rand};
use rquickjs::context::EvalOptions;
use rquickjs::{Ctx, Exception, Function, Module, Object, Promise, Result, TypedArray};
use serde_json::{Value, json};

use super::compression::Frame;
use super::fault::ScriptFault;
use super::host::LogLevel;
use super::json_size::{MAX_VALUES, count_values};
use super::md5::md5;
use super::thread::{HostCall, Job, ThreadState, clock};
use crate::modules::{ImportKind, ModuleFormat, ModulePlace};

/// The longest time that a timer waits: that of other engines.
const MAX_TIMER_MS: f64 = 2_147_483_647.0;

/// How often a password may be hashed for each part of a key.
const MAX_KEY_ROUNDS: u32 = 1_000_000;

/// How many hashes of a password all parts of a key may take, some two seconds: the engine cannot be interrupted
/// meanwhile.
const MAX_KEY_HASHES: u64 = 2_000_000;

/// How many things the host does for a script at once: more than any honest one asks for.
const MAX_HOST_CALLS: usize = 1_000;

/// Bytes of the arguments of all these, as JSON: the host's memory is not the engine's, which has a limit.
const MAX_HOST_CALL_BYTES: usize = 64 << 20;

/// All native functions, by the names that the JavaScript uses.
pub fn functions<'js>(ctx: &Ctx<'js>, state: &Rc<ThreadState>) -> Result<Object<'js>> {
    let native = Object::new(ctx.clone())?;
    add_host_functions(ctx, &native, state)?;
    add_timers(ctx, &native, state)?;
    add_modules(ctx, &native, state)?;
    native.set("importModule", Function::new(ctx.clone(), import_module)?)?;
    native.set("encode", Function::new(ctx.clone(), encode)?)?;
    native.set("decode", Function::new(ctx.clone(), decode)?)?;
    native.set("toBase64", Function::new(ctx.clone(), |binary: String| STANDARD.encode(bytes(&binary)))?)?;
    native.set("fromBase64", Function::new(ctx.clone(), from_base64)?)?;
    native.set("digest", Function::new(ctx.clone(), compute_digest)?)?;
    native.set("hmac", Function::new(ctx.clone(), compute_hmac)?)?;
    native.set("passwordKey", Function::new(ctx.clone(), password_key)?)?;
    native.set("compress", Function::new(ctx.clone(), compress)?)?;
    native.set("decompress", Function::new(ctx.clone(), decompress)?)?;
    native.set("random", Function::new(ctx.clone(), random)?)?;
    native.set("parseUrl", Function::new(ctx.clone(), parse_url)?)?;
    Ok(native)
}

fn add_host_functions<'js>(ctx: &Ctx<'js>, native: &Object<'js>, state: &Rc<ThreadState>) -> Result<()> {
    let shared = state.clone();
    let call_now = move |ctx: Ctx<'_>, name: String, arguments: String| -> Result<String> {
        let (arguments, _) = read_arguments(&ctx, &name, &arguments)?;
        let began = clock();
        let outcome = shared.host.call_now(&name, arguments);
        shared.extend_slice(began.elapsed());
        match outcome {
            Ok(value) => Ok(value.to_string()),
            Err(error) => Err(Exception::throw_message(&ctx, &error.0)),
        }
    };
    native.set("now", Function::new(ctx.clone(), call_now)?)?;
    let shared = state.clone();
    let start = move |ctx: Ctx<'_>, id: u64, name: String, arguments: String| -> Result<()> {
        let bytes = arguments.len();
        let (arguments, values) = read_arguments(&ctx, &name, &arguments)?;
        if let Err(problem) = check_host_calls(&shared.host_calls.borrow(), bytes, values) {
            return Err(Exception::throw_message(&ctx, &problem));
        }
        let (called, jobs) = (shared.host.call(&name, arguments), shared.jobs.clone());
        let task = shared.runtime.spawn(async move {
            let outcome = called.await;
            // A script that has stopped waits for nothing.
            let _ = jobs.send(Job::Settle { id, outcome });
        });
        shared.host_calls.borrow_mut().insert(id, HostCall { abort: task.abort_handle(), bytes, values });
        Ok(())
    };
    native.set("start", Function::new(ctx.clone(), start)?)?;
    let shared = state.clone();
    let cancel = move |id: u64| {
        if let Some(call) = shared.host_calls.borrow_mut().remove(&id) {
            call.abort.abort();
        }
    };
    native.set("cancel", Function::new(ctx.clone(), cancel)?)?;
    let shared = state.clone();
    let wait = move |ctx: Ctx<'_>, name: String, arguments: String| -> Result<String> {
        let (arguments, _) = read_arguments(&ctx, &name, &arguments)?;
        match shared.wait_for_host(&name, arguments) {
            Ok(value) => Ok(value.to_string()),
            Err(error) => Err(Exception::throw_message(&ctx, &error.0)),
        }
    };
    native.set("wait", Function::new(ctx.clone(), wait)?)?;
    let shared = state.clone();
    let finish = move |id: u64, succeeded: bool, json: String| shared.finish(id, succeeded, &json);
    native.set("finish", Function::new(ctx.clone(), finish)?)?;
    let shared = state.clone();
    let log = move |level: String, text: String| {
        let level = match &*level {
            "debug" | "trace" => LogLevel::Debug,
            "warn" => LogLevel::Warn,
            "error" => LogLevel::Error,
            _ => LogLevel::Info,
        };
        shared.host.log(level, &text);
    };
    native.set("log", Function::new(ctx.clone(), log)?)?;
    let shared = state.clone();
    let fault = move |message: String, place: Option<String>| {
        shared.host.fault(ScriptFault { place, ..ScriptFault::new(message) });
    };
    native.set("fault", Function::new(ctx.clone(), fault)?)
}

/// Reads what a script hands to its host, and says how many values it has. What is too much is not read: it takes
/// memory of the host, which has no limit of its own.
fn read_arguments(ctx: &Ctx<'_>, name: &str, json: &str) -> Result<(Value, usize)> {
    let throw = |problem: String| Exception::throw_message(ctx, &problem);
    if json.len() > MAX_HOST_CALL_BYTES {
        let (megabytes, most) = (json.len() >> 20, MAX_HOST_CALL_BYTES >> 20);
        return Err(throw(format!("{name} was given {megabytes} MB as JSON; at most {most} MB are taken")));
    }
    let values = count_values(json);
    if values > MAX_VALUES {
        return Err(throw(format!("{name} was given {values} values; at most {MAX_VALUES} are taken")));
    }
    let arguments =
        parse_json(json).map_err(|error| throw(format!("what {name} was given cannot be read: {error}")))?;
    Ok((arguments, values))
}

/// Whether the host does one more thing for a script.
fn check_host_calls(
    running: &BTreeMap<u64, HostCall>,
    bytes: usize,
    values: usize,
) -> std::result::Result<(), String> {
    if running.len() >= MAX_HOST_CALLS {
        return Err(format!(
            "{MAX_HOST_CALLS} calls wait for their answers; no more are taken until one ends"
        ));
    }
    let waiting: usize = running.values().map(|call| call.bytes).sum();
    if waiting + bytes > MAX_HOST_CALL_BYTES {
        let megabytes = MAX_HOST_CALL_BYTES >> 20;
        return Err(format!(
            "the calls that wait for their answers have more than {megabytes} MB of arguments"
        ));
    }
    let waiting: usize = running.values().map(|call| call.values).sum();
    if waiting + values > MAX_VALUES {
        return Err(format!("the calls that wait for their answers have more than {MAX_VALUES} values"));
    }
    Ok(())
}

fn add_timers<'js>(ctx: &Ctx<'js>, native: &Object<'js>, state: &Rc<ThreadState>) -> Result<()> {
    let shared = state.clone();
    let set_timer = move |id: u64, milliseconds: f64| {
        let wait = Duration::from_secs_f64(milliseconds.clamp(1.0, MAX_TIMER_MS) / 1000.0);
        shared.timers.borrow_mut().insert((clock() + wait, id), ());
    };
    native.set("setTimer", Function::new(ctx.clone(), set_timer)?)?;
    let shared = state.clone();
    let clear_timer = move |id: u64| shared.timers.borrow_mut().retain(|(_, timer), ()| *timer != id);
    native.set("clearTimer", Function::new(ctx.clone(), clear_timer)?)?;
    let shared = state.clone();
    let elapsed = move || shared.started.elapsed().as_secs_f64() * 1000.0;
    native.set("elapsed", Function::new(ctx.clone(), elapsed)?)
}

/// What `require` is made of.
fn add_modules<'js>(ctx: &Ctx<'js>, native: &Object<'js>, state: &Rc<ThreadState>) -> Result<()> {
    let shared = state.clone();
    let locate = move |ctx: Ctx<'_>, base: String, name: String| -> Result<String> {
        let place = shared.loader.locate(Path::new(&base), &name, ImportKind::Require);
        let (kind, place) = match place.map_err(|problem| Exception::throw_message(&ctx, &problem))? {
            ModulePlace::BuiltIn(module) => ("built-in", module),
            ModulePlace::File(path, ModuleFormat::EsModule) => {
                ("module", path.to_string_lossy().into_owned())
            }
            ModulePlace::File(path, _) => ("file", path.to_string_lossy().into_owned()),
        };
        Ok(json!({ "kind": kind, "place": place }).to_string())
    };
    native.set("locate", Function::new(ctx.clone(), locate)?)?;
    let shared = state.clone();
    let read_json = move |ctx: Ctx<'_>, path: String| -> Result<String> {
        shared.loader.json(Path::new(&path)).map_err(|problem| Exception::throw_message(&ctx, &problem))
    };
    native.set("readJson", Function::new(ctx.clone(), read_json)?)?;
    native.set("compile", Function::new(ctx.clone(), compiler(state.clone()))?)?;
    native.set("evaluate", Function::new(ctx.clone(), evaluator(state.clone()))?)
}

/// Makes a function of a file of CommonJS.
fn compiler(state: Rc<ThreadState>) -> impl for<'js> Fn(Ctx<'js>, String) -> Result<Function<'js>> {
    move |ctx, path| {
        let source = state.loader.javascript(Path::new(&path));
        let source = source.map_err(|problem| Exception::throw_message(&ctx, &problem))?;
        let mut options = EvalOptions::default();
        options.strict = false;
        options.filename = Some(path);
        let names = "exports, require, module, __filename, __dirname";
        ctx.eval_with_options(format!("(function ({names}) {{{source}\n}})"), options)
    }
}

/// Evaluates an ES module at once, for `require`.
fn evaluator(state: Rc<ThreadState>) -> impl for<'js> Fn(Ctx<'js>, String) -> Result<Object<'js>> {
    move |ctx, path| {
        let (module, evaluated) = state.loader.declare(&ctx, &path)?.eval()?;
        match evaluated.result::<()>() {
            Some(outcome) => outcome.and_then(|()| module.namespace()),
            None => Err(Exception::throw_message(&ctx, "require() of a module that waits at its top level")),
        }
    }
}

/// JSON as JavaScript writes it: strings may have half of a surrogate pair, which Rust's cannot.
pub fn parse_json(json: &str) -> std::result::Result<Value, serde_json::Error> {
    serde_json::from_str(json).or_else(|error| {
        if json.contains("\\ud") { serde_json::from_str(&replace_lone_surrogates(json)) } else { Err(error) }
    })
}

/// The text with `\ufffd` for every escape of a surrogate that has no other half.
fn replace_lone_surrogates(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let unit = |from: &str| {
            let digits = from.strip_prefix("\\u")?.get(..4)?;
            u16::from_str_radix(digits, 16).ok()
        };
        let taken = match unit(rest) {
            Some(0xd800..=0xdbff) if unit(&rest[6..]).is_some_and(|low| (0xdc00..=0xdfff).contains(&low)) => {
                text.push_str(&rest[..12]);
                12
            }
            Some(0xd800..=0xdfff) => {
                text.push_str("\\ufffd");
                6
            }
            _ => {
                // The escaped character may be a backslash, which begins no other escape.
                let length = 1 + rest[1..].chars().next().map_or(0, char::len_utf8);
                text.push_str(&rest[..length]);
                length
            }
        };
        rest = &rest[taken..];
    }
    text.push_str(rest);
    text
}

/// The bytes of a string with one character for each.
#[expect(clippy::cast_possible_truncation, reason = "characters above 255 are cut, as Node does")]
fn bytes(binary: &str) -> Vec<u8> {
    binary.chars().map(|character| u32::from(character) as u8).collect()
}

fn import_module<'js>(ctx: Ctx<'js>, path: String) -> Result<Promise<'js>> {
    Module::import(&ctx, path)
}

/// A typed array whose bytes the engine holds, so that they count towards the memory of the script.
fn bytes_in_engine<'js>(ctx: Ctx<'js>, bytes: &[u8]) -> Result<TypedArray<'js, u8>> {
    TypedArray::new_copy(ctx, bytes)
}

fn encode<'js>(ctx: Ctx<'js>, text: String) -> Result<TypedArray<'js, u8>> {
    bytes_in_engine(ctx, text.as_bytes())
}

fn decode(ctx: Ctx<'_>, binary: String, is_fatal: bool) -> Result<String> {
    match String::from_utf8(bytes(&binary)) {
        Ok(text) => Ok(text),
        Err(_) if is_fatal => Err(Exception::throw_type(&ctx, "the bytes are no UTF-8")),
        Err(error) => Ok(String::from_utf8_lossy(error.as_bytes()).into_owned()),
    }
}

fn from_base64<'js>(ctx: Ctx<'js>, text: String) -> Result<TypedArray<'js, u8>> {
    let plain: String = text
        .chars()
        .filter(|character| !character.is_whitespace() && *character != '=')
        .map(|character| match character {
            '-' => '+',
            '_' => '/',
            other => other,
        })
        .collect();
    match STANDARD_NO_PAD.decode(plain) {
        Ok(decoded) => bytes_in_engine(ctx, &decoded),
        Err(_) => Err(Exception::throw_type(&ctx, "the text is no base64")),
    }
}

fn compute_digest<'js>(ctx: Ctx<'js>, name: String, binary: String) -> Result<TypedArray<'js, u8>> {
    if name == "md5" {
        return bytes_in_engine(ctx, md5(&bytes(&binary)).as_slice());
    }
    let algorithm = match &*name {
        "sha1" => &digest::SHA1_FOR_LEGACY_USE_ONLY,
        "sha256" => &digest::SHA256,
        "sha384" => &digest::SHA384,
        "sha512" => &digest::SHA512,
        _ => return Err(Exception::throw_type(&ctx, &format!("there is no digest {name} here"))),
    };
    bytes_in_engine(ctx, digest::digest(algorithm, &bytes(&binary)).as_ref())
}

fn compute_hmac<'js>(
    ctx: Ctx<'js>,
    name: String,
    key: String,
    binary: String,
) -> Result<TypedArray<'js, u8>> {
    let algorithm = match &*name {
        "sha1" => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
        "sha256" => hmac::HMAC_SHA256,
        "sha384" => hmac::HMAC_SHA384,
        "sha512" => hmac::HMAC_SHA512,
        _ => return Err(Exception::throw_type(&ctx, &format!("there is no digest {name} here"))),
    };
    bytes_in_engine(ctx, hmac::sign(&hmac::Key::new(algorithm, &bytes(&key)), &bytes(&binary)).as_ref())
}

/// A key made of a password, by PBKDF2.
fn password_key<'js>(
    ctx: Ctx<'js>,
    name: String,
    password: String,
    salt: String,
    rounds: u32,
    length: u32,
) -> Result<TypedArray<'js, u8>> {
    let (algorithm, block) = match &*name {
        "sha1" => (pbkdf2::PBKDF2_HMAC_SHA1, 20),
        "sha256" => (pbkdf2::PBKDF2_HMAC_SHA256, 32),
        "sha384" => (pbkdf2::PBKDF2_HMAC_SHA384, 48),
        "sha512" => (pbkdf2::PBKDF2_HMAC_SHA512, 64),
        _ => return Err(Exception::throw_type(&ctx, &format!("there is no digest {name} here"))),
    };
    let Some(rounds) = NonZeroU32::new(rounds).filter(|rounds| rounds.get() <= MAX_KEY_ROUNDS) else {
        return Err(Exception::throw_range(&ctx, &format!("a key needs 1 to {MAX_KEY_ROUNDS} iterations")));
    };
    if length > 65_536 {
        return Err(Exception::throw_range(&ctx, "a key has at most 65536 bytes"));
    }
    // The salt is hashed for each part, too.
    let parts = u64::from(length).div_ceil(block);
    let hashes = parts.saturating_mul(u64::from(rounds.get()) + salt.len() as u64 / 64);
    if hashes > MAX_KEY_HASHES {
        let problem = format!(
            "a key of {length} bytes takes {parts} times its iterations: {hashes} hashes; at most {MAX_KEY_HASHES} are computed"
        );
        return Err(Exception::throw_range(&ctx, &problem));
    }
    let mut key = vec![0; length as usize];
    pbkdf2::derive(algorithm, rounds, &bytes(&salt), &bytes(&password), &mut key);
    bytes_in_engine(ctx, &key)
}

fn compress<'js>(ctx: Ctx<'js>, frame: String, binary: String, level: i32) -> Result<TypedArray<'js, u8>> {
    let plain = bytes(&binary);
    bytes_in_engine(ctx, &Frame::named(&frame, &plain).pack(&plain, level))
}

fn decompress<'js>(ctx: Ctx<'js>, frame: String, binary: String) -> Result<TypedArray<'js, u8>> {
    let packed = bytes(&binary);
    match Frame::named(&frame, &packed).unpack(&packed) {
        Ok(plain) => bytes_in_engine(ctx, &plain),
        Err(error) => Err(Exception::throw_message(&ctx, &error.to_string())),
    }
}

fn random<'js>(ctx: Ctx<'js>, count: u32) -> Result<TypedArray<'js, u8>> {
    if count > 65_536 {
        return Err(Exception::throw_range(&ctx, "at most 65536 random bytes at once"));
    }
    let mut filled = vec![0; count as usize];
    match rand::SystemRandom::new().fill(&mut filled) {
        Ok(()) => bytes_in_engine(ctx, &filled),
        Err(_) => Err(Exception::throw_message(&ctx, "no random bytes")),
    }
}

/// The parts of an address as JSON.
fn parse_url(ctx: Ctx<'_>, text: String, base: Option<String>) -> Result<String> {
    let parsed = match &base {
        Some(base) => url::Url::parse(base).and_then(|base| base.join(&text)),
        None => url::Url::parse(&text),
    };
    let url = match parsed {
        Ok(url) => url,
        Err(error) => return Err(Exception::throw_type(&ctx, &format!("Invalid URL: {text} ({error})"))),
    };
    let marked = |mark: &str, part: Option<&str>| match part {
        Some(part) if !part.is_empty() => format!("{mark}{part}"),
        _ => String::new(),
    };
    let host = url.host_str().unwrap_or_default();
    let port = url.port().map(|port| port.to_string()).unwrap_or_default();
    Ok(json!({
        "href": url.as_str(),
        "origin": url.origin().ascii_serialization(),
        "protocol": format!("{}:", url.scheme()),
        "username": url.username(),
        "password": url.password().unwrap_or_default(),
        "host": if port.is_empty() { host.to_owned() } else { format!("{host}:{port}") },
        "hostname": host,
        "port": port,
        "pathname": url.path(),
        "search": marked("?", url.query()),
        "hash": marked("#", url.fragment()),
    })
    .to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_surrogate_pair_becomes_a_replacement_character() {
        assert_eq!(parse_json(r#"["\ud83d\ude00"]"#).unwrap(), json!(["😀"]));
        assert_eq!(parse_json(r#"["a\ud83d","\ude00b"]"#).unwrap(), json!(["a\u{fffd}", "\u{fffd}b"]));
        assert_eq!(parse_json(r#"["\\ud83d\ud83d"]"#).unwrap(), json!(["\\ud83d\u{fffd}"]));
    }
}
