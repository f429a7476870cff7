//! The JSON schema of the protocol, made from the types in [`crate::api`].

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::api;
use crate::methods::methods;

/// The schema as one document: `methods` has the parameters and the result of each, `notifications`
/// what the server sends by itself, `error` the shape of errors.
pub fn schema() -> Value {
    let mut input = SchemaSettings::draft2020_12()
        .for_deserialize()
        .into_generator();
    let mut output = SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator();
    let mut methods = Map::new();
    macro_rules! add {
        ($($name:literal => $_:ident: $params:ident -> $result:ident, $does:literal;)*) => {$(
            methods.insert($name.to_owned(), json!({
                "description": $does,
                "params": input.subschema_for::<api::$params>(),
                "result": output.subschema_for::<api::$result>(),
            }));
        )*};
    }
    methods!(add);
    let notification = output.subschema_for::<api::Output>();
    let error = output.subschema_for::<api::ErrorObject>();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The protocol of `stockade serve`",
        "protocol": api::PROTOCOL,
        "methods": methods,
        "notifications": { "output": { "params": notification } },
        "error": error,
        "$defs": definitions(&mut input, &mut output),
    })
}

fn definitions(input: &mut SchemaGenerator, output: &mut SchemaGenerator) -> Map<String, Value> {
    let mut all = input.take_definitions(true);
    all.extend(output.take_definitions(true));
    all
}
