//! The program against its specification: every number, every architecture, telling arguments.

use std::collections::BTreeSet;

use super::*;

const AUDIT_ARM: u32 = 0x4000_0028;

#[test]
fn every_number_on_every_architecture() {
    for (name, options) in option_sets() {
        for native in [Arch::X86_64, Arch::Aarch64] {
            let spec = options.filter(native).unwrap();
            prove(name, &spec);
        }
    }
}

/// Programs so long that no conditional jump reaches across them.
#[test]
fn jumps_beyond_255_instructions() {
    let mut spec = ProfileOptions::native().filter(Arch::X86_64).unwrap();
    spec.rules.clear();
    for (name, number) in Arch::X86_64.table().iter().step_by(2) {
        let number = u16::try_from(*number).unwrap();
        let odd = Case::both(
            Condition::int_masked(0, 0xff0, 0x120),
            Condition::long_masked(5, u64::MAX, u64::from(number) << 32 | 7),
            Action::Errno(number + 1),
        );
        spec.add(Rule::cases(&[name], vec![odd], Action::Errno(number + 500)));
    }
    let program = compile(&spec).unwrap();
    assert!(
        program.instructions().len() > 1500,
        "{}",
        program.instructions().len()
    );
    assert!(
        program.instructions().iter().any(|i| i.code == bpf::JA),
        "no bridge was needed"
    );
    prove("long", &spec);
}

#[test]
fn a_program_the_kernel_would_not_take_is_an_error() {
    let mut spec = ProfileOptions::native().filter(Arch::X86_64).unwrap();
    spec.rules.clear();
    let cases: Vec<Case> = (0..4000)
        .map(|value| Case::when(Condition::long_masked(0, u64::MAX, value), Action::Log))
        .collect();
    spec.add(Rule::cases(&["read"], cases, Action::Allow));
    assert!(matches!(
        compile(&spec),
        Err(SpecError::TooLong { instructions }) if instructions > MAX_INSTRUCTIONS
    ));
}

#[test]
fn what_a_specification_can_not_say() {
    let good = ProfileOptions::native().filter(Arch::X86_64).unwrap();
    let with = |rule: Rule| {
        let mut spec = good.clone();
        spec.rules.push(rule);
        compile(&spec).unwrap_err()
    };
    assert_eq!(
        with(Rule::always(&["mkdirr"], Action::Allow)),
        SpecError::UnknownSyscall("mkdirr".into())
    );
    assert_eq!(
        with(Rule::always(&["mount"], Action::Allow)),
        SpecError::DuplicateSyscall("mount".into())
    );
    for errno in [0, 4096] {
        assert_eq!(
            with(Rule::always(&["read"], Action::Errno(errno))),
            SpecError::Errno(errno)
        );
    }
    let hopeless = [
        Condition {
            arg: 6,
            width: Width::Low32,
            mask: 1,
            value: 1,
        },
        Condition {
            arg: 0,
            width: Width::Low32,
            mask: 1,
            value: 2,
        },
        Condition {
            arg: 0,
            width: Width::Low32,
            mask: 1 << 32,
            value: 0,
        },
    ];
    for condition in hopeless {
        let rule = Rule::cases(
            &["read"],
            vec![Case::when(condition, Action::Log)],
            Action::Allow,
        );
        assert_eq!(
            with(rule),
            SpecError::Condition {
                syscall: "read".into(),
                condition
            }
        );
    }
    let foreign = FilterSpec {
        arch: Arch::X32,
        ..good
    };
    assert_eq!(compile(&foreign), Err(SpecError::UnsupportedArch));
}

#[test]
fn a_specification_survives_being_printed() {
    for (name, options) in option_sets() {
        let spec = options.filter(Arch::X86_64).unwrap();
        let text = serde_json::to_string(&spec).unwrap();
        assert_eq!(
            serde_json::from_str::<FilterSpec>(&text).unwrap(),
            spec,
            "{name}"
        );
        let text = serde_json::to_string(&options).unwrap();
        assert_eq!(
            serde_json::from_str::<ProfileOptions>(&text).unwrap(),
            options,
            "{name}"
        );
    }
    let typo = r#"{"syscalls":["read"],"otherwize":"allow","otherwise":"allow"}"#;
    assert!(serde_json::from_str::<Rule>(typo).is_err());
}

/// Compares program and specification on every number × architecture × telling arguments.
pub(super) fn prove(name: &str, spec: &FilterSpec) {
    let program = compile(spec).unwrap();
    let audits = [
        Arch::X86_64.audit(),
        Arch::I386.audit(),
        Arch::Aarch64.audit(),
        AUDIT_ARM,
        0,
        u32::MAX,
    ];
    let mut tried = 0;
    for number in numbers() {
        let rule = (spec.arch.name(number)).and_then(|name| spec.rule(name));
        let vectors = rule.map_or_else(plain_arguments, telling_arguments);
        for arch in audits {
            // Arguments mean nothing to calls of another architecture; a few are enough.
            let few = if arch == spec.arch.audit() {
                vectors.len()
            } else {
                2
            };
            for &args in vectors.iter().take(few) {
                let data = SyscallData { number, arch, args };
                let outcome = emulate(&program, &data).unwrap();
                assert_eq!(outcome.action, spec.verdict(&data), "{name}: {data:x?}");
                tried += 1;
            }
        }
    }
    assert!(
        tried > 6 * 2 * 4096,
        "{name}: only {tried} calls were tried"
    );
}

/// 0 to 1023 plain, with the x32 bit, with the sign bit; and the edges around them.
fn numbers() -> BTreeSet<u32> {
    let low = 0..=1023u32;
    let mut numbers: BTreeSet<u32> = low
        .flat_map(|n| {
            [
                n,
                n | X32_BIT,
                n | 0x8000_0000,
                n | 0xc000_0000,
                X32_BIT - 1 - n,
            ]
        })
        .collect();
    numbers.extend([
        u32::MAX,
        0x7fff_ffff,
        0x3fff_ffff,
        65_535,
        65_536,
        0x0001_0000 + 165,
    ]);
    numbers
}

fn plain_arguments() -> Vec<[u64; 6]> {
    vec![[0; 6], [u64::MAX; 6]]
}

/// Every combination, over the arguments a rule looks at, of values that its conditions tell
/// apart: the value itself, the same with a bit more or less, with the upper half set, and the
/// extremes.
fn telling_arguments(rule: &Rule) -> Vec<[u64; 6]> {
    let mut values = [const { BTreeSet::<u64>::new() }; 6];
    for condition in rule.cases.iter().flat_map(|case| &case.when) {
        let set = &mut values[usize::from(condition.arg)];
        let Condition { mask, value, .. } = *condition;
        let bit = mask & mask.wrapping_neg();
        let top = mask.checked_ilog2().map_or(0, |at| 1 << at);
        set.extend([
            0,
            u64::MAX,
            u64::from(u32::MAX),
            value,
            mask,
            !mask,
            value | !mask,
        ]);
        set.extend([
            value ^ bit,
            value ^ top,
            value | 1 << 32,
            value | 1 << 63,
            value << 32,
        ]);
    }
    let mut vectors = plain_arguments();
    let mut product = vec![[0u64; 6]];
    for (arg, set) in values.iter().enumerate().filter(|(_, set)| !set.is_empty()) {
        product = product
            .iter()
            .flat_map(|args| {
                set.iter().map(move |&value| {
                    let mut args = *args;
                    args[arg] = value;
                    args
                })
            })
            .collect();
    }
    vectors.extend(product);
    vectors
}
