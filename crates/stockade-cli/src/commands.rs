//! One module for each command.

#[cfg(target_os = "linux")]
mod agent;
#[cfg(target_os = "linux")]
mod batch;
mod completions;
mod doctor;
mod explain;
#[cfg(target_os = "linux")]
mod home;
#[cfg(target_os = "linux")]
mod hook;
#[cfg(target_os = "linux")]
mod image;
mod init;
pub(crate) mod inspect;
#[cfg(target_os = "linux")]
mod log;
mod man;
#[cfg(target_os = "linux")]
mod mcp;
#[cfg(target_os = "linux")]
mod mcp_wrap;
mod policy;
mod proxy;
mod run;
#[cfg(target_os = "linux")]
mod serve;
#[cfg(target_os = "linux")]
mod session;
#[cfg(feature = "verify")]
pub(crate) mod verify;
#[cfg(target_os = "linux")]
mod ws;

use std::io::{self, Write};
use std::process::ExitCode;

use crate::args::{Command, PolicyCommand};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Format};

/// Does what was asked.
pub(crate) fn run(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Doctor(args) => doctor::run(&args),
        Command::Init(args) => init::run(&args),
        Command::Completions(args) => completions::run(&args),
        #[cfg(target_os = "linux")]
        Command::Log(args) => log::run(&args),
        Command::Man(args) => man::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        #[cfg(target_os = "linux")]
        Command::Home(args) => home::run(&args.command),
        #[cfg(target_os = "linux")]
        Command::Image(args) => image::run(&args.command),
        Command::Policy(args) => policy::run(args.command),
        Command::Proxy(args) => proxy::run(&args),
        Command::Run(args) => run::run(&args),
        #[cfg(target_os = "linux")]
        Command::Agent(args) => agent::run(*args),
        #[cfg(target_os = "linux")]
        Command::Hook(args) => hook::run(&args.command),
        #[cfg(target_os = "linux")]
        Command::Session(args) => session::run(&args.command),
        #[cfg(target_os = "linux")]
        Command::Exec(args) => session::exec(&args),
        #[cfg(target_os = "linux")]
        Command::Batch(args) => batch::run(&args),
        #[cfg(target_os = "linux")]
        Command::Serve(args) => serve::run(&args),
        #[cfg(target_os = "linux")]
        Command::Mcp(args) => mcp::run(*args),
        #[cfg(target_os = "linux")]
        Command::McpWrap(args) => mcp_wrap::run(*args),
        #[cfg(feature = "verify")]
        Command::Verify(args) => verify::run(&args),
        #[cfg(target_os = "linux")]
        Command::Ws(args) => ws::run(args.0),
    }
}

/// What can build a sandbox in this build; with an image, what can have it as its files.
#[cfg(target_os = "linux")]
fn backends(image: Option<&str>) -> stockade_engine::backend::Backends {
    use stockade_container::DockerBackend;
    use stockade_engine::backend::Backends;
    // The running program itself, even if its file has been replaced since.
    let this = "/proc/self/exe";
    let engines = [DockerBackend::docker(), DockerBackend::gvisor()];
    let engines = engines.map(|engine| engine.with_guard(this).with_helper(this));
    let (known, engines) = match image {
        None => (Backends::built_in(), engines),
        Some(image) => (
            Backends::empty(),
            engines.map(|engine| engine.with_image(image)),
        ),
    };
    engines.into_iter().fold(known, Backends::with)
}

/// Help and version go to stdout, refusals to stderr, as JSON if that was asked for.
pub(crate) fn usage(refusal: &clap::Error) -> ExitCode {
    if !refusal.use_stderr() {
        // A closed stream is no reason for another code.
        let _ = refusal.print();
        let _ = io::stdout().flush();
        return Exit::Success.into();
    }
    let mut typed = std::env::args_os().take_while(|word| word != "--");
    if typed.any(|word| word == "--json") {
        let text = refusal.to_string();
        let text = text.trim_start_matches("error: ");
        let message = text.split("\n\n").next().unwrap_or(text);
        let failure = Failure::text(Exit::Usage, message).hint("see `stockade --help`");
        output::failure(&failure, Format::Json);
    } else {
        let _ = refusal.print();
    }
    Exit::Usage.into()
}

impl Command {
    /// How results and failures of this command are printed.
    pub(crate) fn format(&self) -> Format {
        let output = match self {
            Self::Completions(args) => args.output,
            Self::Doctor(args) => args.output,
            Self::Init(args) => args.output,
            Self::Explain(args) => args.output,
            Self::Inspect(args) => args.output,
            #[cfg(target_os = "linux")]
            Self::Home(args) => args.command.output(),
            #[cfg(target_os = "linux")]
            Self::Image(args) => args.command.output(),
            #[cfg(target_os = "linux")]
            Self::Log(args) => args.output,
            Self::Man(args) => args.output,
            Self::Policy(args) => match &args.command {
                PolicyCommand::Check(args) => args.output,
                PolicyCommand::Export(args) => args.output,
                PolicyCommand::Import(args) => args.output,
                PolicyCommand::List(args) => args.output,
                PolicyCommand::Schema(args) => args.output,
                PolicyCommand::Show(args) => args.output,
            },
            Self::Proxy(args) => args.output,
            Self::Run(args) => args.output,
            #[cfg(target_os = "linux")]
            Self::Agent(args) => args.run.output,
            #[cfg(target_os = "linux")]
            Self::Hook(args) => args.command.output(),
            #[cfg(target_os = "linux")]
            Self::Session(args) => args.command.output(),
            #[cfg(target_os = "linux")]
            Self::Exec(args) => args.output,
            #[cfg(target_os = "linux")]
            Self::Batch(args) => args.output,
            #[cfg(target_os = "linux")]
            Self::Serve(args) => args.output,
            #[cfg(target_os = "linux")]
            Self::Mcp(args) => args.output,
            #[cfg(target_os = "linux")]
            Self::McpWrap(args) => args.run.output,
            #[cfg(feature = "verify")]
            Self::Verify(args) => args.output,
            #[cfg(target_os = "linux")]
            Self::Ws(args) => return Format::of(args.0.json),
        };
        Format::of(output.json)
    }
}
