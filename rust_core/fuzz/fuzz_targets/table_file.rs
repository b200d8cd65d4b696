#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fim_server_fuzz::table_file(data));
