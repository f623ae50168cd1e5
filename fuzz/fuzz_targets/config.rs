#![no_main]

use hardpan_app::settings::Config;

// A `config.toml` is read or refused.
libfuzzer_sys::fuzz_target!(|input: &str| drop(toml::from_str::<Config>(input)));
