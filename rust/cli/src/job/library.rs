//! The native library for all ranks of a job, unpacked once from our own jar.

use std::env::consts::ARCH;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::process::getpid;

/// The variable that names the library to the ranks: CRC-32 of its octets in eight hexadecimal digits, a
/// colon, and its path.
pub const LIBRARY: &str = "MPJDEV_LIBRARY";

/// More octets than any library has.
const LEN_MAX: u64 = 64 << 20;
/// Octets that are unpacked at a time.
const PIECE: usize = 64 << 10;

/// The library in sealed memory. It ends with this process.
#[derive(Debug)]
pub struct Library {
    file: OwnedFd,
    crc: u32,
}

impl Library {
    /// Unpacks the library for this machine from this jar.
    ///
    /// # Errors
    /// The jar has no library or a damaged one, or the system refuses.
    pub fn unpack(jar: &Path) -> io::Result<Library> {
        let mut archive = zip::ZipArchive::new(File::open(jar)?)?;
        let mut entry = archive.by_name(&format!("META-INF/native/linux-{ARCH}/libmpjdev.so"))?;
        if entry.size() > LEN_MAX {
            return Err(io::Error::other("the library is too large"));
        }
        let crc = entry.crc32();
        let file = memfd_create("libmpjdev.so", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        let mut to = BufWriter::with_capacity(PIECE, File::from(file));
        // Reads beyond the last octet, since zip compares the checksum at the end of the entry.
        io::copy(&mut entry.by_ref().take(LEN_MAX + 1), &mut to)?;
        let file = to.into_inner()?;
        fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
        Ok(Library { file: file.into(), crc })
    }

    /// The value of [`LIBRARY`]. Every process of this user can open the path.
    pub fn word(&self) -> OsString {
        format!("{:08x}:/proc/{}/fd/{}", self.crc, getpid(), self.file.as_raw_fd()).into()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::MetadataExt;

    use zip::write::SimpleFileOptions;

    use super::*;

    /// A jar with one file in it.
    fn jar(name: &str, octets: &[u8]) -> Vec<u8> {
        let mut writer = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
        writer.start_file(name, SimpleFileOptions::default()).unwrap();
        writer.write_all(octets).unwrap();
        writer.finish().unwrap().into_inner()
    }

    fn unpacked(jar: &[u8]) -> io::Result<Library> {
        let file = memfd_create("test.jar", MemfdFlags::CLOEXEC)?;
        File::from(file.try_clone()?).write_all(jar)?;
        Library::unpack(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd())))
    }

    fn own() -> String {
        format!("META-INF/native/linux-{ARCH}/libmpjdev.so")
    }

    #[test]
    fn library_word_names_a_sealed_file() {
        let octets: Vec<u8> = (0..300_000u32).map(|n| (n.wrapping_mul(n) >> 7) as u8).collect();
        let library = unpacked(&jar(&own(), &octets)).unwrap();
        let word = library.word().into_string().unwrap();
        let (crc, path) = word.split_once(':').unwrap();
        assert_eq!(u32::from_str_radix(crc, 16).unwrap(), library.crc);
        assert_eq!((crc.len(), std::fs::read(path).unwrap()), (8, octets));
        let mut file = File::options().write(true).open(path).unwrap();
        assert!(file.write_all(b"x").is_err() && file.set_len(0).is_err());
        // Another test may get a descriptor of the same number at once.
        let id = |data: std::fs::Metadata| (data.dev(), data.ino());
        let own = id(file.metadata().unwrap());
        assert_eq!(std::fs::metadata(path).ok().map(id), Some(own));
        drop(library);
        assert_ne!(std::fs::metadata(path).ok().map(id), Some(own));
    }

    #[test]
    fn jar_without_a_sound_library_is_an_error() {
        assert!(unpacked(&jar("META-INF/native/linux-sparc/libmpjdev.so", b"x")).is_err());
        assert!(unpacked(b"no jar").is_err());
        let mut damaged = jar(&own(), &[7; 9000]);
        let at = 30 + own().len();
        damaged[at] ^= 0xff;
        assert!(unpacked(&damaged).is_err());
    }
}
