//! `stockade agent`: a coding agent, whole in a sandbox.

mod explanation;
mod found;

use std::os::unix::fs::DirBuilderExt;

use serde::Serialize;
use stockade_policy::host::Allowed;
use stockade_policy::{Agent, AgentGrants};

use self::found::Definitions;
use crate::args::{AgentArgs, RunArgs};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::resolve::Place;

/// The word in place of a name that lists the agents.
const LIST: &str = "list";

pub(crate) fn run(args: AgentArgs) -> Result<Exit, Failure> {
    let mut flags = args.run;
    if args.name == LIST {
        return list(Format::of(flags.output.json));
    }
    let place = Place::enter(flags.policy.cwd.as_deref())?;
    // Entered already.
    flags.policy.cwd = None;
    let agent = Definitions::of(&place).find(&args.name)?;
    if found::program(&agent.program).is_none() {
        let text = format!(
            "{} is not installed: there is no `{}` in PATH",
            agent.title, agent.program
        );
        return Err(Failure::text(Exit::NotFound, text).hint(agent.install));
    }
    let grants = grants(&agent, &place)?;
    if !flags.dry_run {
        make_state(&agent, &place)?;
        if !flags.quiet {
            explanation::explain_once(&args.name, &agent, &grants, &flags, &place);
        }
    }
    add(&agent, &grants, &mut flags);
    super::run::run(&flags)
}

fn grants(agent: &Agent, place: &Place) -> Result<AgentGrants, Failure> {
    let variable = |name: &str| std::env::var(name).ok();
    let exists = |file: &str| {
        let path = place.path(file.as_ref());
        path.is_ok_and(|path| path.as_path().is_file())
    };
    agent.grants(variable, exists).map_err(|error| {
        let what = format!("can't prepare a sandbox for {}", agent.title);
        Failure::new(Exit::NotSetUp, anyhow::Error::new(error).context(what))
    })
}

/// Directories that don't exist can't be granted.
fn make_state(agent: &Agent, place: &Place) -> Result<(), Failure> {
    for directory in &agent.state {
        let path = place.path(directory.as_ref())?;
        let mut maker = std::fs::DirBuilder::new();
        let made = maker.recursive(true).mode(0o700).create(path.as_path());
        made.map_err(|error| {
            let what = format!(
                "can't make `{}` for the state of {}",
                path.as_path().display(),
                agent.title
            );
            Failure::new(Exit::NotSetUp, anyhow::Error::new(error).context(what))
        })?;
    }
    Ok(())
}

/// Adds what the agent needs. What was typed stays: no flag is taken back.
fn add(agent: &Agent, grants: &AgentGrants, flags: &mut RunArgs) {
    let policy = &mut flags.policy;
    let words = |words: &[String]| words.iter().map(Into::into).collect::<Vec<_>>();
    policy.reveal.extend(words(&grants.reveal));
    policy.write.extend(words(&grants.write));
    policy.deny_read.extend(words(&grants.deny_read));
    policy.deny_write.extend(words(&grants.deny_write));
    policy.env.splice(0..0, words(&grants.env));
    policy.keep_env.extend(words(&grants.keep_env));
    policy.host_port.extend(&grants.host_port);
    if policy.net.is_some() {
        // All of the network or none of it: nothing is in between that could put a key in.
        let masked = grants.mask.iter().map(|mask| mask.name.to_string().into());
        policy.keep_env.extend(masked);
    } else {
        let hosts = grants.allow.iter().cloned();
        policy.hosts.allow.extend(hosts.map(Allowed::Host));
        policy.hosts.mask.extend(grants.mask.iter().cloned());
    }
    let own = [&agent.program].into_iter().chain(&agent.arguments);
    let own: Vec<_> = own.map(Into::into).collect();
    flags.command.splice(0..0, own);
}

fn list(format: Format) -> Result<Exit, Failure> {
    #[derive(Serialize)]
    struct Listed {
        name: String,
        title: String,
        /// Where the program is; none if it is not installed.
        program: Option<String>,
        /// None of those that ship with Stockade.
        file: Option<String>,
    }
    #[derive(Serialize)]
    struct Document {
        agents: Vec<Listed>,
    }
    let definitions = Definitions::of(&Place::enter(None)?);
    let mut agents = Vec::new();
    for name in definitions.names() {
        let agent = definitions.find(&name)?;
        let file = definitions.file(&name);
        agents.push(Listed {
            title: agent.title,
            program: found::program(&agent.program).map(|path| path.display().to_string()),
            file: file.map(|file| file.display().to_string()),
            name,
        });
    }
    match format {
        Format::Json => output::json(Document { agents })?,
        Format::Text => output::text(|out| {
            for agent in &agents {
                let program = agent.program.as_deref().unwrap_or("not installed");
                let title = output::printable(&agent.title);
                writeln!(
                    out,
                    "{:<12} {title:<14} {}",
                    agent.name,
                    output::printable(program)
                )?;
            }
            Ok(())
        })?,
    }
    Ok(Exit::Success)
}
