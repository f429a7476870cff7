//! The tools that a model gets.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{
    CallToolResult, Implementation, ProgressNotificationParam, RequestMetaObject,
    ServerCapabilities, ServerConfig,
};
use rmcp::{Peer, RoleServer, ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use stockade_serve::{Command, CommandSpec, Failure, Kind, ServedSession, api};

use crate::background::{Background, Backgrounds};
use crate::output::{Output, Written};
use crate::{advice, grants};

/// How often a running command is reported.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// Unless the call says otherwise.
const DEFAULT_TIMEOUT_SECONDS: u64 = 120;

/// The server of one client.
#[derive(Clone, Debug)]
pub struct Server {
    shared: Arc<Shared>,
    tool_router: ToolRouter<Self>,
}

#[derive(Debug)]
struct Shared {
    session: ServedSession,
    backgrounds: Backgrounds,
    policy_flags: Vec<String>,
}

/// A command line for a shell.
#[derive(Debug, Deserialize, JsonSchema)]
struct RunParams {
    /// Shell command, run with `sh -c`
    command: String,
    /// Working directory, relative to the workspace
    cwd: Option<String>,
    /// Kill the command after this many seconds
    timeout_seconds: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct BackgroundParams {
    /// The name that `start` returned
    name: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct PathParams {
    /// Path as the sandbox sees it, relative to the workspace
    path: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct WriteParams {
    /// Path as the sandbox sees it, relative to the workspace
    path: String,
    /// The new content
    content: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ApplyParams {
    /// Paths to apply, with everything below; all changes if empty
    #[serde(default)]
    paths: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct VerifyParams {
    /// Source code
    code: String,
    /// bash, python, go, javascript or typescript
    language: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct InspectParams {
    /// Text from a source that is not trusted
    text: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ExplainParams {
    /// Path, or host with an optional port
    subject: String,
}

#[tool_router]
impl Server {
    /// A server of this session.
    pub fn new(session: ServedSession, policy_flags: Vec<String>) -> Self {
        Self {
            shared: Arc::new(Shared {
                session,
                backgrounds: Backgrounds::default(),
                policy_flags,
            }),
            tool_router: Self::tool_router(),
        }
    }

    /// Ends the session and everything in it.
    pub(crate) fn close(&self) {
        // This process ends now, and nothing survives that.
        let _ = self.shared.session.close();
    }

    #[tool(
        description = "Run a shell command in the sandbox and wait for it. Returns exit code, output, and what the policy refused."
    )]
    async fn run(
        &self,
        Parameters(params): Parameters<RunParams>,
        meta: RequestMetaObject,
        client: Peer<RoleServer>,
    ) -> CallToolResult {
        answer(self.run_to_end(params, &meta, &client).await)
    }

    #[tool(
        description = "Start a shell command in the background. Returns its name for read_output and stop."
    )]
    async fn start(&self, Parameters(params): Parameters<RunParams>) -> CallToolResult {
        let timeout = params.timeout_seconds.map(Duration::from_secs);
        self.blocking(move |shared| {
            let name = shared.backgrounds.add(|| shared.start(params, timeout))?;
            Ok(json!({ "name": name }))
        })
        .await
    }

    #[tool(
        description = "Read what a background command has written since the last read, and whether it has ended."
    )]
    async fn read_output(
        &self,
        Parameters(params): Parameters<BackgroundParams>,
    ) -> CallToolResult {
        self.blocking(move |shared| {
            let Background { command, output } = shared.backgrounds.get(&params.name)?;
            if !command.has_ended() {
                let mut result = shown(&output.take());
                result["running"] = json!(true);
                return Ok(result);
            }
            shared.backgrounds.remove(&params.name);
            ended(&command, &output)
        })
        .await
    }

    #[tool(description = "Kill a background command and everything it started.")]
    async fn stop(&self, Parameters(params): Parameters<BackgroundParams>) -> CallToolResult {
        self.blocking(move |shared| {
            let Background { command, output } = shared.backgrounds.get(&params.name)?;
            command.kill();
            let result = ended(&command, &output);
            shared.backgrounds.remove(&params.name);
            result
        })
        .await
    }

    #[tool(description = "Read a text file as the sandbox sees it.")]
    async fn read_file(&self, Parameters(params): Parameters<PathParams>) -> CallToolResult {
        self.blocking(move |shared| {
            let (content, is_end) =
                shared
                    .session
                    .read_file(&params.path, 0, Some(MAX_READ_BYTES))?;
            let text = String::from_utf8_lossy(&content);
            Ok(json!({ "content": text, "truncated": !is_end }))
        })
        .await
    }

    #[tool(
        description = "Write a text file as a command in the sandbox would; directories above it are made."
    )]
    async fn write_file(&self, Parameters(params): Parameters<WriteParams>) -> CallToolResult {
        self.blocking(move |shared| {
            let content = params.content.as_bytes();
            shared
                .session
                .write_file(&params.path, content, false, true, None)?;
            Ok(json!({ "written_bytes": content.len() }))
        })
        .await
    }

    #[tool(description = "List a directory as the sandbox sees it.")]
    async fn list_files(&self, Parameters(params): Parameters<PathParams>) -> CallToolResult {
        self.blocking(move |shared| value(shared.session.list_files(&params.path)?))
            .await
    }

    #[tool(description = "Show what commands changed in the overlay, as a diff.")]
    async fn show_changes(&self) -> CallToolResult {
        self.blocking(|shared| value(shared.session.diff(true)?))
            .await
    }

    #[tool(
        description = "Apply changes of the overlay to the real workspace. Protected names are kept back."
    )]
    async fn apply_changes(&self, Parameters(params): Parameters<ApplyParams>) -> CallToolResult {
        self.blocking(move |shared| {
            value(
                shared
                    .session
                    .commit(&params.paths, api::Conflicts::Refuse)?,
            )
        })
        .await
    }

    #[tool(description = "Drop all changes of the overlay.")]
    async fn drop_changes(&self) -> CallToolResult {
        self.blocking(|shared| shared.session.discard().map(|()| json!({})))
            .await
    }

    #[tool(
        description = "Judge source code before it runs: what it would do that is dangerous. Advice; it runs nothing."
    )]
    async fn verify_code(&self, Parameters(params): Parameters<VerifyParams>) -> CallToolResult {
        self.blocking(move |_| {
            let words = ["verify", "--json", "--lang", &params.language, "-"];
            advice::ask(&words.map(str::to_owned), &params.code)
        })
        .await
    }

    #[tool(description = "Find prompt injection, secrets and data leaving in text. Advice.")]
    async fn inspect_text(&self, Parameters(params): Parameters<InspectParams>) -> CallToolResult {
        self.blocking(move |_| {
            let words = ["inspect", "--json"].map(str::to_owned);
            advice::ask(&words, &params.text)
        })
        .await
    }

    #[tool(
        description = "Explain whether the policy allows a path or a host, by which rule, and which grant would."
    )]
    async fn explain_denial(
        &self,
        Parameters(params): Parameters<ExplainParams>,
    ) -> CallToolResult {
        self.blocking(move |shared| {
            let mut words = vec!["explain".to_owned(), "--json".to_owned()];
            words.extend(shared.policy_flags.iter().cloned());
            words.extend(["--".to_owned(), params.subject]);
            advice::ask(&words, "")
        })
        .await
    }

    async fn run_to_end(
        &self,
        params: RunParams,
        meta: &RequestMetaObject,
        client: &Peer<RoleServer>,
    ) -> Result<Value, Failure> {
        let seconds = params.timeout_seconds.unwrap_or(DEFAULT_TIMEOUT_SECONDS);
        let timeout = Some(Duration::from_secs(seconds));
        let started = self
            .in_thread(move |shared| shared.start(params, timeout))
            .await?;
        // A call that the client cancels takes its command along.
        let _guard = KillOnDrop(started.command.clone());
        let Background { command, output } = started.clone();
        let mut end = tokio::task::spawn_blocking(move || command.wait());
        let began = Instant::now();
        let finished = loop {
            tokio::select! {
                ended = &mut end => break ended.map_err(|error| lost(&error))??,
                () = tokio::time::sleep(PROGRESS_INTERVAL) => {
                    report_progress(meta, client, began.elapsed(), &output).await;
                }
            }
        };
        let waited = api::Waited::from(&*finished);
        let mut result = shown(&output.take());
        describe(&mut result, &waited);
        if let Some(wanted) = grants::of(&waited.denials)
            && grants::ask(client, &wanted).await
        {
            result["granted"] = json!(grants::flags(&wanted));
            self.in_thread(move |shared| shared.session.allow(&wanted))
                .await?;
        }
        Ok(result)
    }

    async fn in_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Shared) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let shared = Arc::clone(&self.shared);
        let done = tokio::task::spawn_blocking(move || work(&shared)).await;
        done.map_err(|error| lost(&error))?
    }

    async fn blocking(
        &self,
        work: impl FnOnce(&Shared) -> Result<Value, Failure> + Send + 'static,
    ) -> CallToolResult {
        answer(self.in_thread(work).await)
    }
}

/// What a model can make use of at once.
const MAX_READ_BYTES: u64 = 256 << 10;

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("stockade", env!("CARGO_PKG_VERSION")))
            .with_instructions(
                "Commands run in a sandbox. What the policy refuses is listed in `denials` with the \
                 rule and the smallest grant; only the user can give it.",
            )
    }
}

impl Shared {
    fn start(&self, params: RunParams, timeout: Option<Duration>) -> Result<Background, Failure> {
        let spec = CommandSpec {
            argv: vec!["sh".to_owned(), "-c".to_owned(), params.command],
            cwd: params.cwd,
            timeout,
            ..CommandSpec::default()
        };
        let output = Output::default();
        let command = self.session.start(&spec, Box::new(output.clone()))?;
        Ok(Background { command, output })
    }
}

/// Kills a command that nobody waits for any more.
struct KillOnDrop(Command);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.kill();
    }
}

async fn report_progress(
    meta: &RequestMetaObject,
    client: &Peer<RoleServer>,
    elapsed: Duration,
    output: &Output,
) {
    let Some(token) = meta.get_progress_token() else {
        return;
    };
    let message = output.last_line().unwrap_or_else(|| "running".to_owned());
    let progress = ProgressNotificationParam::new(token, elapsed.as_secs_f64());
    // A client that is gone needs no progress.
    let _ = client.notify_progress(progress.with_message(message)).await;
}

/// The end of a command that has ended, or is about to.
fn ended(command: &Command, output: &Output) -> Result<Value, Failure> {
    let waited = api::Waited::from(&*command.wait()?);
    let mut result = shown(&output.take());
    result["running"] = json!(false);
    describe(&mut result, &waited);
    Ok(result)
}

fn shown(written: &Written) -> Value {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    json!({
        "stdout": text(&written.stdout),
        "stderr": text(&written.stderr),
        "dropped_bytes": written.dropped_bytes,
    })
}

fn describe(result: &mut Value, waited: &api::Waited) {
    result["exit_code"] = json!(waited.exit_code);
    result["ending"] = json!(waited.ending);
    result["denials"] = json!(waited.denials);
}

fn value(result: impl Serialize) -> Result<Value, Failure> {
    serde_json::to_value(result).map_err(|error| lost(&error))
}

fn lost(error: &dyn std::error::Error) -> Failure {
    Failure::new(Kind::Internal, error.to_string())
}

fn answer(outcome: Result<Value, Failure>) -> CallToolResult {
    match outcome {
        Ok(value) if value.is_object() => CallToolResult::structured(value),
        Ok(value) => CallToolResult::structured(json!({ "result": value })),
        Err(failure) => CallToolResult::structured_error(json!(failure.to_api())),
    }
}
