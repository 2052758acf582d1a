//! Errors of a C MPI, with the library's texts.

use std::fmt;

use thiserror::Error;

/// Kinds of errors that callers distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A message was longer than the memory of its receive.
    Truncated,
    /// Any other.
    Other,
}

/// An error of the library.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{function}: {text} (code {code})")]
pub struct MpiError {
    /// The function.
    pub function: &'static str,
    /// Its code, which only the library can interpret.
    pub code: i32,
    /// Its kind.
    pub class: Class,
    /// The library's text for the code (`MPI_Error_string`).
    pub text: String,
}

/// Reason why a library cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unusable {
    /// The system's loader refuses it, with this text.
    #[error("{0}")]
    Loader(String),
    /// It is another library.
    #[error("it is no MPI: it has no MPI_Get_library_version")]
    NoMpi,
    /// It does not report its version.
    #[error("MPI_Get_library_version gives code {code}")]
    Version {
        /// The code of the function.
        code: i32,
    },
    /// Its types and constants are unknown.
    #[error("it is an MPI that is not known here: {version:?}")]
    Family {
        /// The first line of its version text.
        version: String,
    },
    /// It has not all functions.
    #[error("{version:?} lacks something: {loader}")]
    Function {
        /// The first line of its version text.
        version: String,
        /// The text of the system's loader.
        loader: String,
    },
}

/// A library that was tried without success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// Its name or path.
    pub name: String,
    /// Why it is unusable.
    pub why: Unusable,
}

impl fmt::Display for Tried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The system's own texts begin with the name.
        let why = self.why.to_string();
        let why = why.strip_prefix(&self.name).and_then(|why| why.strip_prefix(": ")).unwrap_or(&why);
        write!(f, "{}: {why}", self.name)
    }
}

/// Error: no MPI could be opened.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct OpenError {
    /// The candidates tried, in this order.
    pub tried: Vec<Tried>,
    /// Whether the user had named the library.
    pub is_named: bool,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let advice = match self.is_named {
            true => {
                "MPJDEV_MPI_LIBRARY names it: that has to be the path of the launcher's own MPI, or a name \
                 that the system's loader knows, such as libmpi.so.40; without the variable the usual names \
                 are tried"
            }
            false => "MPJDEV_MPI_LIBRARY names another one, by its path or name",
        };
        f.write_str("no C MPI that can be used; tried")?;
        for (at, tried) in self.tried.iter().enumerate() {
            write!(f, "{} {tried}", if at == 0 { "" } else { ";" })?;
        }
        write!(f, " ({advice}; MPJDEV_TRANSPORT=local runs the program without, as the only rank)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_library_error_names_the_tried_ones_and_the_remedy() {
        let tried = |name: &str, why| Tried { name: name.into(), why };
        let loader = "libmpi.so.40: cannot open shared object file".to_owned();
        let missing = tried("libmpi.so.40", Unusable::Loader(loader));
        let other = tried("libm.so.6", Unusable::NoMpi);
        let error = OpenError { tried: vec![missing.clone(), other], is_named: false };
        assert_eq!(
            error.to_string(),
            "no C MPI that can be used; tried libmpi.so.40: cannot open shared object file; libm.so.6: it is \
             no MPI: it has no MPI_Get_library_version (MPJDEV_MPI_LIBRARY names another one, by its path or \
             name; MPJDEV_TRANSPORT=local runs the program without, as the only rank)"
        );
        let named = OpenError { tried: vec![missing], is_named: true }.to_string();
        assert!(named.contains("(MPJDEV_MPI_LIBRARY names it: that has to be the path of"), "{named}");
    }

    #[test]
    fn unusable_library_has_the_text_of_its_reason() {
        let version = || "Open MPI v9".to_owned();
        let texts = [
            (Unusable::Loader("no such file".to_owned()), "no such file"),
            (Unusable::NoMpi, "it is no MPI: it has no MPI_Get_library_version"),
            (Unusable::Version { code: 16 }, "MPI_Get_library_version gives code 16"),
            (Unusable::Family { version: version() }, "it is an MPI that is not known here: \"Open MPI v9\""),
            (
                Unusable::Function { version: version(), loader: "undefined symbol: MPI_Isend".to_owned() },
                "\"Open MPI v9\" lacks something: undefined symbol: MPI_Isend",
            ),
        ];
        for (unusable, text) in texts {
            assert_eq!(unusable.to_string(), text);
        }
    }
}
