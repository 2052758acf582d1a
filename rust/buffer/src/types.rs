//! Element types of a section and the Rust types that stand for them.

use crate::encoding::Encoding;

/// Type of the elements of a section; the discriminant is the type code on the wire (S).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Type {
    /// Java `byte`: one octet, two's complement.
    Byte = 0,
    /// Java `char`: 16 bits.
    Char = 1,
    /// Java `short`: 16 bits, two's complement.
    Short = 2,
    /// Java `boolean`: one octet, written as 0 or 1; any other octet reads as true.
    Boolean = 3,
    /// Java `int`: 32 bits, two's complement.
    Int = 4,
    /// Java `long`: 64 bits, two's complement.
    Long = 5,
    /// Java `float`: IEEE 754 bit pattern, 32 bits.
    Float = 6,
    /// Java `double`: IEEE 754 bit pattern, 64 bits.
    Double = 7,
    /// Java objects: the section is its header only, the data are in the secondary payload.
    Object = 8,
}

impl Type {
    /// All types in the order of their codes.
    pub const ALL: [Type; 9] = [
        Type::Byte,
        Type::Char,
        Type::Short,
        Type::Boolean,
        Type::Int,
        Type::Long,
        Type::Float,
        Type::Double,
        Type::Object,
    ];

    /// The type with this code; `None` for an unknown one.
    #[inline(always)]
    pub const fn from_code(code: u8) -> Option<Type> {
        if code < 9 { Some(Type::ALL[code as usize]) } else { None }
    }

    /// The code of this type on the wire.
    #[inline(always)]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Octets of one element in the primary payload; 0 for objects.
    #[inline(always)]
    pub const fn size(self) -> usize {
        // A load by code: a match would be a jump table in every call.
        const SIZES: [u8; 9] = [1, 2, 2, 1, 4, 8, 4, 8, 0];
        SIZES[self as usize] as usize
    }

    /// The name of this type in Java, `object` for objects.
    pub const fn name(self) -> &'static str {
        match self {
            Type::Byte => "byte",
            Type::Char => "char",
            Type::Short => "short",
            Type::Boolean => "boolean",
            Type::Int => "int",
            Type::Long => "long",
            Type::Float => "float",
            Type::Double => "double",
            Type::Object => "object",
        }
    }
}

impl std::fmt::Display for Type {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A Rust type whose values are elements of a primitive section.
///
/// `i8` stands for Java's byte, `u16` for char, `i16` short, `bool` boolean, `i32` int, `i64` long,
/// `f32` float, `f64` double.
pub trait Element: Copy + Default {
    /// The section type of these elements.
    const TYPE: Type;

    /// The octets of this value, in the lowest [`Type::size`] places of the result.
    fn to_octets(self, encoding: Encoding) -> [u8; 8];

    /// The value of the octets in the lowest [`Type::size`] places.
    fn from_octets(octets: [u8; 8], encoding: Encoding) -> Self;
}

macro_rules! element {
    ($rust:ty, $type:ident, $size:literal) => {
        impl Element for $rust {
            const TYPE: Type = Type::$type;

            #[inline(always)]
            fn to_octets(self, encoding: Encoding) -> [u8; 8] {
                let own = match encoding {
                    Encoding::Big => self.to_be_bytes(),
                    Encoding::Little => self.to_le_bytes(),
                };
                let mut octets = [0; 8];
                octets[..$size].copy_from_slice(&own);
                octets
            }

            #[inline(always)]
            fn from_octets(octets: [u8; 8], encoding: Encoding) -> Self {
                let mut own = [0; $size];
                own.copy_from_slice(&octets[..$size]);
                match encoding {
                    Encoding::Big => Self::from_be_bytes(own),
                    Encoding::Little => Self::from_le_bytes(own),
                }
            }
        }
    };
}

element!(i8, Byte, 1);
element!(u16, Char, 2);
element!(i16, Short, 2);
element!(i32, Int, 4);
element!(i64, Long, 8);
element!(f32, Float, 4);
element!(f64, Double, 8);

impl Element for bool {
    const TYPE: Type = Type::Boolean;

    #[inline(always)]
    fn to_octets(self, _: Encoding) -> [u8; 8] {
        [u8::from(self), 0, 0, 0, 0, 0, 0, 0]
    }

    #[inline(always)]
    fn from_octets(octets: [u8; 8], _: Encoding) -> Self {
        octets[0] != 0
    }
}
