//! What was chosen for a task, and how its sub-tasks come to have it too.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::thread::JoinHandle;

use super::cancel::{Cancel, CancelGuard, Signal};
use super::{FrontError, errata, hawk};

thread_local! {
    /// What the code that runs right now was entered with.
    static CURRENT: RefCell<Context> = RefCell::default();
}

/// The choices of a task: a value that never changes, and is cheap to copy.
///
/// It can be passed on by hand, or be entered: whatever runs inside finds it with
/// [`Context::current`], and so do the threads and futures that are started with it. Nothing is
/// inherited behind one's back: a thread that `std` starts has no choices, and having none is
/// not the same as having chosen none.
///
/// ```
/// use stockade::compat::Context;
/// use stockade::compat::hawk::{Mode, context_with_mode, mode_from_context};
///
/// let task = context_with_mode(&Context::new(), Mode::Strict);
/// let seen = task.enter(|| {
///     let sub_task = Context::current().spawn(|| mode_from_context(&Context::current()));
///     sub_task.join().unwrap()
/// });
/// assert_eq!(seen, Some(Mode::Strict));
/// assert_eq!(mode_from_context(&Context::current()), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context {
    pub(super) mode: Option<hawk::Mode>,
    pub(super) config: Option<Arc<errata::Config>>,
    /// Each of them cancels it.
    pub(super) signals: Vec<Signal>,
}

impl Context {
    /// Nothing was chosen.
    pub fn new() -> Self {
        Self::default()
    }

    /// The one that the code running right now was entered with.
    pub fn current() -> Self {
        CURRENT.with_borrow(Clone::clone)
    }

    /// The same choices in a context that can be cancelled, also when this one is cancelled.
    pub fn with_cancel(&self) -> (Self, Cancel) {
        let mut context = self.clone();
        let signal = Signal::default();
        context.signals.push(signal.clone());
        (context, Cancel(signal))
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.signals.iter().any(Signal::is_raised)
    }

    /// Refuses if it was cancelled.
    ///
    /// # Errors
    /// [`FrontError::Cancelled`].
    pub fn check(&self) -> Result<(), FrontError> {
        if self.is_cancelled() {
            return Err(FrontError::Cancelled);
        }
        Ok(())
    }

    /// Calls `callback` when it is cancelled: at once if it was, otherwise on the thread that
    /// cancels. The callback should not block.
    pub fn after_cancel(&self, callback: impl FnOnce() + Send + 'static) -> CancelGuard {
        CancelGuard::new(&self.signals, callback)
    }

    /// Runs `work` with it; afterwards, and also if `work` panics, all is as before.
    pub fn enter<T>(&self, work: impl FnOnce() -> T) -> T {
        let _entered = Entered(Some(CURRENT.replace(self.clone())));
        work()
    }

    /// Starts a thread with it.
    pub fn spawn<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let context = self.clone();
        std::thread::spawn(move || context.enter(work))
    }

    /// A future with it, on whatever thread it is polled.
    pub async fn follow<F: Future>(&self, work: F) -> F::Output {
        let mut work = pin!(work);
        poll_fn(|task| self.enter(|| work.as_mut().poll(task))).await
    }
}

/// Puts back what was there before.
struct Entered(Option<Context>);

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(before) = self.0.take() {
            CURRENT.set(before);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Poll, Waker};

    use super::*;
    use crate::compat::hawk::{Mode, context_with_mode, mode_from_context};

    fn seen() -> Option<Mode> {
        mode_from_context(&Context::current())
    }

    #[test]
    fn inner_choices_end_with_their_task() {
        let strict = context_with_mode(&Context::new(), Mode::Strict);
        strict.enter(|| {
            let inner = context_with_mode(&Context::current(), Mode::Workspace);
            assert_eq!(inner.enter(seen), Some(Mode::Workspace));
            assert_eq!(seen(), Some(Mode::Strict));
            let panicked = std::panic::catch_unwind(|| inner.enter(|| panic!("on purpose")));
            assert!(panicked.is_err());
            assert_eq!(seen(), Some(Mode::Strict));
        });
        assert_eq!(seen(), None);
    }

    #[test]
    fn threads_have_it_only_if_started_with_it() {
        let strict = context_with_mode(&Context::new(), Mode::Strict);
        strict.enter(|| {
            assert_eq!(std::thread::spawn(seen).join().unwrap(), None);
            let grandchild = || Context::current().spawn(seen).join().unwrap();
            let child = Context::current().spawn(grandchild);
            assert_eq!(child.join().unwrap(), Some(Mode::Strict));
        });
    }

    /// Two tasks take turns on one thread; each sees its own choice at every turn.
    #[test]
    fn futures_have_it_at_every_turn() {
        async fn task(mode: Mode) -> Vec<Option<Mode>> {
            let mut all = Vec::new();
            for _ in 0..3 {
                all.push(seen());
                let mut waited = false;
                poll_fn(|_| {
                    if std::mem::replace(&mut waited, true) {
                        return Poll::Ready(());
                    }
                    Poll::Pending
                })
                .await;
            }
            assert_eq!(seen(), Some(mode));
            all
        }
        let contexts = [Mode::Strict, Mode::Off].map(|mode| {
            let context = context_with_mode(&Context::new(), mode);
            (context, mode)
        });
        let mut one = Box::pin(contexts[0].0.follow(task(contexts[0].1)));
        let mut other = Box::pin(contexts[1].0.follow(task(contexts[1].1)));
        let mut waker = std::task::Context::from_waker(Waker::noop());
        let mut ended = [None, None];
        while ended.iter().any(Option::is_none) {
            for (future, end) in [&mut one, &mut other].into_iter().zip(&mut ended) {
                if end.is_none()
                    && let Poll::Ready(all) = future.as_mut().poll(&mut waker)
                {
                    *end = Some(all);
                }
                assert_eq!(seen(), None);
            }
        }
        assert_eq!(ended[0], Some(vec![Some(Mode::Strict); 3]));
        assert_eq!(ended[1], Some(vec![Some(Mode::Off); 3]));
    }
}
