//! Runs one case as one user: control first, then boxed, each in a fresh fixture.

use std::fmt::Write as _;

use crate::Failure;
use crate::case::{BOUND, Case, Control, Program, Reading, Start, Step};
use crate::census;
use crate::digest::Digest;
use crate::exec::{Invocation, Outcome, run, script};
use crate::flag::Flag;
use crate::hostside::HostSide;
use crate::need::lan_address;
use crate::runner::Runner;
use crate::sign::Scene;
use crate::stage::{Actor, Role, Stage};
use crate::world::World;

/// Put before Python attacks: system call numbers, raw calls, and one line of outcome for each.
const PRELUDE: &str = include_str!("python/attack.py");

/// See [`Case::guarded`].
const GUARD: &str = "unshare -mupf --mount-proc --kill-child --";

/// In the text of a failure whose launcher could not set the sandbox up.
const NEVER_STARTED: &str = "the command never started (exit code 125)";

/// Words for seconds, in a control and inside; see [`World::expand`]. What must not happen inside
/// has no chance there to be only late, and the control has all the time that it needs.
const SPANS: [(&str, u32, u32); 2] = [("LONG", 6, 3600), ("RACE", 60, 2)];

/// Marks a leak in a failure's text.
const LEAK: &str = "LEAK";

/// With or without the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Control,
    Boxed,
}

/// Judges the case for the actor.
///
/// # Errors
/// If the control did not show what it must, if the sandbox leaked or broke something, or if the
/// fixture could not be made.
pub fn judge(case: &Case, actor: &Actor, stage: &Stage, runner: &Runner) -> Result<(), Failure> {
    if case.signs.is_empty() {
        return Err(format!("{} has no signs and can't fail", case.id));
    }
    if runner.runs_controls() && has_control(case, actor) {
        play(case, actor, stage, runner, Side::Control)?;
    }
    if std::env::var_os("STOCKADE_TEST_CONTROLS").is_some() {
        return Ok(());
    }
    let boxed = play(case, actor, stage, runner, Side::Boxed);
    match (case.gap, boxed) {
        (None, result) => result,
        // It must leak, not merely break.
        (Some(_), Err(text)) if text.contains(LEAK) => Ok(()),
        (Some(_), Err(text)) => Err(text),
        (Some(note), Ok(())) => Err(format!(
            "{} holds now: remove its known-gap note ({note})",
            case.id
        )),
    }
}

/// How a case came out inside, without its control, which another suite has run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there are four ways")]
pub enum Inside {
    /// As the case asks for.
    Holds,
    /// Something that must not happen did.
    Leaks(Failure),
    /// The launcher refused to start the command.
    Refuses(Failure),
    /// Something that must work does not.
    Breaks(Failure),
}

/// Runs only the boxed side of a case.
pub fn inside(case: &Case, actor: &Actor, stage: &Stage, runner: &Runner) -> Inside {
    match play(case, actor, stage, runner, Side::Boxed) {
        Ok(()) => Inside::Holds,
        Err(text) if text.contains(LEAK) => Inside::Leaks(text),
        Err(text) if text.contains(NEVER_STARTED) => Inside::Refuses(text),
        Err(text) => Inside::Breaks(text),
    }
}

fn has_control(case: &Case, actor: &Actor) -> bool {
    match case.control {
        Control::Absent(_) => false,
        Control::RootOnly(..) => actor.role == Role::Root,
        Control::Bare | Control::Behind(_) | Control::Confined(_) | Control::Script(_) => true,
    }
}

fn play(
    case: &Case,
    actor: &Actor,
    stage: &Stage,
    runner: &Runner,
    side: Side,
) -> Result<(), Failure> {
    let name = format!("{}-{}-{side:?}", case.id, actor.role.label()).to_lowercase();
    let mut world = World::new(stage, actor, &name)?;
    world.define("LAN", lan_address().unwrap_or_else(|| "127.0.0.1".into()));
    world.define("BIN", runner.program().display().to_string());
    for (word, control, boxed) in SPANS {
        let span = match side {
            Side::Control => control,
            Side::Boxed => boxed,
        };
        world.define(word, span.to_string());
    }
    let judge = stage.actors.last().unwrap_or(actor).clone();
    let result = enact(case, &mut world, &judge, runner, side);
    for text in &case.cleanup {
        // Fails where the case made nothing; what matters is that nothing stays.
        let _ = script(&host_script(&world, text), &judge);
    }
    census::end_all(&world.base, &world.token);
    result
}

fn enact(
    case: &Case,
    world: &mut World,
    judge: &Actor,
    runner: &Runner,
    side: Side,
) -> Result<(), Failure> {
    for text in &case.root_setup {
        script(&host_script(world, text), judge).map_err(|e| format!("root setup: {e}"))?;
    }
    for text in &case.setup {
        script(&host_script(world, text), &world.actor).map_err(|e| format!("setup: {e}"))?;
    }
    // Before the host side is up: a watch would hear the digest's own reading.
    let roots = [world.project(), world.home(), world.outside()];
    let before = Digest::of(roots.iter().map(std::path::PathBuf::as_path));
    let mut waiting = Vec::new();
    for host in &case.sides {
        waiting.push(HostSide::start(host, world)?);
    }

    let mut outcomes = Vec::new();
    for (index, step) in case.steps.iter().enumerate() {
        let invocation = invocation(case, step, index, world, runner, side)?;
        outcomes.push(run(&invocation, &world.actor)?);
    }

    let alive = census::members(&world.base, &world.token);
    let alive: Vec<_> = match side {
        Side::Control => alive.iter().map(census::Member::describe).collect(),
        Side::Boxed => census::outlive(alive, census::TO_DIE)
            .iter()
            .map(census::Member::describe)
            .collect(),
    };
    let heard: String = waiting
        .into_iter()
        .map(crate::hostside::Waiting::finish)
        .collect();
    let changes = Digest::of(roots.iter().map(std::path::PathBuf::as_path)).changes(&before);
    let scene = Scene {
        world,
        outcomes: &outcomes,
        heard: &heard,
        survivors: &alive,
        changes: &changes,
        judge,
    };
    let complaints = match side {
        Side::Control => control_complaints(case, &scene),
        Side::Boxed => boxed_complaints(case, &scene),
    };
    if complaints.is_empty() {
        Ok(())
    } else {
        Err(story(case, &scene, side, &complaints))
    }
}

/// What is wrong with a control: a leak that did not happen, work that did not get done.
fn control_complaints(case: &Case, scene: &Scene<'_>) -> Vec<String> {
    case.signs
        .iter()
        .filter(|(reading, sign)| *reading != Reading::Boxed && !sign.shows(scene))
        .map(|(reading, sign)| match reading {
            Reading::Leak => format!("control did not leak: {}", sign.label),
            Reading::Works | Reading::Boxed => format!("control did not work: {}", sign.label),
        })
        .collect()
}

fn boxed_complaints(case: &Case, scene: &Scene<'_>) -> Vec<String> {
    let mut complaints = Vec::new();
    for (step, outcome) in case.steps.iter().zip(scene.outcomes) {
        if outcome.overran {
            complaints.push(format!("did not end within {:?}", case.bound));
        }
        if outcome.err().contains("panicked at") || outcome.out().contains("panicked at") {
            complaints.push("the launcher panicked".to_owned());
        }
        let begun = begins(step, outcome, scene.world);
        match case.start {
            Start::Begins if begun == Some(false) => {
                complaints.push(format!(
                    "the command never started (exit code {})",
                    outcome.code
                ));
            }
            Start::Refused(_) if begun == Some(true) => {
                complaints.push("the command started although it must be refused".to_owned());
            }
            Start::Refused(code) if outcome.code != code => complaints.push(format!(
                "refused with exit code {} instead of {code}",
                outcome.code
            )),
            Start::Begins | Start::Refused(_) | Start::Either => {}
        }
    }
    for (reading, sign) in &case.signs {
        match (reading, sign.shows(scene)) {
            (Reading::Leak, true) => complaints.push(format!("{LEAK}: {}", sign.label)),
            (Reading::Works | Reading::Boxed, false) => {
                complaints.push(format!("missing inside: {}", sign.label));
            }
            _ => {}
        }
    }
    let judges_survivors = case
        .signs
        .iter()
        .any(|(_, sign)| sign.label.contains("outlives"));
    if !scene.survivors.is_empty() && !judges_survivors {
        complaints.push(format!("processes outlive the run: {:?}", scene.survivors));
    }
    complaints
}

/// Whether the token was printed; `None` for programs that print none.
fn begins(step: &Step, outcome: &Outcome, world: &World) -> Option<bool> {
    let mark = world.expand("@MARK@");
    match step.program {
        Program::Argv(_) => None,
        Program::Sh(_) | Program::Python(_) | Program::Launcher(_) => {
            Some(outcome.err().contains(&mark) || outcome.out().contains(&mark))
        }
    }
}

fn invocation(
    case: &Case,
    step: &Step,
    index: usize,
    world: &World,
    runner: &Runner,
    side: Side,
) -> Result<Invocation, Failure> {
    let flags: &[Flag] = step.flags.as_deref().unwrap_or(&case.flags);
    let prefix = match side {
        Side::Boxed => {
            let guard = case.guarded && world.actor.role == Role::Root;
            let guard = if guard {
                GUARD.split(' ').map(str::to_owned).collect()
            } else {
                vec![]
            };
            [guard, runner.prefix(case.id, flags, world)?].concat()
        }
        Side::Control => match &case.control {
            Control::Confined(flags) => runner.prefix(case.id, flags, world)?,
            _ => control_prefix(case, world),
        },
    };
    let inner = match (&step.program, side, &case.control) {
        (_, Side::Control, Control::Script(text)) => {
            vec!["/bin/sh".into(), "-c".into(), world.expand(text)]
        }
        (program, ..) => words(program, world, &prefix),
    };
    let argv = match step.program {
        Program::Launcher(_) => inner,
        Program::Sh(_) | Program::Python(_) | Program::Argv(_) => {
            prefix.into_iter().chain(inner).collect()
        }
    };
    let mut env = world.environment();
    env.extend(
        case.env
            .iter()
            .map(|(name, value)| ((*name).to_owned(), world.expand(value))),
    );
    Ok(Invocation {
        argv,
        cwd: world.expand(case.cwd).into(),
        env,
        stdin: case.stdin.map(|file| world.expand(file).into()),
        capture: world.witness().join(format!("step{index}")),
        bound: case.bound,
    })
}

fn control_prefix(case: &Case, world: &World) -> Vec<String> {
    let words = match case.control {
        Control::Behind(words) | Control::RootOnly(_, Some(words)) => words,
        Control::Bare
        | Control::Confined(_)
        | Control::Script(_)
        | Control::RootOnly(_, None)
        | Control::Absent(_) => "",
    };
    words
        .split_whitespace()
        .map(|word| world.expand(word))
        .collect()
}

fn words(program: &Program, world: &World, prefix: &[String]) -> Vec<String> {
    match program {
        Program::Sh(text) => {
            let text = format!("echo @MARK@ >&2\n{text}");
            vec!["/bin/sh".into(), "-c".into(), world.expand(&text)]
        }
        Program::Python(text) => {
            let text = format!("{PRELUDE}\nprint('@MARK@', file=sys.stderr, flush=True)\n{text}");
            vec!["/usr/bin/python3".into(), "-c".into(), world.expand(&text)]
        }
        Program::Argv(words) => words.iter().map(|word| world.expand(word)).collect(),
        Program::Launcher(text) => {
            let run: Vec<String> = prefix.iter().map(|word| quote(word)).collect();
            let text = text.replace("@RUN@", &run.join(" "));
            vec!["/bin/sh".into(), "-c".into(), world.expand(&text)]
        }
    }
}

fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn host_script(world: &World, text: &str) -> Invocation {
    Invocation {
        argv: vec!["/bin/sh".into(), "-ec".into(), world.expand(text)],
        cwd: world.project(),
        env: world.environment(),
        stdin: None,
        capture: world.witness().join("script"),
        bound: BOUND,
    }
}

fn story(case: &Case, scene: &Scene<'_>, side: Side, complaints: &[String]) -> String {
    let mut text = format!("{} ({}), {side:?}\n", case.id, case.title);
    // Writing to a string can't fail.
    for complaint in complaints {
        let _ = writeln!(text, "  {complaint}");
    }
    if side == Side::Boxed {
        let flags = case
            .flags
            .iter()
            .flat_map(|flag| flag.arguments(scene.world));
        let _ = writeln!(text, "  flags: {}", flags.collect::<Vec<_>>().join(" "));
    }
    for (index, outcome) in scene.outcomes.iter().enumerate() {
        let _ = writeln!(
            text,
            "  step {index}: exit {} in {:?}",
            outcome.code, outcome.elapsed
        );
        let _ = writeln!(text, "    stdout: {}", tail(&outcome.out()));
        let _ = writeln!(text, "    stderr: {}", tail(&outcome.err()));
    }
    if !scene.heard.is_empty() {
        let _ = writeln!(text, "  heard: {}", tail(scene.heard));
    }
    if case
        .signs
        .iter()
        .any(|(_, sign)| sign.label.contains("touched"))
    {
        let _ = writeln!(text, "  changes: {:#?}", scene.changes);
    }
    text
}

/// The end of a text, where errors are.
fn tail(text: &str) -> String {
    let text = text.trim_end();
    let skip = text.chars().count().saturating_sub(1500);
    text.chars()
        .skip(skip)
        .collect::<String>()
        .replace('\n', "\n            ")
}
