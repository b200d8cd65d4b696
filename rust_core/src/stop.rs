//! Cancellation of work that is no longer needed, or that grows too large: a flag, a deadline and a memory limit that
//! the engine's loops check.
//!
//! The engine's caller sets these once, around its calls ([`watched`]). Inner loops check them ([`poll`]) without a
//! parameter. A loop that has to stop unwinds to [`watched`]. It polls only where its data is consistent, or where all
//! that it has made is dropped with it. So shared data (charts, requirements, masks) is as after a call that returned.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// Polls between two looks at the flag and the clock. Unit: polls, of a tenth of a microsecond to ten each.
const POLLS: u32 = 32;

/// Request to stop some work.
#[derive(Debug, Default)]
pub struct Stop {
    stopped: AtomicBool,
    deadline: Option<Instant>,
    /// Bytes that the work may hold beyond those at its beginning.
    most: Option<usize>,
    looks: AtomicU64,
}

/// Error of work that was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

thread_local! {
    static WATCHED: RefCell<Vec<Arc<Stop>>> = const { RefCell::new(Vec::new()) };
    static POLLED: Cell<u32> = const { Cell::new(0) };
    /// Bytes that this thread has taken from the allocator, less those that it has given back, whoever allocated them.
    static HELD: Cell<isize> = const { Cell::new(0) };
    /// `HELD` at the beginning of the work.
    static BEGAN: Cell<isize> = const { Cell::new(0) };
}

/// Record that this thread has taken bytes (or given them back: below 0). The program's allocator calls it; the engine
/// does not choose one. Without such an allocator, no memory limit is ever passed.
#[inline]
pub fn count(bytes: isize) {
    // Each `get` and each `set` would look the thread's cell up: in a shared library, by two calls.
    HELD.with(|held| held.set(held.get().wrapping_add(bytes)));
}

/// Run some work, and return by how many bytes the held memory has grown.
pub fn counted<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    let done = work();
    (done, usize::try_from(HELD.get().wrapping_sub(before)).unwrap_or(0))
}

impl Stop {
    /// A stop with an optional deadline.
    #[must_use]
    pub fn new(deadline: Option<Instant>) -> Self {
        Self { stopped: AtomicBool::new(false), deadline, most: None, looks: AtomicU64::new(0) }
    }

    /// This stop with a memory limit: bytes that the work may hold beyond those at its beginning.
    #[must_use]
    pub fn holding(self, most: Option<usize>) -> Self {
        Self { most, ..self }
    }

    /// Stop the work, from any thread.
    pub fn set(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Return whether it was set, or its deadline has passed.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Number of times that loops have polled it. It grows while work goes on that would heed it.
    #[must_use]
    pub fn looks(&self) -> u64 {
        self.looks.load(Ordering::Relaxed)
    }

    /// Return whether it is set, with the bytes that the work holds beyond its beginning.
    fn look(&self, held: usize) -> bool {
        self.looks.fetch_add(1, Ordering::Relaxed);
        self.is_set() || self.most.is_some_and(|most| held > most)
    }
}

/// Do some work on this thread, and stop it within about a millisecond once one of `stops` is set.
///
/// # Errors
/// [`Stopped`] if it was stopped.
pub fn watched<T>(stops: &[Arc<Stop>], work: impl FnOnce() -> T) -> Result<T, Stopped> {
    let before = WATCHED.replace(stops.to_vec());
    let began = BEGAN.replace(HELD.get());
    let outcome = catch_unwind(AssertUnwindSafe(work));
    WATCHED.set(before);
    BEGAN.set(began);
    outcome.or_else(|payload| if payload.is::<Stopped>() { Err(Stopped) } else { resume_unwind(payload) })
}

/// Unwind from the work, if it is to stop.
#[inline]
pub(crate) fn poll() {
    let polled = POLLED.with(|polled| {
        polled.set(polled.get().wrapping_add(1));
        polled.get()
    });
    if polled % POLLS != 0 {
        return;
    }
    let held = usize::try_from(HELD.get().wrapping_sub(BEGAN.get())).unwrap_or(0);
    if WATCHED.with_borrow(|watched| watched.iter().any(|stop| stop.look(held))) {
        // No panic hook is called, since this is no error.
        resume_unwind(Box::new(Stopped));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn forever() {
        loop {
            poll();
        }
    }

    #[test]
    fn work_stops_when_set_and_at_its_deadline() {
        let stops = [Arc::new(Stop::new(None)), Arc::new(Stop::new(None))];
        assert_eq!(watched(&stops, || 7), Ok(7));
        for told in [0, 1] {
            let stops = [Arc::new(Stop::new(None)), Arc::new(Stop::new(None))];
            let others = stops.clone();
            let left = std::thread::spawn(move || watched(&others, forever));
            stops[told].set();
            assert_eq!(left.join().expect("it was left, not ended"), Err(Stopped));
        }
        assert!(stops.iter().all(|stop| stop.looks() == 0));
        let soon = Arc::new(Stop::new(Some(Instant::now() + Duration::from_millis(5))));
        assert!(!soon.stopped.load(Ordering::Relaxed));
        assert_eq!(watched(std::slice::from_ref(&soon), forever), Err(Stopped));
        assert!(soon.looks() > 0);
    }

    #[test]
    fn an_inner_stop_leaves_the_outer_one_in_force() {
        let (outer, inner) = (Arc::new(Stop::new(None)), Arc::new(Stop::new(None)));
        inner.set();
        let left = watched(std::slice::from_ref(&outer), || {
            assert_eq!(watched(&[inner], forever), Err(Stopped));
            outer.set();
            forever();
        });
        assert_eq!(left, Err(Stopped));
        (0..10 * POLLS).for_each(|_| poll()); // nothing is watched here
    }

    #[test]
    fn work_stops_when_it_holds_too_much_memory() {
        let stop = || Arc::new(Stop::new(None).holding(Some(1_000)));
        count(5_000); // before it began
        let (outcome, held) = counted(|| {
            watched(&[stop()], || {
                (0..100).for_each(|_| {
                    count(900);
                    (0..POLLS).for_each(|_| poll());
                    count(-900);
                });
                count(800);
            })
        });
        assert_eq!((outcome, held), (Ok(()), 800));
        let (outcome, held) = counted(|| {
            watched(&[stop()], || {
                loop {
                    count(10);
                    poll();
                }
            })
        });
        assert_eq!(outcome, Err::<(), _>(Stopped));
        assert!((1_001..2_000).contains(&held));
        assert_eq!(counted(|| count(-9_000)).1, 0);
    }

    #[test]
    fn a_panic_passes_through() {
        let stops = [Arc::new(Stop::new(None))];
        let outcome = catch_unwind(AssertUnwindSafe(|| watched(&stops, || panic!("a bug"))));
        assert!(!outcome.expect_err("it panics").is::<Stopped>());
    }
}
