//! Random specifications: the program against the naive evaluator, and merged rules against two
//! stacked filters.

use proptest::prelude::*;

use super::*;

fn actions() -> impl Strategy<Value = Action> {
    prop_oneof![
        Just(Action::Allow),
        Just(Action::KillProcess),
        Just(Action::Log),
        Just(Action::Notify),
        (1u16..40).prop_map(Action::Errno),
    ]
}

/// Words whose halves are small, equal, or full, so that random arguments often match.
fn words() -> impl Strategy<Value = u64> {
    let half = prop_oneof![
        Just(0u32),
        Just(u32::MAX),
        0..4u32,
        Just(0x0002_0000),
        any::<u32>()
    ];
    (half.clone(), half).prop_map(|(high, low)| u64::from(high) << 32 | u64::from(low))
}

fn conditions() -> impl Strategy<Value = Condition> {
    (0..6u8, any::<bool>(), words(), words()).prop_map(|(arg, wide, mask, value)| {
        let (width, mask) = if wide {
            (Width::Full64, mask)
        } else {
            (Width::Low32, mask & 0xffff_ffff)
        };
        Condition {
            arg,
            width,
            mask,
            value: value & mask,
        }
    })
}

fn cases() -> impl Strategy<Value = Vec<Case>> {
    let case = (prop::collection::vec(conditions(), 0..3), actions());
    prop::collection::vec(case.prop_map(|(when, then)| Case { when, then }), 0..5)
}

fn names(arch: Arch) -> impl Strategy<Value = Vec<String>> {
    let all: Vec<String> = arch
        .table()
        .iter()
        .map(|entry| entry.0.to_owned())
        .collect();
    prop::sample::subsequence(all, 1..12)
}

fn specs() -> impl Strategy<Value = FilterSpec> {
    prop_oneof![Just(Arch::X86_64), Just(Arch::Aarch64), Just(Arch::I386)].prop_flat_map(|arch| {
        let rule =
            (names(arch), cases(), actions()).prop_map(|(syscalls, cases, otherwise)| Rule {
                syscalls,
                cases,
                otherwise,
            });
        let rules = prop::collection::vec(rule, 0..40);
        ([actions(), actions(), actions(), actions()], rules).prop_map(
            move |([foreign, x32, unknown, default], rules)| {
                let mut spec = FilterSpec {
                    arch,
                    foreign,
                    x32,
                    unknown,
                    default,
                    rules: Vec::new(),
                };
                for mut rule in rules {
                    rule.syscalls.retain(|name| spec.rule(name).is_none());
                    if !rule.syscalls.is_empty() {
                        spec.rules.push(rule);
                    }
                }
                spec
            },
        )
    })
}

/// A random call: a number, words, and which conditions of its rule to meet.
type Draw = (prop::sample::Index, [u64; 6], Vec<prop::sample::Index>);

fn draws() -> impl Strategy<Value = Vec<Draw>> {
    let words = [words(), words(), words(), words(), words(), words()];
    let picks = prop::collection::vec(any::<prop::sample::Index>(), 0..4);
    prop::collection::vec((any::<prop::sample::Index>(), words, picks), 60)
}

/// Arguments near the conditions of a rule, so that its cases are often met.
fn near(rule: Option<&Rule>, (_, words, picks): &Draw) -> [u64; 6] {
    let mut args = *words;
    let wanted: Vec<&Condition> = rule
        .iter()
        .flat_map(|rule| &rule.cases)
        .flat_map(|case| &case.when)
        .collect();
    for pick in picks.iter().filter(|_| !wanted.is_empty()) {
        let condition = pick.get(&wanted);
        let arg = &mut args[usize::from(condition.arg)];
        *arg = *arg & !condition.mask | condition.value;
    }
    args
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn programs_equal_their_specifications(spec in specs(), draws in draws()) {
        let program = compile(&spec).unwrap();
        let ruled: Vec<&String> = spec.rules.iter().flat_map(|rule| &rule.syscalls).collect();
        for (at, draw) in draws.iter().enumerate() {
            // Half of the calls have a rule.
            let number = if at % 2 == 0 && !ruled.is_empty() {
                spec.arch.number(ruled[draw.0.index(ruled.len())]).unwrap()
            } else {
                u32::try_from(draw.0.index(480)).unwrap()
            };
            let rule = spec.arch.name(number).and_then(|name| spec.rule(name));
            let args = near(rule, draw);
            for number in [number, number | X32_BIT] {
                for arch in [Arch::X86_64, Arch::Aarch64, Arch::I386] {
                    let data = SyscallData { number, arch: arch.audit(), args };
                    let outcome = emulate(&program, &data).unwrap();
                    prop_assert_eq!(outcome.action, spec.verdict(&data), "{:x?}", data);
                }
            }
        }
    }

    #[test]
    fn a_merged_rule_equals_two_stacked_filters(
        (ours, our_else, theirs, their_else) in (cases(), actions(), cases(), actions()),
        draws in draws(),
    ) {
        let filter = |rules: &[&Rule]| {
            let mut spec = FilterSpec {
                arch: Arch::X86_64,
                foreign: Action::KillProcess,
                x32: Action::KillProcess,
                unknown: Action::KillProcess,
                default: Action::Allow,
                rules: Vec::new(),
            };
            for rule in rules {
                spec.add((*rule).clone());
            }
            spec
        };
        let both = Rule::cases(&["read"], [ours.clone(), theirs.clone()].concat(), our_else);
        let first = Rule::cases(&["read", "write"], ours, our_else);
        let second = Rule::cases(&["close", "read"], theirs, their_else);
        let (one, two) = (filter(&[&first]), filter(&[&second]));
        let merged = filter(&[&first, &second]);
        for draw in &draws {
            let args = near(Some(&both), draw);
            for name in ["read", "write", "close", "dup"] {
                let data = call(Arch::X86_64, name, &args);
                let stacked = one.verdict(&data).stricter(two.verdict(&data));
                prop_assert_eq!(merged.verdict(&data), stacked, "{}", name);
            }
        }
    }
}
