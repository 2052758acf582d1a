//! Reads the golden vectors of messages: `NAME.hex` and `NAME.txt` as tests/golden/MANIFEST.md describes
//! them.

use std::fs;
use std::path::{Path, PathBuf};

use mpjdev_buffer::{Encoding, Type};

/// One section of a description.
#[derive(Debug)]
pub(crate) struct Section {
    /// Type of the elements.
    pub(crate) element: Type,
    /// The values as they are written there.
    pub(crate) values: Vec<String>,
}

/// The error that a damaged vector must give.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Expected {
    /// Number of the section that fails; `None` when the load of the message fails.
    pub(crate) section: Option<usize>,
    /// Octets from the start.
    pub(crate) offset: u64,
    /// Check that fails.
    pub(crate) kind: String,
}

/// One vector.
#[derive(Debug, Default)]
pub(crate) struct Vector {
    /// File name without its ending.
    pub(crate) name: String,
    /// The octets.
    pub(crate) octets: Vec<u8>,
    /// Byte order, where known.
    pub(crate) encoding: Option<Encoding>,
    /// p, where known.
    pub(crate) primary_len: Option<usize>,
    /// s, where known.
    pub(crate) secondary_len: Option<usize>,
    /// Whether encoding the values gives the octets again.
    pub(crate) canonical: bool,
    /// The sections in order.
    pub(crate) sections: Vec<Section>,
    /// The secondary payload.
    pub(crate) stream: Vec<u8>,
    /// Expected error.
    pub(crate) error: Option<Expected>,
}

/// All vectors of messages, in the order of their names.
pub(crate) fn all() -> Vec<Vector> {
    // Relative to the crate that reads them.
    let mut above =
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|folder| folder.join("tests/golden"));
    let folder = above.find(|folder| folder.is_dir()).expect("the folder of golden vectors");
    let is_packets = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("impi-") || name.starts_with("datagram-")
    };
    let mut names: Vec<_> = fs::read_dir(&folder)
        .expect("the folder of golden vectors")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "hex") && !is_packets(path))
        .collect();
    names.sort();
    names.into_iter().map(load).collect()
}

fn load(path: PathBuf) -> Vector {
    let text = |path: &PathBuf| fs::read_to_string(path).unwrap_or_else(|e| panic!("{path:?}: {e}"));
    let mut vector = Vector {
        name: path.file_stem().expect("a name").to_string_lossy().into_owned(),
        octets: hex(&text(&path)),
        canonical: true,
        ..Vector::default()
    };
    for line in text(&path.with_extension("txt")).lines() {
        let words: Vec<&str> = line.split(' ').collect();
        fact(&mut vector, &words);
    }
    vector.canonical &= vector.error.is_none();
    vector
}

fn hex(text: &str) -> Vec<u8> {
    text.lines()
        .filter_map(|line| line.split('#').next())
        .flat_map(str::split_whitespace)
        .filter(|word| !word.ends_with(':'))
        .map(octet)
        .collect()
}

fn octet(word: &str) -> u8 {
    assert_eq!(word.len(), 2, "one octet, two digits: {word}");
    u8::from_str_radix(word, 16).expect("hexadecimal digits")
}

fn fact(vector: &mut Vector, words: &[&str]) {
    let number = |word: &str| -> usize { word.parse().expect("a number") };
    match words {
        ["encoding", "big"] => vector.encoding = Some(Encoding::Big),
        ["encoding", "little"] => vector.encoding = Some(Encoding::Little),
        ["primary", n] => vector.primary_len = Some(number(n)),
        ["secondary", n] => vector.secondary_len = Some(number(n)),
        ["noncanonical"] => vector.canonical = false,
        ["section", name, values @ ..] => vector.sections.push(Section {
            element: *Type::ALL.iter().find(|t| t.name() == *name).expect("a type name"),
            values: values.iter().map(|v| v.to_string()).collect(),
        }),
        ["stream", octets @ ..] => vector.stream = octets.iter().map(|o| octet(o)).collect(),
        ["error", "load", offset, kind] => {
            vector.error =
                Some(Expected { section: None, offset: number(offset) as u64, kind: kind.to_string() });
        }
        ["error", "section", k, offset, kind] => {
            vector.error = Some(Expected {
                section: Some(number(k)),
                offset: number(offset) as u64,
                kind: kind.to_string(),
            });
        }
        other => panic!("{}: unknown line {other:?}", vector.name),
    }
}
