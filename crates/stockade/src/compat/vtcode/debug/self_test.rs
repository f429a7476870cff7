//! Self-tests: an access tried outside, inside, and judged from outside.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use stockade_linux::probe::access::{self, Access};
use stockade_linux::{SpawnError, Stage};
use stockade_policy::{SandboxPolicy, SandboxTransformError};

use super::DebugError;
use crate::{Error, RunError, Stdio};

/// What a self-test found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SelfTest {
    /// What the policy says.
    pub expected: bool,
    /// What happened; none where that can't be told.
    pub observed: Option<bool>,
    /// Whether the policy holds.
    pub verdict: Verdict,
    /// Why the verdict is what it is.
    pub reason: String,
}

/// Whether what a policy says is what happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "callers must handle each")]
pub enum Verdict {
    /// It is, and the controls show that the sandbox is the reason.
    Enforced,
    /// The test proves nothing.
    Inconclusive,
    /// It is not.
    NotEnforced,
}

/// Tests whether a path can be written under a policy: a file, or a directory in which a file is
/// then made and removed.
///
/// # Errors
/// If the sandbox can't be set up, or the host does not let the test prepare its controls.
pub fn test_path_writable(
    policy: &SandboxPolicy,
    path: &Path,
    cwd: &Path,
    helper: Option<&Path>,
) -> Result<SelfTest, DebugError> {
    let name = unique_name();
    let path = cwd.join(path);
    let target = Target::new(path, &name);
    let expected = policy.is_path_writable(&target.file, cwd);
    let answer = |observed, verdict, reason: String| SelfTest {
        expected,
        observed,
        verdict,
        reason,
    };
    let unclear = |reason: String| Ok(answer(None, Verdict::Inconclusive, reason));
    if let Err(error) = target.access().attempt() {
        return unclear(format!("it can't be written outside the sandbox: {error}"));
    }
    target.take_back();
    if policy.has_full_disk_write_access() {
        return Ok(answer(
            Some(true),
            Verdict::NotEnforced,
            UNCONFINED.to_owned(),
        ));
    }
    let forbidden = Forbidden::prepare(&name)?;
    let accesses = [
        Access::Write("/dev/null".into(), OsString::new()),
        Access::Write(forbidden.dir.clone(), name.clone()),
        target.access(),
    ];
    let answers = try_inside(policy, cwd, helper, &accesses)?;
    let outside_appeared = forbidden.take_back();
    let named = policy.is_path_writable(&forbidden.file, cwd);
    let appeared = target.take_back();
    Ok(judge_write(
        expected,
        answers.as_deref(),
        outside_appeared && !named,
        target.is_directory.then_some(appeared),
    ))
}

/// `appeared` is none where only the answer tells.
fn judge_write(
    expected: bool,
    answers: Option<&[i32]>,
    leaked: bool,
    appeared: Option<bool>,
) -> SelfTest {
    let answer = |observed, verdict, reason: String| SelfTest {
        expected,
        observed,
        verdict,
        reason,
    };
    let Some([null, _, tried]) = answers else {
        return answer(None, Verdict::Inconclusive, NOT_SEEN.to_owned());
    };
    if leaked {
        let text = "a directory that no policy names could be written".to_owned();
        return answer(appeared, Verdict::NotEnforced, text);
    }
    if *null != 0 {
        let text = format!("not even /dev/null can be written: {}", errno(*null));
        return answer(None, Verdict::Inconclusive, text);
    }
    let observed = appeared.unwrap_or(*tried == 0);
    let reason = match (observed, *tried) {
        (true, _) => "it was written inside".to_owned(),
        (false, 0) => "inside there is another one, which is private".to_owned(),
        (false, code) => format!("inside: {}", errno(code)),
    };
    answer(Some(observed), verdict(expected == observed), reason)
}

/// Tests whether a policy keeps commands from the host's network: one inside connects to a
/// listener that this function opened on the host's loopback.
///
/// # Errors
/// If the sandbox can't be set up, or the host does not let the test prepare its controls.
pub fn test_network_blocked(
    policy: &SandboxPolicy,
    cwd: &Path,
    helper: Option<&Path>,
) -> Result<SelfTest, DebugError> {
    let expected = !policy.has_full_network_access();
    let answer = |observed, verdict, reason: &str| SelfTest {
        expected,
        observed,
        verdict,
        reason: reason.to_owned(),
    };
    let host = Listening::open()?;
    let reach = |word: &str| Access::Connect(host.address, word.as_bytes().to_vec());
    let reached = reach("outside").attempt().is_ok() && host.heard("outside");
    if !reached {
        let text = "the host's own loopback can't be reached outside the sandbox";
        return Ok(answer(None, Verdict::Inconclusive, text));
    }
    if policy.has_full_disk_write_access() {
        return Ok(answer(Some(false), Verdict::NotEnforced, UNCONFINED));
    }
    let word = unique_name().to_string_lossy().into_owned();
    let accesses = [Access::OwnListener, reach(&word)];
    let answers = try_inside(policy, cwd, helper, &accesses)?;
    let blocked = !host.heard(&word);
    Ok(judge_connection(expected, answers.as_deref(), blocked))
}

fn judge_connection(expected: bool, answers: Option<&[i32]>, blocked: bool) -> SelfTest {
    let answer = |observed, verdict, reason: String| SelfTest {
        expected,
        observed,
        verdict,
        reason,
    };
    let Some([own, tried]) = answers else {
        return answer(None, Verdict::Inconclusive, NOT_SEEN.to_owned());
    };
    // What arrived has arrived; only a refusal needs to be told from a broken network.
    if blocked && *own != 0 {
        let text = format!("not even a listener inside is reached: {}", errno(*own));
        return answer(None, Verdict::Inconclusive, text);
    }
    let reason = match (blocked, *tried) {
        (false, _) => "what was sent inside arrived outside".to_owned(),
        (true, 0) => "inside it reached another listener".to_owned(),
        (true, code) => format!("inside: {}", errno(code)),
    };
    answer(Some(blocked), verdict(expected == blocked), reason)
}

const UNCONFINED: &str = "the policy confines nothing";
const NOT_SEEN: &str = "the helper can't be executed inside, so nothing was tried";

fn verdict(holds: bool) -> Verdict {
    if holds {
        Verdict::Enforced
    } else {
        Verdict::NotEnforced
    }
}

fn errno(code: i32) -> io::Error {
    io::Error::from_raw_os_error(code)
}

/// A name that nothing on this machine has.
fn unique_name() -> OsString {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    format!(".stockade-self-test-{}-{number}", std::process::id()).into()
}

/// Has the helper try the accesses in the sandbox; none if it could not be executed there.
fn try_inside(
    policy: &SandboxPolicy,
    cwd: &Path,
    helper: Option<&Path>,
    accesses: &[Access],
) -> Result<Option<Vec<i32>>, DebugError> {
    let helper = helper.ok_or(SandboxTransformError::MissingSandboxExecutable)?;
    let output = super::sandbox(policy, cwd, helper)?
        .command(helper)
        .args(access::arguments(accesses))
        .stdin(Stdio::Null)
        .output();
    match output {
        Ok(output) => Ok(access::parse(&output.stdout, accesses)),
        Err(Error::Run(RunError::Spawn(SpawnError::Stage {
            stage: Stage::Find | Stage::Execute,
            ..
        }))) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What is to be written.
struct Target {
    path: PathBuf,
    /// The file that decides: the path itself, or the one that is made in it.
    file: PathBuf,
    name: OsString,
    is_directory: bool,
}

impl Target {
    fn new(path: PathBuf, name: &OsString) -> Self {
        let is_directory = path.is_dir();
        let file = if is_directory {
            path.join(name)
        } else {
            path.clone()
        };
        Self {
            path,
            file,
            name: name.clone(),
            is_directory,
        }
    }

    fn access(&self) -> Access {
        Access::Write(self.path.clone(), self.name.clone())
    }

    /// Removes what the access made on the host; whether there was anything.
    fn take_back(&self) -> bool {
        self.is_directory && fs::remove_file(&self.file).is_ok()
    }
}

/// A directory that no policy names. Removed when dropped.
struct Forbidden {
    dir: PathBuf,
    file: PathBuf,
}

impl Forbidden {
    fn prepare(name: &OsString) -> Result<Self, DebugError> {
        let dir = std::env::temp_dir().join(name);
        fs::create_dir(&dir).map_err(|source| DebugError::Host {
            act: "make a directory for its control",
            source,
        })?;
        let file = dir.join(name);
        Ok(Self { dir, file })
    }

    fn take_back(&self) -> bool {
        fs::remove_file(&self.file).is_ok()
    }
}

impl Drop for Forbidden {
    fn drop(&mut self) {
        // Only an empty directory is left, and only if somebody else put something into it.
        let _ = fs::remove_dir(&self.dir);
    }
}

/// A listener on the host's loopback.
struct Listening {
    listener: TcpListener,
    address: SocketAddr,
}

/// What was sent before is there at once; this is for a machine that swaps.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(1);

impl Listening {
    fn open() -> Result<Self, DebugError> {
        let open = || {
            let listener = TcpListener::bind(("127.0.0.1", 0))?;
            // Whoever connected has done so before it is asked.
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            Ok(Self { listener, address })
        };
        open().map_err(|source| DebugError::Host {
            act: "listen on the host's loopback",
            source,
        })
    }

    /// Whether one of those that have connected said this.
    fn heard(&self, word: &str) -> bool {
        while let Ok((mut stream, _)) = self.listener.accept() {
            let mut said = Vec::new();
            let limit = u64::try_from(word.len()).unwrap_or(u64::MAX);
            let patient = stream
                .set_nonblocking(false)
                .and_then(|()| stream.set_read_timeout(Some(MESSAGE_TIMEOUT)));
            if patient.is_ok()
                && (&mut stream).take(limit).read_to_end(&mut said).is_ok()
                && said == word.as_bytes()
            {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EACCES: i32 = 13;

    #[test]
    fn a_write_is_judged_by_what_appeared() {
        let judge = |expected, answers: Option<&[i32]>, leaked, appeared| {
            let test = judge_write(expected, answers, leaked, appeared);
            (test.verdict, test.observed)
        };
        let (worked, refused) = (&[0, EACCES, 0][..], &[0, EACCES, EACCES][..]);
        let enforced = |observed| (Verdict::Enforced, Some(observed));
        let broken = |observed| (Verdict::NotEnforced, Some(observed));
        let unclear = (Verdict::Inconclusive, None);
        assert_eq!(judge(true, Some(worked), false, Some(true)), enforced(true));
        assert_eq!(
            judge(false, Some(refused), false, Some(false)),
            enforced(false)
        );
        assert_eq!(judge(false, Some(worked), false, Some(true)), broken(true));
        assert_eq!(
            judge(true, Some(refused), false, Some(false)),
            broken(false)
        );
        // A private /tmp lets itself be written, and the host's is as it was.
        assert_eq!(
            judge(false, Some(worked), false, Some(false)),
            enforced(false)
        );
        // A file is not changed by the test, so only the answer tells.
        assert_eq!(judge(false, Some(worked), false, None), broken(true));
        assert_eq!(
            judge(false, Some(refused), true, Some(false)),
            broken(false)
        );
        assert_eq!(judge(false, None, false, Some(false)), unclear);
        let nothing_works = &[EACCES, EACCES, EACCES][..];
        assert_eq!(
            judge(false, Some(nothing_works), false, Some(false)),
            unclear
        );
    }

    #[test]
    fn a_connection_is_judged_by_what_arrived() {
        let judge = |expected, answers: Option<&[i32]>, blocked| {
            let test = judge_connection(expected, answers, blocked);
            (test.verdict, test.observed)
        };
        let enforced = |observed| (Verdict::Enforced, Some(observed));
        let broken = |observed| (Verdict::NotEnforced, Some(observed));
        let unclear = (Verdict::Inconclusive, None);
        assert_eq!(judge(true, Some(&[0, EACCES]), true), enforced(true));
        assert_eq!(judge(true, Some(&[0, 0]), false), broken(false));
        assert_eq!(judge(true, Some(&[EACCES, EACCES]), false), broken(false));
        assert_eq!(judge(false, Some(&[0, 0]), false), enforced(false));
        assert_eq!(judge(false, Some(&[0, EACCES]), true), broken(true));
        // A network that does not work at all blocks nothing.
        assert_eq!(judge(true, Some(&[EACCES, EACCES]), true), unclear);
        assert_eq!(judge(true, None, true), unclear);
    }
}
