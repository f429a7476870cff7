//! What tests need from the machine. What is missing is printed, and `STOCKADE_REQUIRE` (a comma
//! list) turns it into a failure.

use libtest_mimic::{Failed, Trial};
use stockade::engine::probe::{self, probe};

/// The ABI that confines everything that [`stockade::compat::vtcode::LandlockSandbox`] promises.
const LANDLOCK: u32 = 5;

/// One need.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Need {
    Landlock,
    Userns,
}

/// What this machine has.
pub(crate) struct Machine {
    report: probe::Report,
    required: String,
}

/// Something that it does not have.
pub(crate) struct Missing {
    text: String,
    is_required: bool,
}

impl Machine {
    pub(crate) fn look() -> Self {
        Self {
            report: probe(&crate::own_path()),
            required: std::env::var("STOCKADE_REQUIRE").unwrap_or_default(),
        }
    }

    pub(crate) fn missing(&self, needs: &[Need]) -> Option<Missing> {
        let unmet = needs.iter().find(|need| !self.has(**need))?;
        let is_required = self.required.split(',').map(str::trim).any(|word| {
            word == "all"
                || match unmet {
                    Need::Userns => word == "userns",
                    Need::Landlock => word
                        .strip_prefix("landlock:")
                        .and_then(|abi| abi.parse::<u32>().ok())
                        .is_some_and(|abi| abi >= LANDLOCK),
                }
        });
        Some(Missing {
            text: format!("this machine lacks {unmet:?}"),
            is_required,
        })
    }

    fn has(&self, need: Need) -> bool {
        match need {
            Need::Landlock => self.report.landlock.abi.is_some_and(|abi| abi >= LANDLOCK),
            Need::Userns => self.report.user_namespaces.support.is_usable(),
        }
    }
}

impl Missing {
    /// The test that stands for one that can't be run.
    pub(crate) fn instead_of(&self, name: String) -> Trial {
        let text = self.text.clone();
        if self.is_required {
            return Trial::test(name, move || {
                Err(Failed::from(format!(
                    "STOCKADE_REQUIRE asks for it, but {text}"
                )))
            });
        }
        crate::child::print(&format!("ignored {name}: {text}"));
        Trial::test(name, || Ok(())).with_ignored_flag(true)
    }
}
