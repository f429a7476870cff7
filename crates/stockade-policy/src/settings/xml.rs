//! XML, as far as settings need it: elements, attributes, text. A document type, which could define
//! entities, is not understood, nor is CDATA.

use std::fmt::Write as _;

use super::secrets::{clean, harmless, is_secret_name};

/// Elements that hold nothing but how to log in. In Maven's settings, `server` may also hold headers.
const SECRET_ELEMENTS: &[&str] = &["servers"];

/// How deep elements may be nested.
const MAX_DEPTH: usize = 64;

pub(super) fn copy(text: &str) -> Option<String> {
    let mut reader = Reader { rest: text };
    reader.skip_between()?;
    let element = reader.element(0)?;
    reader.skip_between()?;
    if !reader.rest.is_empty() {
        return None;
    }
    let element = element.cleaned()?;
    let mut copy = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    element.put(&mut copy);
    copy.push('\n');
    Some(copy)
}

struct Element {
    name: String,
    attributes: Vec<(String, String)>,
    children: Vec<Child>,
}

enum Child {
    Element(Element),
    Text(String),
}

impl Element {
    /// The element without secrets; none if it is one.
    fn cleaned(self) -> Option<Self> {
        if SECRET_ELEMENTS.contains(&self.name.as_str())
            || is_secret_name(&self.name)
            || harmless(&self.name).is_none()
        {
            return None;
        }
        let attributes = self.attributes.into_iter();
        let attributes = attributes
            .filter(|(name, _)| harmless(name).is_some() && !is_secret_name(name))
            .filter_map(|(name, value)| Some((name, clean(&value)?)))
            .collect();
        let had_text = self
            .children
            .iter()
            .any(|child| matches!(child, Child::Text(text) if !text.trim().is_empty()));
        let children: Vec<Child> = self
            .children
            .into_iter()
            .filter_map(|child| match child {
                Child::Element(element) => element.cleaned().map(Child::Element),
                Child::Text(text) => clean(&text).map(Child::Text),
            })
            .collect();
        let keeps_text = children
            .iter()
            .any(|child| matches!(child, Child::Text(text) if !text.trim().is_empty()));
        (had_text == keeps_text).then_some(Self {
            name: self.name,
            attributes,
            children,
        })
    }

    fn put(&self, copy: &mut String) {
        let _ = write!(copy, "<{}", self.name);
        for (name, value) in &self.attributes {
            let _ = write!(copy, " {name}=\"{}\"", escaped(value));
        }
        copy.push('>');
        for child in &self.children {
            match child {
                Child::Element(element) => element.put(copy),
                Child::Text(text) => copy.push_str(&escaped(text)),
            }
        }
        let _ = write!(copy, "</{}>", self.name);
    }
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn take(&mut self, text: &str) -> bool {
        let taken = self.rest.strip_prefix(text);
        self.rest = taken.unwrap_or(self.rest);
        taken.is_some()
    }

    fn until(&mut self, end: &str) -> Option<&'a str> {
        let (text, rest) = self.rest.split_once(end)?;
        self.rest = rest;
        Some(text)
    }

    /// Skips white space, comments and instructions around the outermost element.
    fn skip_between(&mut self) -> Option<()> {
        loop {
            self.rest = self.rest.trim_start();
            if self.take("<!--") {
                self.until("-->")?;
            } else if self.take("<?") {
                self.until("?>")?;
            } else {
                return Some(());
            }
        }
    }

    fn name(&mut self) -> Option<String> {
        let is_of_name = |letter: char| letter.is_alphanumeric() || "_-.:".contains(letter);
        let end = self.rest.find(|letter| !is_of_name(letter))?;
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!name.is_empty()).then(|| name.to_owned())
    }

    fn element(&mut self, depth: usize) -> Option<Element> {
        if depth > MAX_DEPTH || !self.take("<") {
            return None;
        }
        let name = self.name()?;
        let mut attributes = Vec::new();
        loop {
            self.rest = self.rest.trim_start();
            if self.take("/>") {
                let children = Vec::new();
                return Some(Element {
                    name,
                    attributes,
                    children,
                });
            }
            if self.take(">") {
                break;
            }
            attributes.push(self.attribute()?);
        }
        let children = self.children(depth)?;
        let closed = self.name()?;
        self.rest = self.rest.trim_start();
        (closed == name && self.take(">")).then_some(Element {
            name,
            attributes,
            children,
        })
    }

    fn attribute(&mut self) -> Option<(String, String)> {
        let name = self.name()?;
        self.rest = self.rest.trim_start();
        if !self.take("=") {
            return None;
        }
        self.rest = self.rest.trim_start();
        let quote = if self.take("\"") {
            "\""
        } else if self.take("'") {
            "'"
        } else {
            return None;
        };
        let value = self.until(quote)?;
        (!value.contains('<')).then_some(())?;
        Some((name, unescaped(value)?))
    }

    /// What is between the tags of an element, and the beginning of the closing one.
    fn children(&mut self, depth: usize) -> Option<Vec<Child>> {
        let mut children = Vec::new();
        loop {
            let text = &self.rest[..self.rest.find('<')?];
            self.rest = &self.rest[text.len()..];
            if !text.is_empty() {
                push_text(&mut children, &unescaped(text)?);
            }
            if self.take("</") {
                return Some(children);
            } else if self.take("<!--") {
                self.until("-->")?;
            } else if self.rest.starts_with("<!") || self.rest.starts_with("<?") {
                return None;
            } else {
                children.push(Child::Element(self.element(depth + 1)?));
            }
        }
    }
}

/// Text on both sides of a comment is one text.
fn push_text(children: &mut Vec<Child>, text: &str) {
    match children.last_mut() {
        Some(Child::Text(before)) => before.push_str(text),
        _ => children.push(Child::Text(text.to_owned())),
    }
}

fn unescaped(text: &str) -> Option<String> {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        let (entity, after) = after.split_once(';')?;
        plain.push_str(before);
        let number = |digits: &str, radix| {
            u32::from_str_radix(digits, radix)
                .ok()
                .and_then(char::from_u32)
        };
        plain.push(match entity {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" => '\'',
            _ => match entity.strip_prefix("#x") {
                Some(digits) => number(digits, 16)?,
                None => number(entity.strip_prefix('#')?, 10)?,
            },
        });
        rest = after;
    }
    plain.push_str(rest);
    Some(plain)
}
