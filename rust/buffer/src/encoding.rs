//! The encoding octet and the byte order it stands for: the only dispatch on endianness.

use byteorder::{BigEndian, ByteOrder, LittleEndian};

/// Byte order of the headers and the primitive data of one message (D48, D50).
///
/// It does not apply to the secondary payload (D47).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Encoding {
    /// Most significant octet first; encoding octet 0.
    Big = 0,
    /// Least significant octet first; encoding octet 1.
    Little = 1,
}

impl Encoding {
    /// The order of this machine, which a writer uses by default (D50: the reader makes right).
    pub const NATIVE: Encoding =
        if cfg!(target_endian = "little") { Encoding::Little } else { Encoding::Big };

    /// The encoding with this octet; `None` for an unknown one.
    #[inline(always)]
    pub const fn from_code(code: u8) -> Option<Encoding> {
        match code {
            0 => Some(Encoding::Big),
            1 => Some(Encoding::Little),
            _ => None,
        }
    }

    /// The encoding octet.
    #[inline(always)]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// `big` or `little`.
    pub const fn name(self) -> &'static str {
        match self {
            Encoding::Big => "big",
            Encoding::Little => "little",
        }
    }

    /// Reads four octets as an unsigned number.
    #[inline(always)]
    pub fn get_u32(self, octets: &[u8]) -> u32 {
        match self {
            Encoding::Big => BigEndian::read_u32(octets),
            Encoding::Little => LittleEndian::read_u32(octets),
        }
    }

    /// Writes an unsigned number into four octets.
    #[inline(always)]
    pub fn put_u32(self, octets: &mut [u8], value: u32) {
        match self {
            Encoding::Big => BigEndian::write_u32(octets, value),
            Encoding::Little => LittleEndian::write_u32(octets, value),
        }
    }
}
