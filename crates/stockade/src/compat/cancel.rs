//! Cancelling a task and everything that it started.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Callback = Box<dyn FnOnce() + Send>;

/// Cancels the contexts that were made with it, and those made of them.
///
/// Dropping it cancels nothing.
#[derive(Clone, Debug)]
pub struct Cancel(pub(super) Signal);

/// Keeps a callback registered, see [`Context::after_cancel`](super::Context::after_cancel).
/// Dropping it removes the callback, unless the callback has been taken to be called.
#[derive(Debug)]
#[must_use = "dropping it removes the callback"]
pub struct CancelGuard {
    places: Vec<(Signal, u64)>,
}

/// Raised once. Clones are the same signal.
#[derive(Clone, Default)]
pub(super) struct Signal(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    is_raised: bool,
    next: u64,
    callbacks: BTreeMap<u64, Callback>,
}

impl Cancel {
    /// Cancels: callbacks are called before this returns, on this thread.
    pub fn cancel(&self) {
        self.0.raise();
    }
}

impl Signal {
    pub(super) fn is_raised(&self) -> bool {
        self.lock().is_raised
    }

    fn raise(&self) {
        let callbacks = {
            let mut state = self.lock();
            state.is_raised = true;
            std::mem::take(&mut state.callbacks)
        };
        for callback in callbacks.into_values() {
            callback();
        }
    }

    /// Gives the callback back if the signal has been raised.
    fn register(&self, callback: Callback) -> Result<u64, Callback> {
        let mut state = self.lock();
        if state.is_raised {
            return Err(callback);
        }
        let number = state.next;
        state.next += 1;
        state.callbacks.insert(number, callback);
        Ok(number)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No callback runs while the lock is held, so nothing can leave it half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CancelGuard {
    /// Has `callback` called once, when the first of the signals is raised.
    pub(super) fn new(signals: &[Signal], callback: impl FnOnce() + Send + 'static) -> Self {
        let once = Arc::new(Mutex::new(Some(callback)));
        let mut places = Vec::new();
        for signal in signals {
            let once = Arc::clone(&once);
            let call = move || {
                let callback = once.lock().unwrap_or_else(PoisonError::into_inner).take();
                if let Some(callback) = callback {
                    callback();
                }
            };
            match signal.register(Box::new(call)) {
                Ok(number) => places.push((signal.clone(), number)),
                Err(call) => call(),
            }
        }
        Self { places }
    }
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        for (signal, number) in &self.places {
            signal.lock().callbacks.remove(number);
        }
    }
}

impl PartialEq for Signal {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Signal {}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Signal").field(&self.is_raised()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::Context;
    use super::*;

    fn counter() -> (Arc<AtomicUsize>, impl Fn() + Clone + Send + 'static) {
        let count = Arc::new(AtomicUsize::new(0));
        let own = Arc::clone(&count);
        let add = move || {
            own.fetch_add(1, Ordering::SeqCst);
        };
        (count, add)
    }

    #[test]
    fn a_callback_is_called_once() {
        let (outer, cancel_outer) = Context::new().with_cancel();
        let (inner, cancel_inner) = outer.with_cancel();
        let (count, add) = counter();
        let guard = inner.after_cancel(add);
        cancel_inner.cancel();
        assert!(inner.is_cancelled() && !outer.is_cancelled());
        cancel_outer.cancel();
        assert!(outer.is_cancelled());
        assert_eq!(count.load(Ordering::SeqCst), 1);
        drop(guard);
    }

    #[test]
    fn a_task_takes_its_sub_tasks_with_it() {
        let (outer, cancel) = Context::new().with_cancel();
        let (inner, _) = outer.with_cancel();
        cancel.cancel();
        assert!(inner.is_cancelled());
        let (count, add) = counter();
        let _guard = inner.after_cancel(add);
        assert_eq!(count.load(Ordering::SeqCst), 1, "it was cancelled before");
    }

    #[test]
    fn a_dropped_guard_takes_its_callback_back() {
        let (context, cancel) = Context::new().with_cancel();
        let (count, add) = counter();
        drop(context.after_cancel(add));
        cancel.cancel();
        assert_eq!(count.load(Ordering::SeqCst), 0);
    }
}
