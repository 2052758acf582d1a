//! Sections of golden vectors, read and written element by element.

use mpjdev_buffer::{BufferError, Element, ReadBuffer, Type, WriteBuffer};

use crate::vectors::Section;

/// Reads the next section and compares it; a difference panics.
pub(crate) fn read(buffer: &mut ReadBuffer, section: &Section) -> Result<(), BufferError> {
    let header = buffer.peek()?.expect("one more section");
    assert_eq!((header.element, header.count), (section.element, section.values.len()));
    match section.element {
        Type::Byte => compare(buffer, section, parse::<i8>),
        Type::Char => compare(buffer, section, parse::<u16>),
        Type::Short => compare(buffer, section, parse::<i16>),
        Type::Boolean => compare(buffer, section, |v| v == "1"),
        Type::Int => compare(buffer, section, parse::<i32>),
        Type::Long => compare(buffer, section, parse::<i64>),
        Type::Float => compare(buffer, section, |v| f32::from_bits(bits(v) as u32)),
        Type::Double => compare(buffer, section, |v| f64::from_bits(bits(v))),
        Type::Object => {
            buffer.stage(Type::Object, section.values.len())?;
            buffer.commit();
            Ok(())
        }
    }
}

fn compare<T: Element>(
    buffer: &mut ReadBuffer,
    section: &Section,
    value: impl Fn(&str) -> T,
) -> Result<(), BufferError> {
    let mut found = vec![T::default(); section.values.len()];
    buffer.read(&mut found)?;
    for (k, (found, wanted)) in found.iter().zip(&section.values).enumerate() {
        // By bit pattern: a NaN equals nothing, and the zeros equal each other.
        let order = mpjdev_buffer::Encoding::Big;
        assert_eq!(found.to_octets(order), value(wanted).to_octets(order), "element {k}, {wanted}");
    }
    Ok(())
}

/// Writes a section as it is described.
pub(crate) fn write(buffer: &mut WriteBuffer, section: &Section) {
    match section.element {
        Type::Byte => put(buffer, section, parse::<i8>),
        Type::Char => put(buffer, section, parse::<u16>),
        Type::Short => put(buffer, section, parse::<i16>),
        Type::Boolean => put(buffer, section, |v| v == "1"),
        Type::Int => put(buffer, section, parse::<i32>),
        Type::Long => put(buffer, section, parse::<i64>),
        Type::Float => put(buffer, section, |v| f32::from_bits(bits(v) as u32)),
        Type::Double => put(buffer, section, |v| f64::from_bits(bits(v))),
        Type::Object => {
            buffer.stage(Type::Object, section.values.len()).expect("it fits");
            buffer.commit();
        }
    }
}

fn put<T: Element>(buffer: &mut WriteBuffer, section: &Section, value: impl Fn(&str) -> T) {
    let values: Vec<T> = section.values.iter().map(|v| value(v)).collect();
    buffer.write(&values).expect("it fits");
}

fn parse<T: std::str::FromStr>(word: &str) -> T {
    word.parse().unwrap_or_else(|_| panic!("{word} is no value of this type"))
}

fn bits(word: &str) -> u64 {
    let digits = word.strip_prefix("0x").expect("a bit pattern");
    u64::from_str_radix(digits, 16).expect("hexadecimal digits")
}
