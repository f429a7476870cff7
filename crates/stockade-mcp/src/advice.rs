//! Advice of Stockade's other commands, from this program itself.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;
use stockade_serve::{Failure, Kind};

/// Runs a command of this program that prints JSON.
pub(crate) fn ask(arguments: &[String], input: &str) -> Result<Value, Failure> {
    let mut child = Command::new("/proc/self/exe")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let stdin = child.stdin.take();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || {
            // Whoever has read enough closes the pipe.
            stdin.map(|mut stdin| stdin.write_all(input.as_bytes()))
        });
        child.wait_with_output()
    })?;
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
    if let Ok(whole) = serde_json::from_str(&text) {
        return Ok(whole);
    }
    match lines {
        Ok(lines) if !lines.is_empty() => Ok(Value::Array(lines)),
        _ => {
            let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Err(Failure::new(Kind::InvalidParams, complaint))
        }
    }
}
