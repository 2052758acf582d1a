//! Target of `mpjdev inspect --impi`.

use mpjdev_cli::inspect::impi::{Options, Part, Stop, Style, Terms, Totals, dissect};
use mpjdev_cli::inspect::input::Kind;
use mpjdev_proto::impi::Dialect;

/// Dissects a recording after an octet of settings: dialect, form of the input, part, terms.
///
/// Invariants: the JSON is valid. Text and JSON have the same numbers of commands, packets, warnings and
/// damages. No offset is outside the input.
pub fn recording(input: &[u8]) {
    let Some((settings, input)) = input.split_first() else { return };
    let dialect = if settings & 1 == 0 { Dialect::Final } else { Dialect::Draft };
    let kind = [Kind::Auto, Kind::Raw, Kind::Hex, Kind::Auto][usize::from(settings >> 1 & 3)];
    let part = [None, Some(Part::Startup), Some(Part::Packets), None][usize::from(settings >> 3 & 3)];
    let few = Terms { maxdatalen: Some(4), ackmark: Some(1), tag_ub: Some(32767) };
    let terms = if settings & 32 == 0 { Terms::default() } else { few };
    let options = Options { dialect, part, terms };
    let (text, totals) = output(input, kind, options, Style::Text { all: settings & 64 != 0 });
    let (json, same) = output(input, kind, options, Style::Json);
    assert_eq!(totals, same);
    agrees(&text, &json, totals, input.len() as u64);
}

fn output(input: &[u8], kind: Kind, options: Options, style: Style) -> (Vec<u8>, Option<Totals>) {
    let mut out = Vec::new();
    let totals = match dissect(input.to_vec(), kind, options, style, &mut out) {
        Ok(totals) => Some(totals),
        Err(Stop::Input(_)) => None,
        Err(Stop::Output(error)) => panic!("a vector takes it: {error}"),
    };
    (out, totals)
}

fn agrees(text: &[u8], json: &[u8], totals: Option<Totals>, len: u64) {
    let text = std::str::from_utf8(text).expect("UTF-8");
    assert!(text.is_empty() || text.ends_with('\n'));
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "control characters would reach a terminal");
    if json.is_empty() {
        return assert!(totals.is_none() && text.is_empty());
    }
    let json: serde_json::Value = serde_json::from_slice(json).expect("valid JSON");
    let items = json["items"].as_array().expect("a list");
    let warnings = |item: &serde_json::Value| item["warnings"].as_array().map_or(0, Vec::len);
    let warnings: usize = items.iter().map(warnings).sum();
    assert_eq!(text.matches("\n            ! ").count(), warnings, "{text}");
    let damages = items.iter().filter(|item| item.get("error").is_some()).count();
    assert_eq!(text.lines().filter(|line| line.starts_with("damaged ")).count(), damages, "{text}");
    assert_eq!(json.get("error").is_some(), totals.is_none());
    let Some(totals) = totals else { return };
    let of = |name: &str| json[name].as_u64().expect("a number");
    let counts = [of("commands"), of("packets"), of("warnings"), of("damages")];
    assert_eq!(counts, [totals.commands, totals.packets, totals.warnings, totals.damages]);
    assert_eq!((totals.warnings, totals.damages), (warnings as u64, damages as u64));
    // Offsets of a capture include data that it omits.
    let inside = items.iter().all(|item| item["offset"].as_u64().expect("an offset") <= len);
    assert!(inside || items.iter().all(|item| item.get("line").is_some()));
}
