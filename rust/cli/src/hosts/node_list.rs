//! Node lists of Slurm, such as `n[01-03,7],login`.

use thiserror::Error;

use super::host_list::HOSTS_MAX;

/// The reason why a node list is not valid.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NodeListError {
    /// Brackets are not closed, nested, or closed without being open.
    #[error("the node list {text:?} has unmatched brackets")]
    Brackets {
        /// The list.
        text: String,
    },
    /// A part between brackets is no number and no range of numbers.
    #[error("the node list {text:?}: {part:?} is no number and no range such as 01-03")]
    Range {
        /// The list.
        text: String,
        /// The part.
        part: String,
    },
    /// The list is longer than a job can be.
    #[error("the node list {text:?} has more than {HOSTS_MAX} hosts")]
    Many {
        /// The list.
        text: String,
    },
}

/// The names of a node list, in its order. The digits of the first number of a range set the width.
///
/// # Errors
/// The text is no node list, or has more than [`HOSTS_MAX`] names.
pub fn expand(text: &str) -> Result<Vec<String>, NodeListError> {
    let mut names = Vec::new();
    for word in split_outside_brackets(text)? {
        let mut partial = vec![String::new()];
        let mut rest = word;
        while let Some((before, inside)) = rest.split_once('[') {
            let (inside, behind) = inside.split_once(']').ok_or_else(|| brackets(text))?;
            let numbers = numbers(text, inside)?;
            if partial.len().saturating_mul(numbers.len()) + names.len() > HOSTS_MAX {
                return Err(NodeListError::Many { text: text.to_owned() });
            }
            let each = |begin: &String| {
                let begin = format!("{begin}{before}");
                numbers.iter().map(move |number| format!("{begin}{number}")).collect::<Vec<_>>()
            };
            partial = partial.iter().flat_map(each).collect();
            rest = behind;
        }
        partial.iter_mut().for_each(|name| name.push_str(rest));
        names.extend(partial);
    }
    if names.len() > HOSTS_MAX {
        return Err(NodeListError::Many { text: text.to_owned() });
    }
    Ok(names)
}

fn brackets(text: &str) -> NodeListError {
    NodeListError::Brackets { text: text.to_owned() }
}

/// The words between the commas that are not in brackets.
fn split_outside_brackets(text: &str) -> Result<Vec<&str>, NodeListError> {
    let (mut words, mut begin, mut is_inside) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        match c {
            '[' if !is_inside => is_inside = true,
            ']' if is_inside => is_inside = false,
            '[' | ']' => return Err(brackets(text)),
            ',' if !is_inside => {
                words.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    if is_inside {
        return Err(brackets(text));
    }
    words.push(&text[begin..]);
    Ok(words.into_iter().map(str::trim).filter(|word| !word.is_empty()).collect())
}

/// The numbers of `01-03,7`, each with its leading zeros.
fn numbers(text: &str, inside: &str) -> Result<Vec<String>, NodeListError> {
    let mut all = Vec::new();
    for part in inside.split(',') {
        let invalid = || NodeListError::Range { text: text.to_owned(), part: part.to_owned() };
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |digits: &str| {
            let is_number =
                !digits.is_empty() && digits.len() <= 9 && digits.bytes().all(|c| c.is_ascii_digit());
            if is_number { digits.parse::<u32>().ok() } else { None }
        };
        let (from, to) = (number(first).ok_or_else(invalid)?, number(last).ok_or_else(invalid)?);
        if from > to {
            return Err(invalid());
        }
        if (to - from) as usize >= HOSTS_MAX || all.len() > HOSTS_MAX {
            return Err(NodeListError::Many { text: text.to_owned() });
        }
        let width = first.len();
        all.extend((from..=to).map(|number| format!("{number:0width$}")));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> String {
        expand(text).expect(text).join(" ")
    }

    #[test]
    fn ranges_expand_with_their_leading_zeros() {
        assert_eq!(names("n[01-03,7]"), "n01 n02 n03 n7");
        assert_eq!(names("n[8-11]"), "n8 n9 n10 n11");
        assert_eq!(names("a,b[1,3]-x,c"), "a b1-x b3-x c");
        assert_eq!(names("rack[1-2]n[08-09]"), "rack1n08 rack1n09 rack2n08 rack2n09");
        assert_eq!(names("gpu-node.example"), "gpu-node.example");
        assert_eq!(names(""), "");
    }

    #[test]
    fn malformed_node_lists_are_refused() {
        for text in ["n[1", "n1]", "n[[1]]", "n[1-2]]"] {
            assert!(matches!(expand(text), Err(NodeListError::Brackets { .. })), "{text}");
        }
        for text in ["n[]", "n[a]", "n[3-1]", "n[1-]", "n[-1]", "n[1--2]", "n[1,]", "n[9999999999]"] {
            assert!(matches!(expand(text), Err(NodeListError::Range { .. })), "{text}");
        }
        for text in ["n[0-999999999]", "n[0-999]m[0-999]", "n[1-4000],m[1-4000]"] {
            assert!(matches!(expand(text), Err(NodeListError::Many { .. })), "{text}");
        }
    }
}
