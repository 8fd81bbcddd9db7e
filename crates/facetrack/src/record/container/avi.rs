// SPDX-License-Identifier: MPL-2.0
//! The pictures that an AVI file had before it was cut off, from its header.
//!
//! The header also counts empty chunks, which repeat a picture and are not frames. So its number is
//! not compared with the frames of a whole file.

use std::io::{self, Read, Seek};

use super::{Extent, File, MAX_METADATA, Movie, SECOND};

/// Place of the first chunk in a file of this type.
const FIRST_CHUNK: u64 = 12;

/// Size of the name and the size of a chunk.
const HEADER: usize = 8;

/// Places of numbers in the header of a stream: ticks per sample, ticks per second, samples.
const SCALE: usize = 20;
const RATE: usize = 24;
const LENGTH: usize = 32;

/// Reads the header of a file that was cut off; `None` without exactly one stream of video.
pub(super) fn movie(file: &mut File<'_, impl Read + Seek>) -> io::Result<Option<Movie>> {
    if !matches!(file.riff()?, Extent::Cut { .. }) {
        return Ok(None);
    }
    let Some(header) = file.at::<HEADER>(FIRST_CHUNK)? else {
        return Ok(None);
    };
    let start = FIRST_CHUNK + HEADER as u64;
    let end = start + u64::from(le32(&header, 4).unwrap_or(0));
    if end > file.found {
        return Ok(None);
    }
    let mut left = MAX_METADATA;
    let list = file.bytes(start, end, &mut left)?;
    Ok(list.and_then(|list| only_video(list.strip_prefix(b"hdrl")?)))
}

fn only_video(header: &[u8]) -> Option<Movie> {
    let lists = chunks(header).filter(|(name, _)| name == b"LIST");
    let streams = lists.filter_map(|(_, list)| chunks(list.strip_prefix(b"strl")?).next());
    let mut videos = streams.filter(|(name, it)| name == b"strh" && it.starts_with(b"vids"));
    let (_, video) = videos.next().filter(|_| videos.next().is_none())?;
    let number = |at| le32(video, at).filter(|number| *number > 0);
    Some(Movie {
        frames: Some(number(LENGTH)?.into()),
        period: Some(f64::from(number(SCALE)?) * SECOND as f64 / f64::from(number(RATE)?)),
        ..Movie::default()
    })
}

/// The chunks in `bytes`: their names and contents.
fn chunks(mut bytes: &[u8]) -> impl Iterator<Item = ([u8; 4], &[u8])> {
    std::iter::from_fn(move || {
        let name = *bytes.first_chunk()?;
        let end = HEADER.checked_add(le32(bytes, 4)? as usize)?;
        let content = bytes.get(HEADER..end)?;
        bytes = bytes.get(end.next_multiple_of(2)..).unwrap_or_default();
        Some((name, content))
    })
}

fn le32(bytes: &[u8], at: usize) -> Option<u32> {
    let number = bytes.get(at..)?.first_chunk();
    number.map(|it| u32::from_le_bytes(*it))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::super::movie::movie;
    use super::*;

    fn chunk(name: &[u8; 4], content: &[u8]) -> Vec<u8> {
        [&name[..], &(content.len() as u32).to_le_bytes(), content].concat()
    }

    fn stream(kind: &[u8; 4], [scale, rate, length]: [u32; 3]) -> Vec<u8> {
        let numbers = [0, 0, 0, 0, scale, rate, 0, length];
        let numbers = numbers.map(u32::to_le_bytes).concat();
        let header = chunk(b"strh", &[&kind[..], &numbers].concat());
        chunk(b"LIST", &[b"strl", &header[..]].concat())
    }

    fn of(streams: &[Vec<u8>], missing: usize) -> Option<Movie> {
        let main = chunk(b"avih", &[0; 55]);
        let streams = streams.concat();
        let header = chunk(b"LIST", &[b"hdrl", &main[..], &[0], &streams].concat());
        let frames = chunk(b"LIST", b"movi00dc\x02\0\0\0ab");
        let file = chunk(b"RIFF", &[b"AVI ", &header[..], &frames].concat());
        let left = &file[..file.len() - missing];
        movie(&mut Cursor::new(left)).expect("memory can be read")
    }

    #[test]
    fn a_file_that_was_cut_off_states_its_frames() {
        let (sound, video) = (stream(b"auds", [1; 3]), stream(b"vids", [1, 25, 100]));
        let want = Movie {
            frames: Some(100),
            period: Some(40e6),
            ..Movie::default()
        };
        let both = [sound.clone(), video.clone()];
        assert_eq!(of(&both, 9), Some(want));
        // Whole, within the header, several streams, none, and one that was not finished.
        assert_eq!(of(&both, 0), None);
        assert_eq!(of(&both, 40), None);
        assert_eq!(of(&[video.clone(), video], 9), None);
        assert_eq!(of(&[sound], 9), None);
        assert_eq!(of(&[stream(b"vids", [1, 25, 0])], 9), None);
    }
}
