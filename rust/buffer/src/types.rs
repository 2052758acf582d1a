//! Element types of a section.

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
