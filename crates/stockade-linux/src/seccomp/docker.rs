//! The same filter in the form that container engines read (`--security-opt seccomp=FILE`).
//!
//! libseccomp, which compiles that form, has no order among the conditions of one call, so only
//! rules that need none can be said in it: refusals without conditions, and lists of refused
//! values. Of the profiles that leaves out `clone`, `unshare`, `personality`, `socket` and
//! `socketpair`, where what passes is listed. [`FilterSpec::to_docker_json`] names them, so that
//! nobody takes the file for the whole filter; a container's own namespaces, capabilities and
//! network stand in for them. Other architectures and x32 are libseccomp's to refuse, and it does.

use serde_json::{Value, json};

use super::filter::{Action, Case, FilterSpec, Rule};
use super::table::Arch;

impl FilterSpec {
    /// The filter as a Docker seccomp profile, and the calls whose rules it can't hold.
    pub fn to_docker_json(&self) -> (Value, Vec<String>) {
        let mut syscalls = Vec::new();
        let mut left_out = Vec::new();
        for rule in &self.rules {
            match export(rule) {
                Some(entries) => syscalls.extend(entries),
                None => left_out.extend(rule.syscalls.iter().cloned()),
            }
        }
        let arch = match self.arch {
            Arch::Aarch64 => "SCMP_ARCH_AARCH64",
            Arch::I386 => "SCMP_ARCH_X86",
            Arch::X32 => "SCMP_ARCH_X32",
            Arch::X86_64 => "SCMP_ARCH_X86_64",
        };
        let profile = json!({
            "defaultAction": "SCMP_ACT_ALLOW",
            "architectures": [arch],
            "syscalls": syscalls,
        });
        (profile, left_out)
    }
}

/// The entries for a rule, if order does not matter to it: all its cases do the same, with one
/// condition each, and what remains is allowed.
fn export(rule: &Rule) -> Option<Vec<Value>> {
    let entry = |action, args: Value| {
        let mut entry = json!({ "names": rule.syscalls, "args": args });
        match action {
            Action::Errno(number) => {
                entry["action"] = json!("SCMP_ACT_ERRNO");
                entry["errnoRet"] = json!(number);
            }
            Action::KillProcess => entry["action"] = json!("SCMP_ACT_KILL_PROCESS"),
            Action::Log => entry["action"] = json!("SCMP_ACT_LOG"),
            Action::Allow | Action::Notify => return None,
        }
        Some(entry)
    };
    if rule.cases.is_empty() {
        return entry(rule.otherwise, json!([])).map(|entry| vec![entry]);
    }
    let masked = |case: &Case| {
        let args: Vec<Value> = case
            .when
            .iter()
            .map(|condition| {
                json!({
                    "index": condition.arg,
                    "value": condition.mask,
                    "valueTwo": condition.value,
                    "op": "SCMP_CMP_MASKED_EQ",
                })
            })
            .collect();
        entry(case.then, json!(args))
    };
    let first = rule.cases.first()?.then;
    if rule.otherwise != Action::Allow || rule.cases.iter().any(|case| case.then != first) {
        return None;
    }
    rule.cases.iter().map(masked).collect()
}

#[cfg(test)]
mod tests {
    use super::super::ProfileOptions;
    use super::*;

    #[test]
    fn what_can_be_said_is_said_and_the_rest_named() {
        let spec = ProfileOptions::unmediated().filter(Arch::X86_64).unwrap();
        let (profile, left_out) = spec.to_docker_json();
        assert_eq!(profile["defaultAction"], "SCMP_ACT_ALLOW");
        assert_eq!(
            left_out,
            ["socket", "socketpair", "clone", "unshare", "personality"]
        );
        let entries = profile["syscalls"].as_array().unwrap();
        let about = |name: &str| -> Vec<&Value> {
            let names = |e: &&Value| e["names"].as_array().unwrap().contains(&json!(name));
            entries.iter().filter(names).collect()
        };
        assert_eq!(about("mount").len(), 1);
        assert_eq!(about("mount")[0]["errnoRet"], 1);
        assert_eq!(about("clone3")[0]["errnoRet"], 38);
        assert_eq!(about("ioctl").len(), 5);
        let tiocsti = json!([{"index": 1, "value": 0xffff_ffff_u32, "valueTwo": 0x5412,
            "op": "SCMP_CMP_MASKED_EQ"}]);
        assert!(about("ioctl").iter().any(|entry| entry["args"] == tiocsti));
        assert_eq!(about("seccomp")[0]["args"].as_array().unwrap().len(), 2);
        assert_eq!(about("chmod").len(), 2);
        let made_set_id = json!([
            {"index": 2, "value": 0o100, "valueTwo": 0o100, "op": "SCMP_CMP_MASKED_EQ"},
            {"index": 3, "value": 0o4000, "valueTwo": 0o4000, "op": "SCMP_CMP_MASKED_EQ"},
        ]);
        let opens = about("openat");
        assert!(opens.iter().any(|entry| entry["args"] == made_set_id));
        assert!(about("read").is_empty());
    }
}
