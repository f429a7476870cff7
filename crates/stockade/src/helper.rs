//! The helper: the program that builds a sandbox and starts the command in it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Error;

/// The variable that names the helper of programs that do not call [`init`].
const VARIABLE: &str = "STOCKADE_HELPER";

/// The running program itself, even if its file has been replaced since.
pub(crate) const THIS_PROGRAM: &str = "/proc/self/exe";

/// Whether this program called [`init`], and so acts as the helper when it is started as one.
static IS_HELPER: AtomicBool = AtomicBool::new(false);

/// Makes this program its own helper: call it first thing in `main`, before any thread starts.
///
/// The library never forks its caller. It starts a small program, the *helper*, which builds the
/// sandbox. A program that calls `init` is its own helper: started as one, `init` does the helper's
/// work and exits, and nothing after it runs. Otherwise `init` returns at once.
///
/// Programs that can't call it set `STOCKADE_HELPER` or [`SandboxBuilder::helper`] to the absolute
/// path of `stockade-init` or `stockade`. Nothing is ever searched on `PATH`.
///
/// [`SandboxBuilder::helper`]: crate::SandboxBuilder::helper
pub fn init() {
    if let Some(code) = internal_mode() {
        #[expect(
            clippy::disallowed_methods,
            clippy::exit,
            reason = "as a helper this program has nothing else to do"
        )]
        std::process::exit(code);
    }
    IS_HELPER.store(true, Ordering::Relaxed);
}

/// The exit code, if this program was started as a helper, a probe or the guard of a container.
fn internal_mode() -> Option<i32> {
    if stockade_linux::helper::is_requested() {
        return Some(stockade_linux::helper::main());
    }
    if let Some(code) = stockade_linux::probe::dispatch(std::env::args_os()) {
        return Some(code.into());
    }
    #[cfg(feature = "container")]
    if stockade_container::guard::is_requested() {
        return Some(stockade_container::guard::main().into());
    }
    None
}

/// The helper that was named, else this program if it called [`init`], else `STOCKADE_HELPER`.
pub(crate) fn find(named: Option<PathBuf>) -> Result<PathBuf, Error> {
    let variable = std::env::var_os(VARIABLE).map(PathBuf::from);
    choose(named, IS_HELPER.load(Ordering::Relaxed), variable)
}

fn choose(
    named: Option<PathBuf>,
    is_helper: bool,
    variable: Option<PathBuf>,
) -> Result<PathBuf, Error> {
    let this = is_helper.then(|| PathBuf::from(THIS_PROGRAM));
    let helper = named.or(this).or(variable).ok_or(Error::NoHelper)?;
    if helper.is_absolute() {
        Ok(helper)
    } else {
        Err(Error::RelativeHelper(helper))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_helper_is_named_or_this_program_or_in_the_variable() {
        let path = |text: &str| Some(PathBuf::from(text));
        for (named, is_helper, variable, chosen) in [
            (path("/named"), true, path("/variable"), "/named"),
            (None, true, path("/variable"), THIS_PROGRAM),
            (None, false, path("/variable"), "/variable"),
        ] {
            let found = choose(named, is_helper, variable).unwrap();
            assert_eq!(found, PathBuf::from(chosen));
        }
        for relative in ["stockade", "./stockade", ""] {
            let refused = choose(None, false, path(relative));
            assert!(matches!(refused, Err(Error::RelativeHelper(_))));
        }
        let advice = choose(None, false, None).unwrap_err().to_string();
        for way in ["stockade::init()", VARIABLE, "SandboxBuilder::helper"] {
            assert!(advice.contains(way), "{advice}");
        }
    }
}
