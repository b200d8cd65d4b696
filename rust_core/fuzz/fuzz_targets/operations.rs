#![no_main]

use fim_server_fuzz::operations::{Operation, run};

libfuzzer_sys::fuzz_target!(|operations: Vec<Operation>| run(&operations));
