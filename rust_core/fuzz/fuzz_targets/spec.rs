#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fim_server_fuzz::spec(data));
