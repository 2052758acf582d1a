//! What `mpjdev inspect --impi` makes of recordings.

use std::io::{self, Read};

use mpjdev_cli::inspect::impi::{Agreed, Part, Question, Stop, Style, Sums, explain};
use mpjdev_cli::inspect::input::Kind;
use mpjdev_proto::impi::Dialect;

/// Explains a recording behind an octet of settings: dialect, what the input is, what of it is wanted, known marks.
///
/// Promises: no panic; the same comes out however the input comes in; JSON is JSON; text and JSON tell of as many commands,
/// packets, warnings and damages; nothing stands outside the input.
pub fn recording(input: &[u8]) {
    let Some((settings, input)) = input.split_first() else { return };
    let dialect = if settings & 1 == 0 { Dialect::Final } else { Dialect::Draft };
    let kind = [Kind::Auto, Kind::Raw, Kind::Hex, Kind::Auto][usize::from(settings >> 1 & 3)];
    let part = [None, Some(Part::Startup), Some(Part::Packets), None][usize::from(settings >> 3 & 3)];
    let few = Agreed { maxdatalen: Some(4), ackmark: Some(1), hiwater: Some(2), tag_ub: Some(32767) };
    let agreed = if settings & 32 == 0 { Agreed::default() } else { few };
    let question = Question { dialect, part, agreed };
    let (text, sums) = told(input, kind, question, Style::Text { all: settings & 64 != 0 });
    let (json, same) = told(input, kind, question, Style::Json);
    assert_eq!(sums, same);
    let pieces = Slowly(input, 1 + usize::from(settings >> 4));
    let mut out = Vec::new();
    let _ = explain(pieces, kind, question, Style::Json, &mut out);
    assert_eq!(out, json, "in pieces");
    agrees(&text, &json, sums, input.len() as u64);
}

fn told(input: &[u8], kind: Kind, question: Question, style: Style) -> (Vec<u8>, Option<Sums>) {
    let mut out = Vec::new();
    let sums = match explain(input, kind, question, style, &mut out) {
        Ok(sums) => Some(sums),
        Err(Stop::Input(_)) => None,
        Err(Stop::Output(error)) => panic!("a vector takes it: {error}"),
    };
    (out, sums)
}

fn agrees(text: &[u8], json: &[u8], sums: Option<Sums>, len: u64) {
    let text = std::str::from_utf8(text).expect("UTF-8");
    assert!(text.is_empty() || text.ends_with('\n'));
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "a terminal would obey");
    if json.is_empty() {
        return assert!(sums.is_none() && text.is_empty());
    }
    let json: serde_json::Value = serde_json::from_slice(json).expect("valid JSON");
    let items = json["items"].as_array().expect("a list");
    let warnings = |item: &serde_json::Value| item["warnings"].as_array().map_or(0, Vec::len);
    let warnings: usize = items.iter().map(warnings).sum();
    assert_eq!(text.matches("\n            ! ").count(), warnings, "{text}");
    let damages = items.iter().filter(|item| item.get("error").is_some()).count();
    assert_eq!(text.lines().filter(|line| line.starts_with("damaged ")).count(), damages, "{text}");
    assert_eq!(json.get("error").is_some(), sums.is_none());
    let Some(sums) = sums else { return };
    let of = |name: &str| json[name].as_u64().expect("a number");
    let told = [of("commands"), of("packets"), of("warnings"), of("damages")];
    assert_eq!(told, [sums.commands, sums.packets, sums.warnings, sums.damages]);
    assert_eq!((sums.warnings, sums.damages), (warnings as u64, damages as u64));
    // A capture says how long data were that it has not.
    let inside = items.iter().all(|item| item["offset"].as_u64().expect("an offset") <= len);
    assert!(inside || items.iter().all(|item| item.get("line").is_some()));
}

/// Gives so many octets at a time.
struct Slowly<'a>(&'a [u8], usize);

impl Read for Slowly<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.1.min(self.0.len()).min(buffer.len());
        let (now, later) = self.0.split_at(len);
        buffer[..len].copy_from_slice(now);
        self.0 = later;
        Ok(len)
    }
}
