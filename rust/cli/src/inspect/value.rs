//! One element of a section, as text and as JSON.

use std::fmt;

use mpjdev_buffer::{Element, Encoding, Type};
use serde::{Serialize, Serializer};

/// A primitive element. Bytes, chars, shorts and ints are shown as the numbers they are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// byte, char, short, int or long.
    Integer(i64),
    /// Any octet but 0 is true.
    Boolean(bool),
    /// float.
    Float(f32),
    /// double.
    Double(f64),
}

impl Value {
    /// The value of the octets of one element.
    pub(crate) fn decode(octets: &[u8], element: Type, encoding: Encoding) -> Value {
        let mut eight = [0; 8];
        eight[..octets.len()].copy_from_slice(octets);
        fn number<T: Element + Into<i64>>(octets: [u8; 8], encoding: Encoding) -> Value {
            Value::Integer(T::from_octets(octets, encoding).into())
        }
        match element {
            Type::Byte => number::<i8>(eight, encoding),
            Type::Char => number::<u16>(eight, encoding),
            Type::Short => number::<i16>(eight, encoding),
            Type::Int => number::<i32>(eight, encoding),
            Type::Long => number::<i64>(eight, encoding),
            Type::Boolean => Value::Boolean(bool::from_octets(eight, encoding)),
            Type::Float => Value::Float(f32::from_octets(eight, encoding)),
            Type::Double => Value::Double(f64::from_octets(eight, encoding)),
            Type::Object => unreachable!("objects have no octets in the primary payload"),
        }
    }
}

/// Java's name of a number that is not finite.
fn non_finite(value: f64) -> &'static str {
    if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}

/// Text: numbers; a NaN other than the usual one has its bit pattern.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Value::Integer(v) => write!(f, "{v}"),
            Value::Boolean(v) => write!(f, "{v}"),
            Value::Float(v) if v.is_nan() && v.to_bits() != f32::NAN.to_bits() => {
                write!(f, "NaN({:#010x})", v.to_bits())
            }
            Value::Double(v) if v.is_nan() && v.to_bits() != f64::NAN.to_bits() => {
                write!(f, "NaN({:#018x})", v.to_bits())
            }
            Value::Float(v) if v.is_finite() => write!(f, "{v:?}"),
            Value::Double(v) if v.is_finite() => write!(f, "{v:?}"),
            Value::Float(v) => f.write_str(non_finite(f64::from(v))),
            Value::Double(v) => f.write_str(non_finite(v)),
        }
    }
}

/// JSON has no numbers that are not finite, so these are strings.
impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Value::Integer(v) => serializer.serialize_i64(v),
            Value::Boolean(v) => serializer.serialize_bool(v),
            Value::Float(v) if v.is_finite() => serializer.serialize_f32(v),
            Value::Double(v) if v.is_finite() => serializer.serialize_f64(v),
            Value::Float(v) => serializer.serialize_str(non_finite(f64::from(v))),
            Value::Double(v) => serializer.serialize_str(non_finite(v)),
        }
    }
}
