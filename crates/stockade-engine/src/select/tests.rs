use stockade_policy::Surroundings;
use stockade_policy::profile::{Clause, Flags, NetworkMode, Sources};

use super::*;
use crate::Files;
use crate::backend::foundation::{self, Words};
use crate::backend::{Backend, Launch, RunningSandbox};
use crate::child::RunError;
use crate::plan::{ExecPlan, PlanError};
use crate::probe::{Gap, Support};

/// A backend whose self-test has a known result; its plans are real.
#[derive(Debug)]
struct Probed {
    name: Name,
    works: bool,
}

impl Backend for Probed {
    fn name(&self) -> Name {
        self.name
    }

    fn probe(&self, _: &Path) -> Support {
        if self.works {
            return Support::Full;
        }
        let gap = Gap::of(self.name.as_str(), "masked".to_owned(), None);
        Support::None { gaps: vec![gap] }
    }

    fn plan(&self, profile: &Profile, spec: &Spec) -> Result<ExecPlan, PlanError> {
        let words = Words {
            files: "mounts",
            devices: "own",
            processes: "own",
            privileges: "none",
            privileges_gap: None,
            seccomp: "filter",
            seccomp_gap: None,
            network: "none",
            hosts: None,
            ipc: "own",
            ipc_gap: None,
        };
        foundation::plan(profile, spec, self.name, &words)
    }

    fn spawn(&self, plan: &ExecPlan, _: &Launch<'_>) -> Result<Box<dyn RunningSandbox>, RunError> {
        Err(PlanError::Backend(plan.backend).into())
    }
}

/// Those that work among all that there are.
fn machine(working: &[Name]) -> Backends {
    let all = [
        Name::Native,
        Name::Landlock,
        Name::Bwrap,
        Name::Nsjail,
        Name::Docker,
        Name::Gvisor,
    ];
    let probed = all.map(|name| Probed {
        name,
        works: working.contains(&name),
    });
    probed.into_iter().fold(Backends::empty(), Backends::with)
}

fn profile(flags: Flags) -> Profile {
    let around = Surroundings::from_env(Path::new("/usr")).unwrap();
    let sources = Sources {
        flags,
        ..Sources::new(around)
    };
    Files::load(&sources).unwrap()
}

fn choose(
    working: &[Name],
    level: Level,
    profile: &Profile,
) -> Result<SandboxSelection, SelectError> {
    machine(working).select(level, profile, Path::new("/nonexistent"))
}

#[test]
fn a_level_is_the_first_that_passed_its_self_test() {
    use Name::{Bwrap, Docker, Gvisor, Landlock, Native, Nsjail};
    let profile = profile(Flags::default());
    for (level, working, expected) in [
        (
            Level::Default,
            &[Native, Landlock, Bwrap, Nsjail, Docker][..],
            Some(Native),
        ),
        (Level::Default, &[Landlock, Bwrap, Nsjail], Some(Landlock)),
        (Level::Default, &[Bwrap, Nsjail, Docker], Some(Bwrap)),
        (Level::Default, &[Nsjail, Docker, Gvisor], Some(Nsjail)),
        (Level::Default, &[Docker, Gvisor], None),
        (Level::Enhanced, &[Landlock, Bwrap, Nsjail], None),
        (Level::Container, &[Native, Gvisor], None),
        (Level::Container, &[Native, Docker], Some(Docker)),
        (Level::Maximum, &[Native, Docker], None),
        (Level::Maximum, &[Gvisor], Some(Gvisor)),
        (Level::Off, &[], Some(Name::None)),
    ] {
        let chosen = choose(working, level, &profile);
        match (chosen, expected) {
            (Ok(chosen), Some(name)) => assert_eq!(chosen.backend, name, "{level}"),
            (Err(SelectError::Nothing { tried, .. }), None) => {
                assert!(
                    tried.iter().all(|text| text.contains("masked")),
                    "{tried:?}"
                );
            }
            (chosen, expected) => panic!("{level} {working:?}: {chosen:?}, not {expected:?}"),
        }
    }
}

#[test]
fn what_was_passed_over_is_told() {
    let profile = profile(Flags::default());
    let chosen = choose(&[Name::Bwrap], Level::Default, &profile).unwrap();
    for word in ["confined a command", "native: masked", "landlock: masked"] {
        assert!(chosen.reason.contains(word), "{chosen}");
    }
    assert!(chosen.gaps.iter().any(|gap| gap.starts_with("names:")));
}

/// One that works is passed over all the same if it can't hold the policy.
#[test]
fn the_policy_decides_too() {
    let needs_names = profile(Flags {
        require: vec![Clause::Names],
        ..Flags::default()
    });
    let refused = choose(&[Name::Bwrap, Name::Nsjail], Level::Default, &needs_names);
    assert!(refused.is_err(), "{refused:?}");
}

#[test]
fn falling_short_is_for_those_who_asked_and_is_named() {
    let best_effort = profile(Flags {
        best_effort: true,
        net: Some(NetworkMode::Off),
        ..Flags::default()
    });
    let working = [Name::Native, Name::Bwrap];
    let chosen = choose(&working, Level::Maximum, &best_effort).unwrap();
    assert_eq!(chosen.backend, Name::Native);
    assert_eq!(chosen.gaps[0], "below the level `maximum`");
    assert!(choose(&working, Level::Maximum, &profile(Flags::default())).is_err());
}

/// What a run would have, where these are refused when they are started.
fn run(working: &[Name], profile: &Profile, refused: &[Name]) -> Result<ExecPlan, String> {
    let machine = machine(working);
    let choice = machine.choose(profile, Path::new("/nonexistent"));
    let mut choice = choice.map_err(|error| error.to_string())?;
    let spec = Spec {
        argv: vec!["true".into()],
        ..Spec::default()
    };
    loop {
        let plan = choice.next(&spec).map_err(|error| error.to_string())?;
        if !refused.contains(&plan.backend) {
            return Ok(plan);
        }
        let error = RunError::NotStarted {
            backend: plan.backend,
            reason: "refused".to_owned(),
        };
        choice
            .passed_over(error)
            .map_err(|error| error.to_string())?;
    }
}

#[test]
fn a_run_has_what_select_chooses() {
    use Name::{Bwrap, Docker, Gvisor, Landlock, Native, Nsjail};
    let all = [Native, Landlock, Bwrap, Nsjail, Docker, Gvisor];
    for level in [
        Level::Default,
        Level::Enhanced,
        Level::Container,
        Level::Maximum,
    ] {
        for best_effort in [false, true] {
            let profile = profile(Flags {
                level: Some(level),
                best_effort,
                ..Flags::default()
            });
            // Every machine that there could be.
            for number in 0..1_u32 << all.len() {
                let works = |place: usize| number & (1 << place) != 0;
                let working = (0..all.len()).filter(|place| works(*place));
                let working: Vec<Name> = working.map(|place| all[place]).collect();
                let refused: Vec<Name> = all
                    .into_iter()
                    .filter(|name| !working.contains(name))
                    .collect();
                let chosen = choose(&working, level, &profile);
                let ran = run(&working, &profile, &refused);
                match (&chosen, &ran) {
                    (Ok(chosen), Ok(ran)) => {
                        assert_eq!(chosen.backend, ran.backend, "{level} {working:?}");
                        let is_below = chosen.gaps[0].starts_with("below the level");
                        let says = ran.warnings.first();
                        let says = says.is_some_and(|text| text.starts_with("below the level"));
                        assert_eq!(is_below, says, "{level} {working:?}: {:?}", ran.warnings);
                    }
                    (Err(_), Err(_)) => {}
                    _ => panic!("{level} {best_effort} {working:?}: {chosen:?} {ran:?}"),
                }
            }
        }
    }
}

#[test]
fn what_a_run_passed_over_is_its_first_warning() {
    let container = profile(Flags {
        level: Some(Level::Container),
        best_effort: true,
        ..Flags::default()
    });
    let plan = run(&[Name::Native], &container, &[Name::Docker]).unwrap();
    assert_eq!(plan.backend, Name::Native);
    let said = "below the level `container`, using `native`: docker: refused";
    assert!(plan.warnings[0].starts_with(said), "{:?}", plan.warnings);
    // A command that is missing is missing everywhere.
    let machine = machine(&[Name::Native, Name::Landlock]);
    let default = profile(Flags::default());
    let mut choice = machine.choose(&default, Path::new("/nonexistent")).unwrap();
    let spec = Spec {
        argv: vec!["true".into()],
        ..Spec::default()
    };
    choice.next(&spec).unwrap();
    let missing = stockade_linux::SpawnError::Stage {
        stage: stockade_linux::Stage::Find,
        subject: None,
        source: rustix::io::Errno::NOENT.into(),
    };
    assert!(choice.passed_over(missing.into()).is_err());
}
