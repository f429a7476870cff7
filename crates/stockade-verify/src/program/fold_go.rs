//! Go's pure functions.

use super::fold::{decoded, environment, join, join_path, percent};
use super::value::{Args, Kind, Value};
use crate::paths::UNKNOWN;

pub(crate) fn call(path: &str, args: &Args) -> Option<Value> {
    let first = args.first();
    let text = first.and_then(Value::exact);
    Some(match path {
        "string"
        | "bytes.NewBufferString"
        | "bytes.NewBuffer"
        | "bytes.NewReader"
        | "strings.NewReader"
        | "strings.TrimSpace"
        | "path/filepath.Clean"
        | "path.Clean"
        | "bufio.NewReader"
        | "strings.ToLower" => first?.clone(),
        "fmt.Sprintf" => {
            let (format, values) = args.positional.split_first()?;
            percent(
                &format.exact()?.replace("%v", "%s").replace("%q", "%s"),
                values,
            )
        }
        "fmt.Sprint" | "fmt.Sprintln" => join("", &args.positional),
        "strings.Join" => join(args.positional.get(1)?.exact()?, first?.as_list()?),
        "strings.Replace" | "strings.ReplaceAll" => {
            let (from, to) = (
                args.positional.get(1)?.exact()?,
                args.positional.get(2)?.exact()?,
            );
            if from.is_empty() {
                return None;
            }
            Value::text(text?.replace(from, to)).with(first?.taint)
        }
        "strings.Repeat" => {
            let times = usize::try_from(args.positional.get(1)?.as_int()?).ok()?;
            let text = text?;
            if text.len().saturating_mul(times) > super::value::MAX_COMPUTED_LENGTH {
                return None;
            }
            Value::text(text.repeat(times))
        }
        "strings.Split" | "strings.Fields" => {
            let separator = args.positional.get(1).and_then(Value::exact).unwrap_or(" ");
            if separator.is_empty() {
                return None;
            }
            Value::list(text?.split(separator).map(Value::text).collect())
        }
        "path/filepath.Join" | "path.Join" => join_path(&args.positional),
        "os.Getenv" | "syscall.Getenv" | "os.LookupEnv" => environment(first, None),
        "os.ExpandEnv" => first.filter(|value| value.as_text().is_some())?.clone(),
        "os.Executable" => Value::text("/proc/self/exe"),
        "os.UserHomeDir" => Value::text("~"),
        "os.TempDir" => Value::text("/tmp"),
        "os.Getwd" => Value::text("."),
        "encoding/base64.StdEncoding.DecodeString"
        | "encoding/base64.URLEncoding.DecodeString"
        | "encoding/base64.RawStdEncoding.DecodeString"
        | "encoding/base64.RawURLEncoding.DecodeString" => {
            decoded(text.and_then(stockade_shell::base64), first?.taint)
        }
        "encoding/hex.DecodeString" => decoded(text.and_then(stockade_shell::hex), first?.taint),
        "append" => {
            let (list, rest) = args.positional.split_first()?;
            let mut items = list.as_list()?.to_vec();
            items.extend_from_slice(rest);
            Value::list(items)
        }
        "strconv.Itoa" => Value::text(first?.as_int()?.to_string()),
        "strings.Contains" | "strings.HasPrefix" | "len" => return None,
        "byte" | "rune" | "int" => match &first?.kind {
            Kind::Int(_) => first?.clone(),
            _ => return None,
        },
        _ if path.is_empty() => Value::text(UNKNOWN.to_string()),
        _ => return None,
    })
}
