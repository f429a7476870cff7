//! A reader and evaluator of the profile language, as far as our profiles use it. It knows
//! nothing of how they are made: it reads the text, and the last statement that matches decides.

use regex_lite::Regex;

#[derive(Debug, Clone)]
enum Node {
    List(Vec<Node>),
    Text(String),
    Word(String),
}

#[derive(Debug)]
struct Statement {
    allows: bool,
    operations: Vec<String>,
    filters: Vec<Filter>,
}

#[derive(Debug)]
enum Filter {
    Literal(String),
    Regex(Regex),
    Remote(String),
    Subpath(String),
    /// Not about paths or addresses.
    Other,
}

#[derive(Debug)]
pub(super) struct Evaluator(Vec<Statement>);

impl Evaluator {
    pub(super) fn new(text: &str) -> Self {
        let mut letters = text.chars().peekable();
        let mut statements = Vec::new();
        while let Some(node) = read(&mut letters) {
            statements.extend(statement(&node));
        }
        Self(statements)
    }

    pub(super) fn allows(&self, operation: &str, path: &str) -> bool {
        self.decide(operation, |filter| match filter {
            Filter::Literal(literal) => path == literal,
            Filter::Regex(regex) => regex.is_match(path),
            Filter::Subpath(root) => {
                path == root || root == "/" || path.starts_with(&format!("{root}/"))
            }
            Filter::Remote(_) | Filter::Other => false,
        })
    }

    pub(super) fn allows_network(&self, address: &str) -> bool {
        self.decide("network-outbound", |filter| match filter {
            Filter::Remote(remote) => remote == address,
            _ => false,
        })
    }

    fn decide(&self, operation: &str, matches: impl Fn(&Filter) -> bool) -> bool {
        let mut allowed = false;
        for statement in &self.0 {
            let speaks = statement.operations.iter().any(|pattern| {
                pattern == "default"
                    || pattern == operation
                    || pattern
                        .strip_suffix('*')
                        .is_some_and(|start| operation.starts_with(start))
            });
            let applies = statement.filters.is_empty() || statement.filters.iter().any(&matches);
            if speaks && applies {
                allowed = statement.allows;
            }
        }
        allowed
    }
}

/// The string that a quoted text stands for.
pub(super) fn string(text: &str) -> String {
    let mut letters = text.chars().peekable();
    let Some(Node::Text(text)) = read(&mut letters) else {
        panic!("no string: {text}");
    };
    assert!(letters.next().is_none(), "more than one string");
    text
}

fn read(letters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<Node> {
    while letters.next_if(|letter| letter.is_whitespace()).is_some() {}
    match letters.next()? {
        '(' => {
            let mut list = Vec::new();
            loop {
                while letters.next_if(|letter| letter.is_whitespace()).is_some() {}
                if letters.next_if_eq(&')').is_some() {
                    return Some(Node::List(list));
                }
                list.push(read(letters).expect("a list that ends"));
            }
        }
        '"' => {
            let mut text = String::new();
            loop {
                match letters.next().expect("a string that ends") {
                    '"' => return Some(Node::Text(text)),
                    '\\' => text.push(letters.next().expect("something behind a backslash")),
                    other => text.push(other),
                }
            }
        }
        ')' => panic!("a list that never began"),
        first => {
            let mut word = String::from(first);
            while let Some(letter) =
                letters.next_if(|letter| !letter.is_whitespace() && !"()\"".contains(*letter))
            {
                word.push(letter);
            }
            Some(Node::Word(word))
        }
    }
}

fn statement(node: &Node) -> Option<Statement> {
    let Node::List(parts) = node else {
        panic!("a bare word: {node:?}");
    };
    let Some(Node::Word(verb)) = parts.first() else {
        panic!("no verb: {node:?}");
    };
    let allows = match verb.as_str() {
        "allow" => true,
        "deny" => false,
        "version" => return None,
        other => panic!("unknown verb {other}"),
    };
    let mut operations = Vec::new();
    let mut filters = Vec::new();
    for part in &parts[1..] {
        match part {
            Node::Word(word) => operations.push(word.clone()),
            Node::List(list) => filters.push(filter(list)),
            Node::Text(text) => panic!("a bare string: {text}"),
        }
    }
    Some(Statement {
        allows,
        operations,
        filters,
    })
}

fn filter(list: &[Node]) -> Filter {
    match list {
        [Node::Word(kind), Node::Text(text)] => match kind.as_str() {
            "literal" => Filter::Literal(text.clone()),
            "subpath" => Filter::Subpath(text.clone()),
            "regex" => Filter::Regex(Regex::new(text).expect(text)),
            "global-name" => Filter::Other,
            other => panic!("unknown filter {other}"),
        },
        [Node::Word(remote), Node::Word(ip), Node::Text(text)]
            if remote == "remote" && ip == "ip" =>
        {
            Filter::Remote(text.clone())
        }
        [Node::Word(target), Node::Word(_)] if target == "target" => Filter::Other,
        other => panic!("unknown filter {other:?}"),
    }
}
