//! A second compiler and the emulator against each other: seccompiler on a plain list of refusals.
//!
//! Where the two differ by design (seccompiler passes the x32 bit and numbers nobody knows) the
//! difference is pinned down, since it is why this crate has an emitter of its own.

use std::collections::BTreeMap;

use super::*;

#[test]
fn seccompiler_agrees_on_a_list_of_refusals() {
    for arch in [Arch::X86_64, Arch::Aarch64] {
        let mut spec = ProfileOptions::shared_namespaces().filter(arch).unwrap();
        spec.rules.retain(|rule| rule.cases.is_empty());
        let ours = compile(&spec).unwrap();
        let theirs = seccompiler(&spec);
        for number in 0..=1023 {
            let data = SyscallData {
                number,
                arch: arch.audit(),
                args: [7; 6],
            };
            let (ours, theirs) = (emulate_action(&ours, &data), emulate_action(&theirs, &data));
            if arch.name(number).is_none() {
                assert_eq!(
                    (ours, theirs),
                    (Action::Errno(38), Action::Allow),
                    "{number}"
                );
            } else if ours == Action::Errno(38) {
                // A list has one errno only.
                assert_eq!(
                    (arch.name(number), theirs),
                    (Some("clone3"), Action::Errno(1))
                );
            } else {
                assert_eq!(ours, theirs, "{:?} on {arch:?}", arch.name(number));
            }
        }
        let foreign = SyscallData {
            number: 0,
            arch: Arch::I386.audit(),
            args: [0; 6],
        };
        assert_eq!(emulate_action(&theirs, &foreign), Action::KillProcess);
        assert_eq!(emulate_action(&ours, &foreign), Action::KillProcess);
        if arch == Arch::X86_64 {
            let x32 = call(Arch::X32, "mount", &[]);
            assert_eq!(emulate_action(&theirs, &x32), Action::Allow);
            assert_eq!(emulate_action(&ours, &x32), Action::Errno(38));
        }
    }
}

fn emulate_action(program: &Program, data: &SyscallData) -> Action {
    emulate(program, data).unwrap().action
}

fn seccompiler(spec: &FilterSpec) -> Program {
    use seccompiler::{SeccompAction, SeccompFilter, TargetArch};
    let target = match spec.arch {
        Arch::Aarch64 => TargetArch::aarch64,
        _ => TargetArch::x86_64,
    };
    let rules: BTreeMap<i64, Vec<seccompiler::SeccompRule>> = spec
        .rules
        .iter()
        .flat_map(|rule| &rule.syscalls)
        .filter_map(|name| spec.arch.number(name))
        .map(|number| (i64::from(number), Vec::new()))
        .collect();
    let filter =
        SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(1), target).unwrap();
    let program: seccompiler::BpfProgram = filter.try_into().unwrap();
    Program::from_instructions(
        program
            .iter()
            .map(|i| Instruction {
                code: i.code,
                jt: i.jt,
                jf: i.jf,
                k: i.k,
            })
            .collect(),
    )
}
