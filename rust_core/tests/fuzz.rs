//! The fuzz targets on fixed seeds: the short form of `cargo fuzz run TARGET` (CONTRIBUTING.md has the long one).
//!
//! `FIM_SERVER_LONG=1` takes a hundred times as many inputs, `FIM_SERVER_SEED` others.

#[allow(unreachable_pub, reason = "a crate of its own elsewhere")]
#[path = "../fuzz/src/lib.rs"]
mod targets;

use arbitrary::{Arbitrary, Unstructured};

/// Marsaglia's xorshift64*: inputs have to be the same everywhere, and need no other property.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).expect("less than a usize")
    }

    fn bytes(&mut self, longest: usize) -> Vec<u8> {
        (0..self.below(longest + 1)).map(|_| self.below(256) as u8).collect()
    }
}

fn run(inputs: usize, mut target: impl FnMut(&mut Draw)) {
    let seed = std::env::var("FIM_SERVER_SEED").ok().map_or(1, |seed| seed.parse::<u64>().expect("a number"));
    let times = if std::env::var_os("FIM_SERVER_LONG").is_some() { 100 } else { 1 };
    let mut draw = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for _ in 0..inputs * times {
        target(&mut draw);
    }
}

#[test]
fn any_definition_is_a_language_or_an_error() {
    targets::spec(targets::BLOCKS.as_bytes());
    run(400, |draw| {
        let mut text = targets::BLOCKS.as_bytes().to_vec();
        for _ in 0..=draw.below(4) {
            let (at, length) = (draw.below(text.len()), draw.below(12));
            let end = (at + length).min(text.len());
            match draw.below(3) {
                0 => drop(text.drain(at..end)),
                1 => text[at] = b"[]{}\",:09aA\\*+?|() -"[draw.below(20)],
                _ => {
                    let copied = text[at..end].to_vec();
                    let to = draw.below(text.len());
                    text.splice(to..to, copied);
                }
            }
        }
        targets::spec(&text);
    });
}

#[test]
fn a_session_answers_consistently() {
    run(600, |draw| {
        let parts = [draw.bytes(10), draw.bytes(6), draw.bytes(10)]
            .map(|part| part.into_iter().map(|b| b % 0xff).collect::<Vec<u8>>());
        targets::session(&parts.join(&0xff));
    });
}

#[test]
fn operations_agree_with_their_plain_twins() {
    run(400, |draw| {
        let bytes = draw.bytes(600);
        let mut input = Unstructured::new(&bytes);
        let count = draw.below(16);
        let operations: Vec<_> =
            (0..count).filter_map(|_| targets::operations::Operation::arbitrary(&mut input).ok()).collect();
        targets::operations::run(&operations);
    });
}

#[test]
fn a_spoilt_table_is_refused() {
    targets::table_file(&[]);
    run(150, |draw| {
        let how = draw.below(6) as u8;
        let mut input = vec![how];
        input.extend(draw.bytes(24));
        targets::table_file(&input);
    });
}
