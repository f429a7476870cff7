//! Any bytes as Go: no panic, an end in time, and places that are inside the text.
#![no_main]

mod verify_common;

use stockade_verify::Language;

libfuzzer_sys::fuzz_target!(|data: &[u8]| verify_common::check(data, Language::Go));
