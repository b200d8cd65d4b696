//! Whether texts are Rust to `syn`: for each frame of four bytes (its length, big-endian) and a text, a line `ok`, or `no`
//! and what is wrong.

use std::io::{self, BufWriter, Read, Write};

/// Bytes of the stack that a deeply nested text may use.
const STACK: usize = 1 << 30;

fn main() -> io::Result<()> {
    let judging = std::thread::Builder::new().stack_size(STACK).spawn(judge)?;
    judging.join().expect("the judge gave up")
}

fn judge() -> io::Result<()> {
    let (mut input, mut output) = (io::stdin().lock(), BufWriter::new(io::stdout().lock()));
    let mut length = [0; 4];
    while input.read_exact(&mut length).is_ok() {
        let mut text = vec![0; u32::from_be_bytes(length) as usize];
        input.read_exact(&mut text)?;
        match std::str::from_utf8(&text).map(syn::parse_file) {
            Ok(Ok(_)) => writeln!(output, "ok")?,
            Ok(Err(error)) => writeln!(output, "no {}", one_line(&error.to_string()))?,
            Err(error) => writeln!(output, "no {}", one_line(&error.to_string()))?,
        }
        output.flush()?;
    }
    Ok(())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
