//! Signs: what the host looks at to tell what happened.

use std::fmt;

use crate::exec::{Invocation, Outcome, run};
use crate::stage::Actor;
use crate::world::World;

/// What a sign may look at, after the last command has ended.
#[derive(Debug)]
pub struct Scene<'a> {
    /// The fixture, as the run left it.
    pub world: &'a World,
    /// Each command of the case in turn.
    pub outcomes: &'a [Outcome],
    /// What reached the host side.
    pub heard: &'a str,
    /// Processes that outlived the run, inside by ten seconds.
    pub survivors: &'a [String],
    /// What changed in project, home and outside.
    pub changes: &'a [String],
    /// Who judges: the suite's own user.
    pub judge: &'a Actor,
}

type Test = dyn Fn(&Scene<'_>) -> bool + Send + Sync;

/// A named observation that shows or does not.
pub struct Sign {
    /// What it says when it shows.
    pub label: String,
    test: Box<Test>,
}

impl fmt::Debug for Sign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}

impl Sign {
    /// Whether it shows.
    pub fn shows(&self, scene: &Scene<'_>) -> bool {
        (self.test)(scene)
    }
}

/// Any observation.
pub fn closure(
    label: impl Into<String>,
    test: impl Fn(&Scene<'_>) -> bool + Send + Sync + 'static,
) -> Sign {
    Sign {
        label: label.into(),
        test: Box::new(test),
    }
}

/// A shell command on the host, run by the judge in the project directory, ends with 0.
pub fn host(command: &'static str) -> Sign {
    closure(format!("on the host: {command}"), move |scene| {
        let invocation = Invocation {
            argv: vec!["/bin/sh".into(), "-c".into(), scene.world.expand(command)],
            cwd: scene.world.project(),
            env: scene.world.environment(),
            stdin: None,
            capture: scene.world.witness().join("judge"),
            bound: crate::case::BOUND,
        };
        run(&invocation, scene.judge).is_ok_and(|outcome| outcome.code == 0)
    })
}

/// Standard output of any of the commands holds the text.
pub fn prints(text: &'static str) -> Sign {
    closure(format!("stdout has {text:?}"), move |scene| {
        let wanted = scene.world.expand(text);
        scene
            .outcomes
            .iter()
            .any(|outcome| outcome.out().contains(&wanted))
    })
}

/// Standard output of the last command is exactly the text, surrounding space apart.
pub fn stdout_is(text: &'static str) -> Sign {
    closure(format!("stdout is {text:?}"), move |scene| {
        let wanted = scene.world.expand(text);
        scene
            .outcomes
            .last()
            .is_some_and(|outcome| outcome.out().trim() == wanted.trim())
    })
}

/// Standard error of any of the commands holds the text.
pub fn stderr_has(text: &'static str) -> Sign {
    closure(format!("stderr has {text:?}"), move |scene| {
        let wanted = scene.world.expand(text);
        scene
            .outcomes
            .iter()
            .any(|outcome| outcome.err().contains(&wanted))
    })
}

/// The last command ends with this code.
pub fn exits(code: i32) -> Sign {
    closure(format!("exit code {code}"), move |scene| {
        scene
            .outcomes
            .last()
            .is_some_and(|outcome| outcome.code == code)
    })
}

/// The host side received the text.
pub fn heard(text: &'static str) -> Sign {
    closure(format!("the host heard {text:?}"), move |scene| {
        scene.heard.contains(&scene.world.expand(text))
    })
}

/// The host side received nothing at all.
pub fn quiet() -> Sign {
    closure("the host heard nothing", |scene| scene.heard.is_empty())
}

/// A process of the run outlived it.
pub fn survives() -> Sign {
    closure("a process outlives the run", |scene| {
        !scene.survivors.is_empty()
    })
}

/// Something in project, home or outside was made, removed, changed or touched.
pub fn touched() -> Sign {
    closure("the tree was touched", |scene| !scene.changes.is_empty())
}

/// The sign does not show.
pub fn not(sign: Sign) -> Sign {
    let label = format!("not ({})", sign.label);
    closure(label, move |scene| !sign.shows(scene))
}
