//! JSON-RPC 2.0 messages.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::api::ErrorObject;
use crate::error::{Failure, Kind};

/// A request or, without an id, a notification.
#[derive(Debug, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "JSON-RPC has these fields")]
pub struct Incoming {
    /// A number or a string; none for notifications, which get no answer.
    pub id: Option<Value>,
    /// What to do.
    pub method: String,
    /// With what.
    pub params: Value,
}

/// Why a line is no message, and the id to answer to.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "these are all there is to know")]
pub struct Malformed {
    /// The id, as far as it can be read.
    pub id: Value,
    /// Why.
    pub failure: Failure,
}

/// Reads one line.
///
/// # Errors
/// If it is no JSON-RPC 2.0 request.
pub fn parse(line: &[u8]) -> Result<Incoming, Malformed> {
    let value: Value = serde_json::from_slice(line).map_err(|error| Malformed {
        id: Value::Null,
        failure: Failure::new(Kind::Parse, format!("the line is no JSON: {error}")),
    })?;
    let refuse = |id: Value, text: &str| Malformed {
        id,
        failure: Failure::new(Kind::InvalidRequest, text),
    };
    let Value::Object(mut object) = value else {
        return Err(refuse(
            Value::Null,
            "a message is a JSON object; batches are not supported",
        ));
    };
    let id = match object.remove("id") {
        None => None,
        Some(id @ (Value::Number(_) | Value::String(_))) => Some(id),
        Some(_) => return Err(refuse(Value::Null, "`id` is neither a number nor a string")),
    };
    let shown = id.clone().unwrap_or_default();
    if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(refuse(shown, "`jsonrpc` is not \"2.0\""));
    }
    let Some(Value::String(method)) = object.remove("method") else {
        return Err(refuse(shown, "`method` is missing or not a string"));
    };
    let params = match object.remove("params") {
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(params @ Value::Object(_)) => params,
        Some(_) => return Err(refuse(shown, "`params` is not an object")),
    };
    Ok(Incoming { id, method, params })
}

/// An answer.
#[derive(Serialize)]
pub(crate) struct Answer<'a> {
    jsonrpc: &'static str,
    id: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorObject>,
}

impl<'a> Answer<'a> {
    pub(crate) fn new(id: &'a Value, outcome: &'a Result<Value, Failure>) -> Self {
        Self {
            jsonrpc: "2.0",
            id,
            result: outcome.as_ref().ok(),
            error: outcome.as_ref().err().map(Failure::to_api),
        }
    }
}

/// A message that wants no answer.
#[derive(Serialize)]
pub(crate) struct Notification<T> {
    jsonrpc: &'static str,
    method: &'static str,
    params: T,
}

impl<T> Notification<T> {
    pub(crate) fn new(method: &'static str, params: T) -> Self {
        Self {
            jsonrpc: "2.0",
            method,
            params,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read() {
        let read = parse(br#"{"jsonrpc":"2.0","id":7,"method":"open"}"#).unwrap();
        assert_eq!(read.id, Some(Value::from(7)));
        assert_eq!(read.method, "open");
        assert_eq!(read.params, Value::Object(Map::new()));
        let read = parse(br#"{"jsonrpc":"2.0","method":"x","params":{"a":1}}"#).unwrap();
        assert_eq!(read.id, None);
    }

    #[test]
    fn what_is_no_request_is_refused_with_its_id() {
        for (line, kind, id) in [
            (&b"{"[..], Kind::Parse, Value::Null),
            (b"\xff", Kind::Parse, Value::Null),
            (b"[]", Kind::InvalidRequest, Value::Null),
            (b"7", Kind::InvalidRequest, Value::Null),
            (b"{\"id\":1}", Kind::InvalidRequest, 1.into()),
            (
                b"{\"jsonrpc\":\"2.0\",\"id\":\"a\"}",
                Kind::InvalidRequest,
                "a".into(),
            ),
            (
                b"{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"x\"}",
                Kind::InvalidRequest,
                Value::Null,
            ),
            (
                b"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"x\",\"params\":[1]}",
                Kind::InvalidRequest,
                3.into(),
            ),
        ] {
            let bad = parse(line).unwrap_err();
            assert_eq!((bad.failure.kind, bad.id), (kind, id));
        }
    }
}
