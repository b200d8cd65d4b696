//! Memory of opening a session, by the character, for texts whose repetitions take most of it.

use fim_server_core::{Language, LanguageSpec, Session};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Classes of sizes, eight to each doubling.
const CLASSES: usize = 8 * usize::BITS as usize;

/// By size class, the bytes held, and the most that were held.
///
/// Allocators keep freed blocks for others of the same class, for a while at least: a table that doubles leaves each of
/// its former sizes behind. So a process grows by the sum of the most that each class held, rather than by the most
/// that all held at once.
struct Classes {
    now: [AtomicUsize; CLASSES],
    most: [AtomicUsize; CLASSES],
}

impl Classes {
    fn of(size: usize) -> usize {
        let doublings = size.max(8).ilog2() as usize;
        8 * (doublings - 3) + ((size.max(8) >> (doublings - 3)) & 7)
    }

    /// Bytes by which the classes grow at most while something is done.
    fn growth<T>(&self, work: impl FnOnce() -> T) -> (T, usize) {
        let held = || self.now.iter().map(|class| class.load(Relaxed));
        let before: Vec<usize> = held().collect();
        for (most, now) in self.most.iter().zip(&before) {
            most.store(*now, Relaxed);
        }
        let made = work();
        let grown = self.most.iter().zip(before).map(|(most, before)| most.load(Relaxed) - before);
        (made, grown.sum())
    }
}

struct Counting;

static COUNTED: Classes =
    Classes { now: [const { AtomicUsize::new(0) }; CLASSES], most: [const { AtomicUsize::new(0) }; CLASSES] };

// SAFETY: every call is forwarded to the system, which keeps the contract; counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let class = Classes::of(layout.size());
        let now = COUNTED.now[class].fetch_add(layout.size(), Relaxed) + layout.size();
        COUNTED.most[class].fetch_max(now, Relaxed);
        // SAFETY: the caller keeps `GlobalAlloc::alloc`'s contract, which is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        COUNTED.now[Classes::of(layout.size())].fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above; the pointer came from the system.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes of a text that repeats one unit.
const LENGTH: usize = 60_000;

/// Bytes that a session may take for each character: less than the goal of 500, which includes the allocator's
/// overhead.
const MOST: usize = 420;

#[test]
fn repetitive_texts_take_few_bytes_a_character() {
    let spec: LanguageSpec = serde_json::from_str(include_str!("languages/python.json")).expect("a definition");
    let language = Arc::new(Language::compile(&spec, None).expect("a language"));
    let repeated = |unit: &str, nested: &str| unit.repeat(LENGTH / (unit.len() + nested.len()));
    // Left of the cursor and right of it.
    let texts = [
        (repeated("lambda x=x,x=", ":x"), format!("x{}\n", repeated(":x", "lambda x=x,x="))),
        (format!("{}lambda", repeated("lambda x=", ":x,/")), format!(" x{}:x\n", repeated(":x,/", "lambda x="))),
        ("f'{x:{x:{x}{".to_owned(), format!("x}}{}}}}}'\n", repeated("{x}", ""))),
        (String::new(), repeated(")]}", "")),
        (String::new(), format!("x*{}x\n", repeated("(((((x)))))*x*", ""))),
        (String::new(), format!("{}x\n", repeated("+", ""))),
    ];
    for (left, right) in &texts {
        let small = (&left[..left.len().min(40)], &right[right.len().saturating_sub(40)..]);
        drop(Session::open(&language, small.0, small.1)); // the tables that a language makes once are not counted
        let (session, bytes) = COUNTED.growth(|| Session::open(&language, left, right));
        let characters = left.len() + right.len();
        let text = format!("{}|{}", &left[..left.len().min(20)], &right[..right.len().min(20)]);
        assert!(bytes <= MOST * characters, "{text}: {} bytes a character", bytes / characters);
        drop(session);
    }
}
