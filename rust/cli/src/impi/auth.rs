//! Authentication methods that the environment enables (IMPI 5.2).

use std::env;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::net::IpAddr;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

use mpjdev_proto::impi::startup::{Auth, Key};
use rustix::fs::OFlags;
use thiserror::Error;

/// The variable that admits clients without a key. Any value enables it, also an empty one.
pub const AUTH_NONE: &str = "IMPI_AUTH_NONE";
/// The variable with the key.
pub const AUTH_KEY: &str = "IMPI_AUTH_KEY";
/// The variable with the file that holds the key. It wins over [`AUTH_KEY`].
pub const AUTH_KEY_FILE: &str = "IMPI_AUTH_KEY_FILE";

/// Maximum octets of a key file.
const FILE_MAX: u64 = 4096;
/// Permission bits of group and others.
const OTHERS: u32 = 0o077;

/// An unusable key. The text does not show the key.
#[derive(Debug, Error)]
pub enum AuthError {
    /// The text is no number, or the number does not fit 64 bits.
    #[error(
        "{from} holds no key: it must be a decimal number from -9223372036854775808 to 9223372036854775807, \
         or 0x and up to 16 hexadecimal digits"
    )]
    NoKey {
        /// The variable or the file.
        from: String,
    },
    /// The file cannot be read.
    #[error("{AUTH_KEY_FILE}: {file}: {source}")]
    File {
        /// The name of the file.
        file: String,
        /// The reason.
        source: io::Error,
    },
    /// The name belongs to a directory, a device or a pipe.
    #[error("{AUTH_KEY_FILE}: {file} is no regular file")]
    Special {
        /// The name of the file.
        file: String,
    },
    /// The file is empty.
    #[error("{AUTH_KEY_FILE}: {file} is empty")]
    Empty {
        /// The name of the file.
        file: String,
    },
    /// The file is longer than any key.
    #[error("{AUTH_KEY_FILE}: {file} has more than {FILE_MAX} octets, a key is one number")]
    Long {
        /// The name of the file.
        file: String,
    },
}

/// There is no key for an address that needs one.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "{host} can be reached from other machines, so a key is needed: put the same number into {AUTH_KEY} for \
     the server and for each client, or into a file that {AUTH_KEY_FILE} names"
)]
pub struct KeyNeeded {
    /// The address.
    pub host: IpAddr,
}

/// The methods that the environment of this process enables; `None` if no variable is set. `warn` receives
/// warnings about the key file.
///
/// # Errors
/// A key is unusable.
pub fn from_environment(warn: impl FnMut(&str)) -> Result<Option<Auth>, AuthError> {
    from_variables(|name| env::var_os(name), warn)
}

/// The methods that a program reachable at this address may use.
///
/// # Errors
/// The address needs a key, and there is none.
pub fn allowed(host: IpAddr, enabled: Option<Auth>) -> Result<Auth, KeyNeeded> {
    let no_key = Auth { none: true, key: None };
    match enabled {
        Some(auth) if auth.key.is_some() || is_loopback(host) => Ok(auth),
        None if is_loopback(host) => Ok(no_key),
        _ => Err(KeyNeeded { host }),
    }
}

/// Whether only this machine can reach the address.
#[must_use]
pub fn is_loopback(host: IpAddr) -> bool {
    host.to_canonical().is_loopback()
}

fn from_variables(
    variable: impl Fn(&str) -> Option<OsString>,
    warn: impl FnMut(&str),
) -> Result<Option<Auth>, AuthError> {
    let key = match (variable(AUTH_KEY_FILE), variable(AUTH_KEY)) {
        (Some(file), _) => Some(from_file(file, warn)?),
        (None, Some(text)) => {
            let key = text.to_str().and_then(parse);
            Some(key.ok_or_else(|| AuthError::NoKey { from: AUTH_KEY.to_owned() })?)
        }
        (None, None) => None,
    };
    let auth = Auth { none: variable(AUTH_NONE).is_some(), key };
    Ok(if auth.is_empty() { None } else { Some(auth) })
}

/// The key in a file. A file that group or others can open causes a warning only: jobs of other
/// implementations may share it.
fn from_file(path: OsString, mut warn: impl FnMut(&str)) -> Result<Key, AuthError> {
    let file = path.to_string_lossy().into_owned();
    let failed = |source| AuthError::File { file: file.clone(), source };
    // A pipe would block until another process writes to it.
    let flags = OFlags::NONBLOCK.bits() as i32;
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(&path).map_err(failed)?;
    let meta = opened.metadata().map_err(failed)?;
    let mode = meta.mode() & 0o7777;
    if !meta.is_file() {
        return Err(AuthError::Special { file });
    }
    if mode & OTHERS != 0 {
        warn(&format!(
            "warning: {AUTH_KEY_FILE}: {file} is open to others (mode {mode:04o}): chmod 600 {file}"
        ));
    }
    let mut octets = Vec::new();
    opened.take(FILE_MAX + 1).read_to_end(&mut octets).map_err(failed)?;
    if octets.len() as u64 > FILE_MAX {
        return Err(AuthError::Long { file });
    }
    let text = octets.trim_ascii();
    if text.is_empty() {
        return Err(AuthError::Empty { file });
    }
    str::from_utf8(text).ok().and_then(parse).ok_or(AuthError::NoKey { from: file })
}

/// A decimal number as strtoll(3) reads it, which is how LAM reads keys. Text that strtoll would leave
/// unread, cut off or turn into 0 is no key: it is a mistake. 0x is an extension.
fn parse(text: &str) -> Option<Key> {
    let text = text.trim_ascii();
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        return if is_number { u64::from_str_radix(digits, 16).ok().map(Key) } else { None };
    }
    text.parse::<i64>().ok().map(|key| Key(key as u64))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use super::*;

    fn key(text: &str) -> Option<u64> {
        parse(text).map(|key| key.0)
    }

    #[test]
    fn key_is_a_decimal_number_of_64_bits_with_a_sign() {
        assert_eq!(
            [key("0"), key("42"), key("+42"), key("-1")],
            [Some(0), Some(42), Some(42), Some(u64::MAX)]
        );
        assert_eq!([key(" 0042\n"), key("010")], [Some(42), Some(10)]);
        assert_eq!(
            [key("9223372036854775807"), key("-9223372036854775808")],
            [Some(u64::MAX / 2), Some(1 << 63)]
        );
        let none =
            ["", " ", "key", "42x", "4 2", "9223372036854775808", "-9223372036854775809", "--1", "1.0"];
        assert_eq!(none.map(key), [None; 9]);
    }

    #[test]
    fn hexadecimal_key_is_accepted() {
        assert_eq!(
            [key("0x2a"), key("0X2A\n"), key("0xffffffffffffffff")],
            [Some(42), Some(42), Some(u64::MAX)]
        );
        assert_eq!(["0x", "0x10000000000000000", "0xg", "0x-1", "0x+1", "-0x1", "2a"].map(key), [None; 7]);
    }

    #[test]
    fn key_file_precedes_the_key_variable() {
        let file = env::temp_dir().join(format!("mpjdev-key-{}", std::process::id()));
        write(&file, b"0x07\n", 0o600);
        let of = |set: &[(&str, &str)]| {
            let variable = |name: &str| set.iter().find(|(n, _)| *n == name).map(|(_, v)| v.into());
            let found = from_variables(variable, |why| panic!("{why}"));
            found.map(|auth| auth.map(|auth| (auth.none, auth.key.map(|key| key.0))))
        };
        let name = file.to_str().expect("UTF-8").to_owned();
        assert_eq!(of(&[]).expect("nothing"), None);
        assert_eq!(of(&[(AUTH_NONE, "")]).expect("sound"), Some((true, None)));
        assert_eq!(of(&[(AUTH_KEY, "5")]).expect("sound"), Some((false, Some(5))));
        assert_eq!(of(&[(AUTH_KEY, "5"), (AUTH_NONE, "0")]).expect("sound"), Some((true, Some(5))));
        assert_eq!(of(&[(AUTH_KEY_FILE, &name)]).expect("sound"), Some((false, Some(7))));
        assert_eq!(
            of(&[(AUTH_KEY_FILE, &name), (AUTH_KEY, "no key")]).expect("sound"),
            Some((false, Some(7)))
        );
        std::fs::remove_file(&file).expect("it is there");
        let texts = [of(&[(AUTH_KEY_FILE, &name), (AUTH_KEY, "5")]), of(&[(AUTH_KEY, "secret")])]
            .map(|error| error.expect_err("no key").to_string());
        assert!(texts[0].starts_with(&format!("IMPI_AUTH_KEY_FILE: {name}: No such file")), "{}", texts[0]);
        assert!(
            texts[1].starts_with("IMPI_AUTH_KEY holds no key: ") && !texts[1].contains("secret"),
            "{}",
            texts[1]
        );
    }

    fn write(file: &Path, octets: &[u8], mode: u32) {
        std::fs::write(file, octets).expect("a file");
        std::fs::set_permissions(file, Permissions::from_mode(mode)).expect("ours");
    }

    #[test]
    fn key_file_readable_by_others_warns_and_one_without_a_key_is_refused() {
        let file = env::temp_dir().join(format!("mpjdev-no-key-{}", std::process::id()));
        let name = file.to_str().expect("UTF-8");
        let silent = |why: &str| panic!("{why}");
        let why = || from_file(name.into(), silent).expect_err("no key").to_string();
        for mode in [0o644, 0o640, 0o604, 0o620, 0o602, 0o610, 0o4601] {
            write(&file, b"7", mode);
            let wanted = format!(
                "warning: IMPI_AUTH_KEY_FILE: {name} is open to others (mode {mode:04o}): chmod 600 {name}"
            );
            let mut warnings = Vec::new();
            let key = from_file(name.into(), |why| warnings.push(why.to_owned())).expect("a key");
            assert_eq!((key.0, warnings), (7, vec![wanted]));
        }
        for mode in [0o600, 0o400, 0o700] {
            write(&file, b"7", 0o600);
            std::fs::set_permissions(&file, Permissions::from_mode(mode)).expect("ours");
            assert!(from_file(name.into(), silent).is_ok_and(|key| key.0 == 7), "{mode:o}");
        }
        for empty in [&b""[..], b" \n\n"] {
            write(&file, empty, 0o600);
            assert_eq!(why(), format!("IMPI_AUTH_KEY_FILE: {name} is empty"));
        }
        let mut long = vec![b' '; 4096];
        long[4095] = b'7';
        write(&file, &long, 0o600);
        assert!(from_file(name.into(), silent).is_ok_and(|key| key.0 == 7), "4096 octets");
        long.push(b'\n');
        write(&file, &long, 0o600);
        let text = "has more than 4096 octets, a key is one number";
        assert_eq!(why(), format!("IMPI_AUTH_KEY_FILE: {name} {text}"));
        for wrong in [&b"s3cret"[..], b"\xff\xfe7", b"7\n8"] {
            write(&file, wrong, 0o600);
            assert!(why().starts_with(&format!("{name} holds no key: ")), "{}", why());
        }
        std::fs::remove_file(&file).expect("ours");
        let special = |path: &str| from_file(path.into(), silent).expect_err("no key").to_string();
        for path in ["/", "/dev/null"] {
            assert_eq!(special(path), format!("IMPI_AUTH_KEY_FILE: {path} is no regular file"));
        }
    }

    #[test]
    fn pipe_as_key_file_is_refused_without_blocking() {
        let (reader, _writer) = std::io::pipe().expect("a pipe");
        let path = format!("/proc/self/fd/{}", reader.as_raw_fd());
        let why = from_file(path.clone().into(), |why| panic!("{why}")).expect_err("no file").to_string();
        assert_eq!(why, format!("IMPI_AUTH_KEY_FILE: {path} is no regular file"));
    }

    #[test]
    fn only_loopback_needs_no_key() {
        let none = Some(Auth { none: true, key: None });
        let key = Some(Auth { none: false, key: Some(Key(1)) });
        for host in ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"] {
            let mask = |enabled| allowed(host.parse().expect("an address"), enabled).map(|auth| auth.mask());
            assert_eq!([mask(None), mask(none), mask(key)], [Ok(1), Ok(1), Ok(2)], "{host}");
        }
        for host in ["0.0.0.0", "::", "192.0.2.7", "::ffff:192.0.2.7"] {
            let of = |enabled| allowed(host.parse().expect("an address"), enabled).map(|auth| auth.mask());
            assert_eq!(of(key), Ok(2));
            for refused in [of(None), of(none)] {
                let text = refused.expect_err(host).to_string();
                assert!(text.contains("so a key is needed: put"), "{text}");
            }
        }
    }
}
