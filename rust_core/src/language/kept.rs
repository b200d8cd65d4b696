//! Work that the sessions of one language share, of a stage that the language does not know.

use std::any::Any;
use std::sync::{Mutex, PoisonError};

/// A value that one session has at a time. A session that asks meanwhile begins with an empty one.
#[derive(Debug, Default)]
pub(crate) struct Kept(Mutex<Option<Box<dyn Any + Send>>>);

impl Kept {
    /// Take the value; the default without one.
    pub(crate) fn take<T: Any + Default>(&self) -> Box<T> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        kept.and_then(|kept| kept.downcast().ok()).unwrap_or_default()
    }

    /// Forget the value.
    #[cfg(test)]
    pub(crate) fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Keep a value for later sessions, unless another session has kept a larger one.
    pub(crate) fn give_back<T: Any + Send>(&self, value: Box<T>, size: impl Fn(&T) -> usize) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let other = kept.as_ref().and_then(|kept| kept.downcast_ref()).map_or(0, &size);
        if other < size(&value) {
            *kept = Some(value);
        }
    }
}
