// SPDX-License-Identifier: MPL-2.0
//! Checks that a file is as long as its container states.
//!
//! Demuxers play the rest of a file that was cut off, and end without an error. The sizes of the
//! outermost elements state the original length: RIFF (AVI), ISO media files (MP4, MOV), Matroska
//! and WebM state them; an MPEG transport stream consists of packets of one size, so that only an
//! end within a packet shows a cut. Only headers are read.

mod avi;
mod movie;

use std::io::{self, Read, Seek, SeekFrom};

use sha2::{Digest, Sha256};

pub use movie::{Edit, Movie, movie};

/// Maximum number of boxes that are read; a fragmented file has two for each fragment.
const MAX_BOXES: usize = 1 << 20;

/// Bytes of metadata that are read at most: the tables of two days of video have 50 MB.
const MAX_METADATA: u64 = 64 << 20;

/// The time scale of GStreamer: ns.
const SECOND: i128 = 1_000_000_000;

/// Excess of the size in a RIFF header that is accepted: some writers count the header itself.
const RIFF_HEADER: u64 = 8;

/// Boxes that an ISO media file begins with.
const FIRST_BOXES: [&[u8; 4]; 10] = [
    b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"pnot", b"styp", b"sidx", b"moof",
];

const EBML: u64 = 0x1A45_DFA3;
const SEGMENT: u64 = 0x1853_8067;

/// Packet sizes of transport streams, each with the place of the sync byte: broadcast, with
/// timestamps (M2TS), with error correction.
const TS_PACKETS: [(u64, u64); 3] = [(188, 0), (192, 4), (204, 0)];
const TS_SYNC: u8 = 0x47;

/// Number of packets whose sync byte is checked to recognise a transport stream.
const TS_PROBED: u64 = 4;

/// Number of parts of a file that its fingerprint depends on: at its beginning, at its end and, at
/// equal distances, between.
const FINGERPRINT_PARTS: u64 = 9;

/// Bytes of each of these parts.
const FINGERPRINT_PART: u64 = 64 << 10;

/// A short text that differs for different video files: the number of bytes and a hash of some parts.
/// Copies of a file have the same one.
///
/// # Errors
/// Returns an error if reading fails.
pub fn fingerprint(file: &mut (impl Read + Seek)) -> io::Result<String> {
    let length = file.seek(SeekFrom::End(0))?;
    let mut hash = Sha256::new();
    let last = length.saturating_sub(FINGERPRINT_PART);
    for part in 0..FINGERPRINT_PARTS {
        let start = last / (FINGERPRINT_PARTS - 1) * part;
        file.seek(SeekFrom::Start(start))?;
        let mut part = Vec::new();
        file.take(FINGERPRINT_PART).read_to_end(&mut part)?;
        hash.update(&part);
    }
    let digits = hash.finalize();
    let digits: String = digits[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Ok(format!("{length}-{digits}"))
}

/// Length of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Extent {
    /// The file is as long as its container states.
    Whole,
    /// The file is shorter.
    Cut {
        /// Bytes that the container says at least.
        promised: u64,
        /// Bytes that there are.
        found: u64,
    },
    /// The container does not say how long the file is, and its times are derived from the existing
    /// data.
    Open,
    /// The container is another one, or has no sizes.
    #[default]
    Unknown,
}

/// Reads the headers of `file`.
///
/// # Errors
/// Returns an error if reading fails.
pub fn extent(file: &mut (impl Read + Seek)) -> io::Result<Extent> {
    let mut file = File::new(file)?;
    let head: [u8; 12] = match file.at(0)? {
        Some(head) => head,
        None => return Ok(Extent::Unknown),
    };
    if head.starts_with(b"RIFF") && head.ends_with(b"AVI ") {
        return file.riff();
    }
    if FIRST_BOXES.iter().any(|name| head[4..8] == name[..]) {
        return file.boxes();
    }
    if head.starts_with(&[0x1A, 0x45, 0xDF, 0xA3]) {
        return file.matroska();
    }
    file.transport_stream()
}

struct File<'a, F> {
    file: &'a mut F,
    found: u64,
}

impl<'a, F: Read + Seek> File<'a, F> {
    fn new(file: &'a mut F) -> io::Result<Self> {
        let found = file.seek(SeekFrom::End(0))?;
        Ok(Self { file, found })
    }

    /// `N` bytes at `offset`; `None` past the end.
    fn at<const N: usize>(&mut self, offset: u64) -> io::Result<Option<[u8; N]>> {
        if offset.saturating_add(N as u64) > self.found {
            return Ok(None);
        }
        let mut bytes = [0; N];
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.read_exact(&mut bytes)?;
        Ok(Some(bytes))
    }

    fn ends_at(&self, promised: u64) -> Extent {
        if promised <= self.found {
            return Extent::Whole;
        }
        Extent::Cut {
            promised,
            found: self.found,
        }
    }

    fn riff(&mut self) -> io::Result<Extent> {
        let mut offset = 0;
        while let Some(chunk) = self.at::<8>(offset)? {
            // The size is in the second half of the eight bytes.
            let size = u64::from_le_bytes(chunk) >> 32;
            // Any data may follow the last chunk.
            if !chunk.starts_with(b"RIFF") {
                break;
            }
            // A writer that cannot seek back does not fill in the size.
            if size == 0 || size == u64::from(u32::MAX) {
                return Ok(Extent::Unknown);
            }
            let end = offset + 8 + size;
            if end > self.found + RIFF_HEADER {
                return Ok(self.ends_at(end));
            }
            offset = end.next_multiple_of(2);
        }
        Ok(Extent::Whole)
    }

    fn boxes(&mut self) -> io::Result<Extent> {
        let mut offset = 0;
        for _ in 0..MAX_BOXES {
            if offset == self.found {
                return Ok(Extent::Whole);
            }
            let Some(header) = self.at::<8>(offset)? else {
                return Ok(self.ends_at(offset + 8));
            };
            // The size is in the first half of the eight bytes.
            let size = match u64::from_be_bytes(header) >> 32 {
                // The element lasts to the end of the file.
                0 => return Ok(Extent::Whole),
                1 => match self.at::<8>(offset + 8)? {
                    Some(size) => u64::from_be_bytes(size),
                    None => return Ok(self.ends_at(offset + 16)),
                },
                size => size,
            };
            let end = offset.saturating_add(size);
            if size < 8 {
                return Ok(Extent::Unknown);
            }
            if end > self.found {
                return Ok(self.ends_at(end));
            }
            offset = end;
        }
        Ok(Extent::Unknown)
    }

    fn matroska(&mut self) -> io::Result<Extent> {
        let mut offset = 0;
        while let Some((id, size, content)) = self.element(offset)? {
            let Some(size) = size else {
                return Ok(Extent::Unknown);
            };
            let end = content.saturating_add(size);
            if id == SEGMENT || end > self.found {
                return Ok(self.ends_at(end));
            }
            if id != EBML && offset == 0 {
                return Ok(Extent::Unknown);
            }
            offset = end;
        }
        Ok(Extent::Unknown)
    }

    /// Id of the EBML element at `offset`, the size of its content, if that is known, and where the
    /// content begins.
    fn element(&mut self, offset: u64) -> io::Result<Option<(u64, Option<u64>, u64)>> {
        let Some((id, behind_id, _)) = self.number(offset)? else {
            return Ok(None);
        };
        Ok(self.number(behind_id)?.map(|(size, content, payload)| {
            let value = size & payload;
            (id, (value != payload).then_some(value), content)
        }))
    }

    /// The EBML number at `offset` with its length marker, the offset behind it, and the bits that
    /// are its value.
    fn number(&mut self, offset: u64) -> io::Result<Option<(u64, u64, u64)>> {
        let Some([first]) = self.at::<1>(offset)? else {
            return Ok(None);
        };
        let length = u64::from(first.leading_zeros()) + 1;
        if length > 8 {
            return Ok(None);
        }
        let mut number = u64::from(first);
        for i in 1..length {
            let Some([byte]) = self.at::<1>(offset + i)? else {
                return Ok(None);
            };
            number = number << 8 | u64::from(byte);
        }
        Ok(Some((number, offset + length, (1 << (7 * length)) - 1)))
    }

    fn transport_stream(&mut self) -> io::Result<Extent> {
        for (size, sync) in TS_PACKETS {
            let mut is_this = self.found >= TS_PROBED * size;
            for i in 0..TS_PROBED {
                is_this = is_this && self.at(i * size + sync)? == Some([TS_SYNC]);
            }
            if is_this {
                return Ok(if self.found.is_multiple_of(size) {
                    Extent::Open
                } else {
                    self.ends_at(self.found.next_multiple_of(size))
                });
            }
        }
        Ok(Extent::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn of(bytes: &[u8]) -> Extent {
        extent(&mut Cursor::new(bytes)).expect("memory")
    }

    fn cut(promised: u64, found: u64) -> Extent {
        Extent::Cut { promised, found }
    }

    /// Every shorter piece of `whole` is cut, but for those that are too short to be recognised.
    fn assert_cuts(whole: &[u8], from: usize) {
        assert_eq!(of(whole), Extent::Whole);
        for length in from..whole.len() {
            let found = of(&whole[..length]);
            assert!(matches!(found, Extent::Cut { .. }), "{length}: {found:?}");
        }
    }

    #[test]
    fn avi() {
        let mut file = b"RIFF\x18\0\0\0AVI LIST\x0c\0\0\0".to_vec();
        file.resize(32, b'x');
        assert_eq!(of(&file), Extent::Whole);
        assert_eq!(of(&file[..20]), cut(32, 20));
        // A second part, and something behind it.
        file.extend_from_slice(b"RIFF\x10\0\0\0AVIXabcdefghijklJUNKJUNK");
        assert_eq!(of(&file), Extent::Whole);
        assert_eq!(of(&file[..45]), cut(56, 45));
        // Not finished by its writer.
        assert_eq!(of(b"RIFF\0\0\0\0AVI LIST"), Extent::Unknown);
    }

    #[test]
    fn iso_media() {
        let mut file = b"\0\0\0\x0cftypisom\0\0\0\x08moov".to_vec();
        // With a size of 64 bits.
        file.extend_from_slice(b"\0\0\0\x01mdat\0\0\0\0\0\0\0\x14abcd");
        let boundaries = [12, 20];
        assert_eq!(of(&file), Extent::Whole);
        for length in 13..file.len() {
            let found = of(&file[..length]);
            let is_cut = matches!(found, Extent::Cut { .. });
            assert_eq!(is_cut, !boundaries.contains(&length), "{length}: {found:?}");
        }
        assert_eq!(of(&file[..30]), cut(36, 30));
        // A last box that goes to the end, and one that can't be.
        assert_eq!(of(b"\0\0\0\x0cftypisom\0\0\0\0mdatabc"), Extent::Whole);
        assert_eq!(of(b"\0\0\0\x0cftypisom\0\0\0\x02mdatabc"), Extent::Unknown);
    }

    #[test]
    fn matroska() {
        let mut file = vec![0x1A, 0x45, 0xDF, 0xA3, 0x84, 1, 2, 3, 4];
        file.extend_from_slice(&[0x18, 0x53, 0x80, 0x67, 0x01, 0, 0, 0, 0, 0, 0, 5]);
        file.extend_from_slice(b"abcde");
        assert_cuts(&file, 21);
        let unknown = [&file[..13], &[0xFF], b"abc"].concat();
        assert_eq!(of(&unknown), Extent::Unknown);
    }

    #[test]
    fn transport_streams() {
        for (size, sync) in TS_PACKETS.map(|(size, sync)| (size as usize, sync as usize)) {
            let mut packet = vec![0; size];
            packet[sync] = TS_SYNC;
            let file = packet.repeat(6);
            assert_eq!(of(&file), Extent::Open);
            let found = file.len() - 1;
            assert_eq!(of(&file[..found]), cut(6 * size as u64, found as u64));
        }
    }

    #[test]
    fn others_are_unknown() {
        for bytes in [&b""[..], b"OggS", &[0; 5000], &[0x47; 100]] {
            assert_eq!(of(bytes), Extent::Unknown);
        }
    }
}
