#![no_main]

use hardpan_models::Protocol;

libfuzzer_sys::fuzz_target!(|input: &[u8]| hardpan_fuzz::check(Protocol::Gemini, input));
