// SPDX-License-Identifier: MPL-2.0
//! Finds MP4 and MOV files whose edit list begins after their first frame, as cuts without encoding
//! write them. Firefox shows the frames before it, so pictures would have the numbers of others.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Maximum size of a movie box that is read. Our choice: a day of video has a smaller one.
const MAX_SIZE: u64 = 1 << 28;

/// Boxes with a length of 32 or 64 bits before their content (ISO/IEC 14496-12, 4.2).
const HEADER: usize = 8;
const LONG_HEADER: usize = 16;

/// Returns true if a file has frames before the first one that is shown.
pub(crate) fn hide_first_frame(video: &Path) -> bool {
    let movie = File::open(video).and_then(movie).ok().flatten();
    movie.is_some_and(|movie| boxes(&movie, b"trak").any(|track| hides(track).unwrap_or(false)))
}

/// The content of the movie box.
fn movie(mut file: File) -> io::Result<Option<Vec<u8>>> {
    let mut header = [0; LONG_HEADER];
    loop {
        file.read_exact(&mut header[..HEADER])?;
        let mut size = u64::from(number(&header, 0).unwrap_or(0));
        let mut content = HEADER as u64;
        if size == 1 {
            file.read_exact(&mut header[HEADER..])?;
            size = header[HEADER..]
                .iter()
                .fold(0, |size, byte| size << 8 | u64::from(*byte));
            content = LONG_HEADER as u64;
        }
        let Some(left) = size.checked_sub(content) else {
            return Ok(None);
        };
        if header.get(4..HEADER) == Some(b"moov") {
            let mut movie = Vec::new();
            file.take(left.min(MAX_SIZE)).read_to_end(&mut movie)?;
            return Ok(Some(movie));
        }
        // Only forwards: a damaged file must not lead back to a box that was read.
        let Ok(left) = i64::try_from(left) else {
            return Ok(None);
        };
        file.seek(SeekFrom::Current(left))?;
    }
}

/// The contents of the boxes of a kind in the content of another one.
fn boxes<'a>(mut parent: &'a [u8], kind: &[u8; 4]) -> impl Iterator<Item = &'a [u8]> {
    std::iter::from_fn(move || {
        loop {
            let size = number(parent, 0)? as usize;
            let found = parent.get(..size)?;
            parent = &parent[size..];
            if found.get(4..HEADER)? == kind {
                return Some(&found[HEADER..]);
            }
        }
    })
}

/// The content of the box at a path.
fn inner<'a>(parent: &'a [u8], path: &[&[u8; 4]]) -> Option<&'a [u8]> {
    path.iter()
        .try_fold(parent, |parent, kind| boxes(parent, kind).next())
}

fn number(content: &[u8], at: usize) -> Option<u32> {
    let bytes = content.get(at..at + 4)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

/// True if the first edit of a video track with media begins after its first frame.
fn hides(track: &[u8]) -> Option<bool> {
    if inner(track, &[b"mdia", b"hdlr"])?.get(8..12)? != b"vide" {
        return None;
    }
    let list = inner(track, &[b"edts", b"elst"])?;
    let is_long = *list.first()? == 1;
    let begin = |edit: usize| match is_long {
        true => number(list, 8 + 20 * edit + 12),
        false => number(list, 8 + 12 * edit + 4),
    };
    // An edit without media, at −1, is a pause.
    let begin =
        (0..number(list, 4)? as usize).find_map(|edit| begin(edit).filter(|it| *it != u32::MAX))?;
    // Offset of the first frame; without a table, it is 0.
    let offsets = inner(track, &[b"mdia", b"minf", b"stbl", b"ctts"]);
    let first = offsets.and_then(|offsets| number(offsets, 12)).unwrap_or(0);
    Some(begin.cast_signed() > first.cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boxed(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
        let size = (HEADER + content.len()) as u32;
        [&size.to_be_bytes(), &kind[..], content].concat()
    }

    fn table(numbers: &[i32]) -> Vec<u8> {
        numbers
            .iter()
            .flat_map(|number| number.to_be_bytes())
            .collect()
    }

    /// A file with the begins of its edits, and the offset of its first frame.
    fn file(handler: &[u8; 4], begins: &[i32], first: i32) -> Vec<u8> {
        let edits = begins.iter().flat_map(|begin| [100, *begin, 1 << 16]);
        let edits: Vec<i32> = [0, begins.len() as i32].into_iter().chain(edits).collect();
        let edits = boxed(b"edts", &boxed(b"elst", &table(&edits)));
        let offsets = boxed(b"stbl", &boxed(b"ctts", &table(&[0, 1, 1, first])));
        let kind = boxed(b"hdlr", &[&[0; 8], &handler[..]].concat());
        let media = boxed(b"mdia", &[kind, boxed(b"minf", &offsets)].concat());
        let track = boxed(b"trak", &[edits, media].concat());
        [
            boxed(b"ftyp", b"isom"),
            boxed(b"mdat", &[0; 99]),
            boxed(b"moov", &track),
        ]
        .concat()
    }

    #[test]
    fn an_edit_that_begins_after_the_first_frame_hides_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clip.mp4");
        for (content, want) in [
            (file(b"vide", &[1024], 1024), false),
            (file(b"vide", &[1025], 1024), true),
            (file(b"vide", &[-1, 6000], 1024), true),
            (file(b"vide", &[-1, 1024], 1024), false),
            (file(b"soun", &[6000], 0), false),
            (file(b"vide", &[6000], 0)[..200].to_vec(), false),
            (b"no video".to_vec(), false),
            // The second box ends where the first one begins.
            (
                [
                    &boxed(b"free", b"")[..],
                    b"\0\0\0\x01free",
                    &(-8_i64).to_be_bytes(),
                ]
                .concat(),
                false,
            ),
            (Vec::new(), false),
        ] {
            std::fs::write(&path, &content).unwrap();
            assert_eq!(hide_first_frame(&path), want, "{content:?}");
        }
    }
}
