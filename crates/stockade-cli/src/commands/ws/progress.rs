//! A line on the terminal that says how far long work has come.

use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use stockade_policy::profile::format_size;
use stockade_workspace::Progress;

use crate::output::Format;

/// Shows progress if standard error is a terminal, and then only of work that takes long.
pub(super) struct Bar {
    shown: bool,
    done: AtomicU64,
    state: Mutex<State>,
}

struct State {
    what: &'static str,
    total: Option<u64>,
    next: Instant,
    drawn: bool,
}

const FIRST: Duration = Duration::from_millis(500);
const EVERY: Duration = Duration::from_millis(100);
const WIDTH: u64 = 24;

impl Bar {
    pub(super) fn new(format: Format) -> Self {
        Self {
            shown: format == Format::Text && std::io::stderr().is_terminal(),
            done: AtomicU64::new(0),
            state: Mutex::new(State {
                what: "",
                total: None,
                next: Instant::now() + FIRST,
                drawn: false,
            }),
        }
    }

    fn draw(&self, state: &mut State) {
        let done = self.done.load(Ordering::Relaxed);
        let line = match state.total {
            Some(total) if total > 0 => {
                let filled = WIDTH * done.min(total) / total;
                let bar: String = (0..WIDTH)
                    .map(|at| if at < filled { '=' } else { ' ' })
                    .collect();
                let (done, total) = (format_size(done.min(total)), format_size(total));
                format!("{} [{bar}] {done} of {total}", state.what)
            }
            _ => format!("{} …", state.what),
        };
        let _ = write!(std::io::stderr(), "\r\x1b[K{line}");
        state.drawn = true;
    }
}

impl Progress for Bar {
    fn begin(&self, what: &'static str, total: Option<u64>) {
        if let Ok(mut state) = self.state.lock() {
            state.what = what;
            state.total = total;
            self.done.store(0, Ordering::Relaxed);
        }
    }

    fn advance(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
        if !self.shown {
            return;
        }
        // Whoever finds it busy does not wait: another one is drawing.
        if let Ok(mut state) = self.state.try_lock()
            && Instant::now() >= state.next
        {
            state.next = Instant::now() + EVERY;
            self.draw(&mut state);
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if self.state.lock().is_ok_and(|state| state.drawn) {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
