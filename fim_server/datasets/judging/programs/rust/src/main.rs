//! Judge of Rust: it reads frames of four bytes (a length, big-endian) and a text, and writes a line `ok`, or `no` and
//! the error. `syn` judges; after `--rustc EDITION`, rustc's own parser does, in a process for each text.

use std::io::{self, BufWriter, Read, Write};
use std::process::{Command, Stdio};

/// Bytes of the stack that a deeply nested text may use.
const STACK: usize = 1 << 30;

type Verdict = Result<(), String>;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let judging = std::thread::Builder::new().stack_size(STACK).spawn(move || match arguments.as_slice() {
        [flag, edition] if flag == "--rustc" => {
            let program = program()?;
            judge(|text| by_rustc(&program, edition, text))
        }
        _ => judge(|text| Ok(by_syn(text))),
    })?;
    judging.join().expect("a text was too much for the parser")
}

fn judge(verdict: impl Fn(&[u8]) -> io::Result<Verdict>) -> io::Result<()> {
    let (mut input, mut output) = (io::stdin().lock(), BufWriter::new(io::stdout().lock()));
    let mut length = [0; 4];
    while input.read_exact(&mut length).is_ok() {
        let mut text = vec![0; u32::from_be_bytes(length) as usize];
        input.read_exact(&mut text)?;
        match verdict(&text)? {
            Ok(()) => writeln!(output, "ok")?,
            Err(said) => writeln!(output, "no {}", said.split_whitespace().collect::<Vec<_>>().join(" "))?,
        }
        output.flush()?;
    }
    Ok(())
}

fn by_syn(text: &[u8]) -> Verdict {
    let text = std::str::from_utf8(text).map_err(|error| error.to_string())?;
    syn::parse_file(text).map(drop).map_err(|error| error.to_string())
}

/// rustc itself, where rustup has put a program before it that costs time.
fn program() -> io::Result<String> {
    let found = Command::new("rustc").args(["--print", "sysroot"]).output()?;
    Ok(format!("{}/bin/rustc", String::from_utf8_lossy(&found.stdout).trim()))
}

fn by_rustc(program: &str, edition: &str, text: &[u8]) -> io::Result<Verdict> {
    let mut rustc = Command::new(program)
        .args(["-Zparse-crate-root-only", "--cap-lints", "allow", "--edition", edition, "-"])
        .env("RUSTC_BOOTSTRAP", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    // It reads all of its input before it says anything.
    let written = rustc.stdin.take().map_or(Ok(()), |mut input| input.write_all(text));
    let done = rustc.wait_with_output()?;
    written?;
    if done.status.success() {
        return Ok(Ok(()));
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let error = said.lines().find(|line| line.starts_with("error")).unwrap_or("error");
    Ok(Err(error.split_once(": ").map_or(error, |(_, message)| message).to_string()))
}
