// SPDX-License-Identifier: MPL-2.0
//! The pictures that an ISO media file (MP4, MOV) shows of its video, from its sample tables, its
//! edit list and its fragments; and of an AVI file that was cut off, from its header.
//!
//! A picture belongs to an edit if its own time does. Decoders also deliver the picture before it,
//! if the edit begins while it is shown, and shorten it.

use std::io::{self, Read, Seek};
use std::ops::RangeInclusive;

use super::{FIRST_BOXES, File, MAX_BOXES, MAX_METADATA, SECOND, avi};
use crate::record::rhythm::Rhythm;

/// Maximum number of samples of a track that are counted: two days of 25 frames per second.
const MAX_SAMPLES: u32 = 1 << 22;

/// Maximum number of edits of a track that are read. Our choice: editing programs write a few.
const MAX_EDITS: usize = 16;

/// Codecs with exactly one picture in each sample. Samples of others may hold no picture, as in
/// MPEG-4 part 2, or a hidden one, as in VP8.
const ONE_PICTURE: [&[u8; 4]; 29] = [
    b"avc1", b"avc3", b"hvc1", b"hev1", b"dvh1", b"dvhe", b"dva1", b"dvav", b"av01", b"vp09",
    b"jpeg", b"mjpg", b"png ", b"mjp2", b"apcn", b"apch", b"apcs", b"apco", b"ap4h", b"AVdn",
    b"AVdh", b"CFHD", b"FFV1", b"dvc ", b"dvcp", b"m1v ", b"m2v1", b"h263", b"s263",
];

/// Sample description whose codec is one of [`ONE_PICTURE_TYPES`].
const MPEG4: &[u8] = b"mp4v";

/// Types of the registration authority for MP4 that have one picture in each sample: MPEG-2,
/// MPEG-1, JPEG, PNG and JPEG 2000.
const ONE_PICTURE_TYPES: [RangeInclusive<u8>; 3] = [0x60..=0x65, 0x6A..=0x6A, 0x6C..=0x6E];

/// Size of the sample description of video without the boxes in it (ISO/IEC 14496-12).
const VISUAL_SAMPLE: usize = 86;

/// Tags of descriptors (ISO/IEC 14496-1): of a stream, and of its decoder, which begins with the
/// type.
const STREAM_TAG: u8 = 3;
const DECODER_TAG: u8 = 4;

/// Entries of an edit list whose media time is this are empty.
const EMPTY: i64 = -1;

/// Bits of `trun` and `tfhd` that announce fields (ISO/IEC 14496-12).
mod flags {
    pub(super) const DATA_OFFSET: u32 = 0x1;
    pub(super) const FIRST_FLAGS: u32 = 0x4;
    pub(super) const DURATION: u32 = 0x100;
    pub(super) const SIZE: u32 = 0x200;
    pub(super) const FLAGS: u32 = 0x400;
    pub(super) const COMPOSITION: u32 = 0x800;
    pub(super) const BASE_OFFSET: u32 = 0x1;
    pub(super) const DESCRIPTION: u32 = 0x2;
    pub(super) const DEFAULT_DURATION: u32 = 0x8;
}

/// The part of the only video track that a file shows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Movie {
    /// Number of pictures; `None` if the tables do not say.
    pub frames: Option<u64>,
    /// Usual time from picture to picture, ns.
    pub period: Option<f64>,
    /// Parts of the track, in the order of presentation; empty if the whole track is shown.
    pub edits: Vec<Edit>,
}

/// A part of a track.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// Time at which it is shown, ns.
    pub time: u64,
    /// Duration, ns.
    pub duration: u64,
    /// True if the edit starts within a picture that began before it.
    pub starts_between: bool,
}

/// Reads the metadata of `file`; `None` without exactly one track of video.
///
/// # Errors
/// Returns an error if reading fails.
pub fn movie(file: &mut (impl Read + Seek)) -> io::Result<Option<Movie>> {
    let mut file = File::new(file)?;
    let head: Option<[u8; 8]> = file.at(0)?;
    if head.is_some_and(|head| head.starts_with(b"RIFF")) {
        return avi::movie(&mut file);
    }
    if !head.is_some_and(|head| FIRST_BOXES.iter().any(|name| head[4..] == name[..])) {
        return Ok(None);
    }
    let (mut offset, mut movie, mut fragments) = (0, None, Fragments::default());
    let mut left = MAX_METADATA;
    for _ in 0..MAX_BOXES {
        let Some((name, content, end)) = file.header(offset)? else {
            break;
        };
        match &name {
            b"moov" => movie = file.bytes(content, end, &mut left)?,
            b"moof" => {
                let bytes = file.bytes(content, end, &mut left)?;
                let track = movie.as_deref().and_then(Track::only);
                fragments.add(bytes.as_deref(), track.as_ref());
            }
            _ => (),
        }
        offset = end;
    }
    fragments.are_whole &= offset == file.found;
    Ok(movie.and_then(|movie| Track::only(&movie)?.shown(&fragments)))
}

impl<F: Read + Seek> File<'_, F> {
    /// Name of the box at `offset`, and the offsets at which its content begins and the box ends;
    /// `None` if there is no whole box.
    fn header(&mut self, offset: u64) -> io::Result<Option<([u8; 4], u64, u64)>> {
        let Some(header) = self.at::<8>(offset)? else {
            return Ok(None);
        };
        let (size, name) = (
            be32(&header, 0),
            [header[4], header[5], header[6], header[7]],
        );
        let (content, size) = match size {
            Some(0) => (offset + 8, self.found - offset),
            Some(1) => match self.at::<8>(offset + 8)? {
                Some(size) => (offset + 16, u64::from_be_bytes(size)),
                None => return Ok(None),
            },
            size => (offset + 8, u64::from(size.unwrap_or(0))),
        };
        let end = offset.saturating_add(size);
        Ok((content <= end && end <= self.found).then_some((name, content, end)))
    }

    /// The bytes between two offsets, unless they are more than are `left`.
    pub(super) fn bytes(
        &mut self,
        start: u64,
        end: u64,
        left: &mut u64,
    ) -> io::Result<Option<Vec<u8>>> {
        let Some(rest) = left.checked_sub(end - start) else {
            return Ok(None);
        };
        *left = rest;
        let length = (end - start) as usize;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length)?;
        bytes.resize(length, 0);
        self.file.seek(io::SeekFrom::Start(start))?;
        self.file.read_exact(&mut bytes)?;
        Ok(Some(bytes))
    }
}

/// A track of video, as the boxes that describe it.
struct Track<'a> {
    id: u32,
    /// Ticks per second, of the track and of the movie.
    scale: i128,
    movie_scale: i128,
    edits: Option<&'a [u8]>,
    samples: &'a [u8],
    /// Duration of samples in fragments without a duration.
    default_duration: u32,
}

impl<'a> Track<'a> {
    /// The only track of video.
    fn only(movie: &'a [u8]) -> Option<Self> {
        let tracks = boxes(movie).filter(|(name, _)| *name == b"trak");
        let mut videos = tracks.filter(|(_, track)| is_video(track));
        let (_, track) = videos.next()?;
        videos.next().is_none().then(|| Self::new(movie, track))?
    }

    fn new(movie: &'a [u8], track: &'a [u8]) -> Option<Self> {
        let header = child(movie, b"mvhd")?;
        let media = child(track, b"mdia")?;
        let id = after_dates(child(track, b"tkhd")?)?;
        let scale = |header| {
            after_dates(header)
                .filter(|scale| *scale > 0)
                .map(i128::from)
        };
        let default_duration = child(movie, b"mvex").and_then(|extends| {
            let mut defaults = boxes(extends).filter(|(name, _)| *name == b"trex");
            defaults.find_map(|(_, it)| (be32(it, 4)? == id).then(|| be32(it, 12))?)
        });
        Some(Self {
            id,
            scale: scale(child(media, b"mdhd")?)?,
            movie_scale: scale(header)?,
            edits: child(track, b"edts").and_then(|edits| child(edits, b"elst")),
            samples: child(child(media, b"minf")?, b"stbl")?,
            default_duration: default_duration.unwrap_or(0),
        })
    }

    fn shown(&self, fragments: &Fragments) -> Option<Movie> {
        let first = self.sample_count()?;
        if fragments.frames == 0 && first > 0 {
            return self.edited(first);
        }
        // The edit list only shifts the times of fragments.
        let frames = u64::from(first) + fragments.frames;
        let is_known = fragments.are_whole && frames > 0 && self.has_one_picture_each();
        Some(Movie {
            frames: is_known.then_some(frames),
            period: self.period(&fragments.rhythm),
            ..Movie::default()
        })
    }

    /// Applies the edit list to the samples outside of fragments.
    fn edited(&self, count: u32) -> Option<Movie> {
        let (spans, durations) = (self.spans()?, child(self.samples, b"stts")?);
        let mut rhythm = Rhythm::default();
        let mut described = 0;
        for (count, duration) in runs(durations).filter(|(count, _)| *count > 0) {
            rhythm.add(f64::from(count) * f64::from(duration), count.into());
            described += u64::from(count);
        }
        (described >= count.into()).then_some(())?;
        let mut starts_between = vec![true; spans.len()];
        let mut frames = 0;
        for time in self.times(durations).take(count as usize) {
            frames += u64::from(spans.is_empty());
            for (span, starts_between) in spans.iter().zip(&mut starts_between) {
                frames += u64::from((span.start..span.end).contains(&time));
                *starts_between &= time != span.start;
            }
        }
        let edits = spans.iter().zip(starts_between);
        let edits = edits.map(|(span, starts_between)| Edit {
            time: ns(span.movie_start.into(), self.movie_scale),
            duration: ns((span.movie_end - span.movie_start).into(), self.movie_scale),
            starts_between,
        });
        Some(Movie {
            frames: self.has_one_picture_each().then_some(frames),
            period: self.period(&rhythm),
            edits: edits.collect(),
        })
    }

    /// The usual interval, ns.
    fn period(&self, rhythm: &Rhythm) -> Option<f64> {
        let ticks = rhythm.period(1)?;
        Some(ticks * SECOND as f64 / self.scale as f64)
    }

    fn sample_count(&self) -> Option<u32> {
        let sizes = child(self.samples, b"stsz").or_else(|| child(self.samples, b"stz2"))?;
        be32(sizes, 8).filter(|count| *count <= MAX_SAMPLES)
    }

    /// The times of samples of these durations, in ticks.
    fn times(&self, durations: &'a [u8]) -> impl Iterator<Item = i64> + 'a {
        let offsets = child(self.samples, b"ctts").map(values);
        let offsets = offsets.into_iter().flatten().chain(std::iter::repeat(0));
        let samples = values(durations).zip(offsets);
        samples.scan(0_i64, |decoded, (duration, offset)| {
            // Negative offsets are written in either version of the table.
            let time = *decoded + i64::from(offset as i32);
            *decoded += i64::from(duration);
            Some(time)
        })
    }

    /// Returns true if each sample is a picture. Readers leave out samples without content.
    fn has_one_picture_each(&self) -> bool {
        let description = child(self.samples, b"stsd").and_then(|entries| entries.get(8..));
        let sizes = child(self.samples, b"stsz").unwrap_or_default();
        let are_listed = be32(sizes, 4) == Some(0);
        let mut listed = sizes.get(12..).unwrap_or_default().chunks_exact(4);
        description.is_some_and(has_one_picture)
            && !(are_listed && listed.any(|size| size == [0; 4]))
    }

    /// Returns the parts that are shown; `None` if the list is not supported.
    fn spans(&self) -> Option<Vec<Span>> {
        let Some(list) = self.edits else {
            return Some(Vec::new());
        };
        let (is_long, count) = (*list.first()? == 1, be32(list, 4)? as usize);
        let size = if is_long { 20 } else { 12 };
        let entries = list.get(8..8 + count.min(MAX_EDITS + 1) * size)?;
        let (mut spans, mut time) = (Vec::new(), 0_u64);
        for entry in entries.chunks_exact(size) {
            let (duration, start, rate) = if is_long {
                (be64(entry, 0)?, be64(entry, 8)? as i64, be32(entry, 16)?)
            } else {
                (
                    be32(entry, 0)?.into(),
                    (be32(entry, 4)? as i32).into(),
                    be32(entry, 8)?,
                )
            };
            let end = time
                .checked_add(duration)
                .filter(|end| *end <= i64::MAX as u64)?;
            if start != EMPTY {
                // Some programs write 0 or 1 for the normal rate.
                let is_normal = rate <= 1 || rate == 1 << 16;
                let length = scaled(duration, self.scale, self.movie_scale)?;
                (is_normal && duration > 0 && start >= 0).then_some(())?;
                spans.push(Span {
                    start,
                    end: start.checked_add(length)?,
                    movie_start: time,
                    movie_end: end,
                });
            }
            time = end;
        }
        (count <= MAX_EDITS).then_some(spans)
    }
}

/// Ticks of a scale in ns.
fn ns(ticks: i128, scale: i128) -> u64 {
    u64::try_from(ticks * SECOND / scale).unwrap_or(u64::MAX)
}

/// `duration` in another scale, to the nearest tick.
fn scaled(duration: u64, to: i128, from: i128) -> Option<i64> {
    i64::try_from((i128::from(duration) * to + from / 2) / from).ok()
}

/// An edit in ticks of the track, and of the movie.
struct Span {
    start: i64,
    end: i64,
    movie_start: u64,
    movie_end: u64,
}

/// The samples in fragments.
struct Fragments {
    frames: u64,
    rhythm: Rhythm,
    /// True if all fragments were read.
    are_whole: bool,
}

impl Default for Fragments {
    fn default() -> Self {
        Self {
            frames: 0,
            rhythm: Rhythm::default(),
            are_whole: true,
        }
    }
}

impl Fragments {
    fn add(&mut self, fragment: Option<&[u8]>, track: Option<&Track<'_>>) {
        let added = fragment.zip(track).map(|(fragment, track)| {
            let parts = boxes(fragment).filter(|(name, _)| *name == b"traf");
            parts
                .map(|(_, part)| self.add_part(part, track))
                .all(|it| it.is_some())
        });
        self.are_whole &= added == Some(true);
    }

    fn add_part(&mut self, part: &[u8], track: &Track<'_>) -> Option<()> {
        let header = child(part, b"tfhd")?;
        if be32(header, 4)? != track.id {
            return Some(());
        }
        let flags = be32(header, 0)?;
        let skipped =
            8 + if flags & flags::BASE_OFFSET != 0 {
                8
            } else {
                0
            } + if flags & flags::DESCRIPTION != 0 {
                4
            } else {
                0
            };
        let default = match flags & flags::DEFAULT_DURATION {
            0 => track.default_duration,
            _ => be32(header, skipped)?,
        };
        for (_, run) in boxes(part).filter(|(name, _)| *name == b"trun") {
            self.add_run(run, default)?;
        }
        Some(())
    }

    fn add_run(&mut self, run: &[u8], default: u32) -> Option<()> {
        let (flags, count) = (be32(run, 0)?, be32(run, 4)?);
        let size = |bits: &[u32]| 4 * bits.iter().filter(|bit| flags & **bit != 0).count();
        let first = 8 + size(&[flags::DATA_OFFSET, flags::FIRST_FLAGS]);
        let fields = [
            flags::DURATION,
            flags::SIZE,
            flags::FLAGS,
            flags::COMPOSITION,
        ];
        self.frames += u64::from(count);
        if flags & flags::DURATION == 0 {
            self.rhythm
                .add(f64::from(default) * f64::from(count), count.into());
            return Some(());
        }
        let samples = run.get(first..)?.chunks_exact(size(&fields));
        for sample in samples.take(count as usize) {
            self.rhythm.add(be32(sample, 0)?.into(), 1);
        }
        Some(())
    }
}

fn is_video(track: &[u8]) -> bool {
    let handler = child(track, b"mdia").and_then(|media| child(media, b"hdlr"));
    handler.and_then(|handler| handler.get(8..12)) == Some(b"vide")
}

/// Returns true if samples of this description are one picture each.
fn has_one_picture(description: &[u8]) -> bool {
    match description.get(4..8) {
        Some(MPEG4) => object_type(description)
            .is_some_and(|it| ONE_PICTURE_TYPES.iter().any(|known| known.contains(&it))),
        Some(codec) => ONE_PICTURE.iter().any(|known| codec == *known),
        None => false,
    }
}

/// The type of the codec of a sample description `mp4v`.
fn object_type(description: &[u8]) -> Option<u8> {
    let descriptors = child(description.get(VISUAL_SAMPLE..)?, b"esds")?.get(4..)?;
    let stream = descriptor(descriptors, STREAM_TAG)?;
    // These are an id and flags. A flag would announce another field.
    (stream.get(2)? & 0xE0 == 0).then_some(())?;
    descriptor(stream.get(3..)?, DECODER_TAG)?.first().copied()
}

/// The content of the descriptor at the beginning of `bytes`, and what follows it.
fn descriptor(bytes: &[u8], tag: u8) -> Option<&[u8]> {
    // All bytes of the size except the last one have the highest bit.
    let size = bytes.iter().skip(1).position(|byte| byte & 0x80 == 0)?;
    bytes.get(size + 2..).filter(|_| bytes[0] == tag)
}

/// The boxes in `bytes`: their names and contents.
fn boxes(mut bytes: &[u8]) -> impl Iterator<Item = (&[u8; 4], &[u8])> {
    std::iter::from_fn(move || {
        let size = be32(bytes, 0)? as usize;
        let name = bytes.get(4..8)?.first_chunk()?;
        let content = bytes.get(8..size)?;
        bytes = &bytes[size..];
        Some((name, content))
    })
}

/// The content of the first box of that name.
fn child<'a>(bytes: &'a [u8], name: &[u8; 4]) -> Option<&'a [u8]> {
    boxes(bytes).find_map(|(other, content)| (other == name).then_some(content))
}

/// A table of runs: how often a value occurs, and the value.
fn runs(table: &[u8]) -> impl Iterator<Item = (u32, u32)> {
    let entries = table.get(8..).unwrap_or_default().chunks_exact(8);
    entries.filter_map(|entry| Some((be32(entry, 0)?, be32(entry, 4)?)))
}

/// The values of a table of runs.
fn values(table: &[u8]) -> impl Iterator<Item = u32> {
    runs(table).flat_map(|(count, value)| std::iter::repeat_n(value, count as usize))
}

/// The number after the dates of creation and modification, which is the time scale of a movie and
/// of a medium, and the id of a track.
fn after_dates(header: &[u8]) -> Option<u32> {
    be32(header, if *header.first()? == 0 { 12 } else { 20 })
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes
        .get(at..)?
        .first_chunk()
        .map(|it| u32::from_be_bytes(*it))
}

fn be64(bytes: &[u8], at: usize) -> Option<u64> {
    bytes
        .get(at..)?
        .first_chunk()
        .map(|it| u64::from_be_bytes(*it))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    const MPEG1: u8 = 0x6A;

    fn boxed(name: &[u8; 4], contents: &[&[u8]]) -> Vec<u8> {
        let content = contents.concat();
        let size = content.len() as u32 + 8;
        [&size.to_be_bytes(), &name[..], &content].concat()
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    /// A track of video with 40 ms a sample, at 1000 ticks a second, and its movie at 100.
    fn moov(count: u32, sizes: &[u32], offsets: &[u32], edits: &[u32], codec: &[u8; 4]) -> Vec<u8> {
        let stream = [0, 0, 0, 0, 3, 0x80, 0x80, 5, 0, 1, 0, 4, 0x80, 1, MPEG1];
        let esds = boxed(b"esds", &[&stream]);
        let samples = boxed(
            b"stbl",
            &[
                &boxed(b"stsd", &[&words(&[0, 1, 16]), codec, &[0; 78], &esds]),
                &boxed(b"stts", &[&words(&[0, 1, count, 40])]),
                &boxed(b"ctts", &[&words(offsets)]),
                &boxed(
                    b"stsz",
                    &[
                        &words(&[0, u32::from(sizes.is_empty()), count]),
                        &words(sizes),
                    ],
                ),
            ],
        );
        let media = boxed(
            b"mdia",
            &[
                &boxed(b"mdhd", &[&words(&[0, 0, 0, 1000, 0])]),
                &boxed(b"hdlr", &[&words(&[0, 0]), b"vide"]),
                &boxed(b"minf", &[&samples]),
            ],
        );
        let list = boxed(b"edts", &[&boxed(b"elst", &[&words(edits)])]);
        let list = if edits.is_empty() { Vec::new() } else { list };
        let header = boxed(b"tkhd", &[&words(&[0, 0, 0, 7])]);
        boxed(
            b"moov",
            &[
                &boxed(b"mvhd", &[&words(&[0, 0, 0, 100, 300])]),
                &boxed(b"trak", &[&header, &list, &media]),
                &boxed(b"mvex", &[&boxed(b"trex", &[&words(&[0, 7, 1, 50])])]),
            ],
        )
    }

    fn read(file: &[u8]) -> Option<Movie> {
        movie(&mut Cursor::new(file)).expect("memory can be read")
    }

    #[test]
    fn samples_are_counted_by_their_own_times() {
        const RATE: u32 = 1 << 16;
        const NONE: u32 = u32::MAX;
        let edit = |time: u64, duration: u64, starts_between| Edit {
            time: time * 10_000_000,
            duration: duration * 10_000_000,
            starts_between,
        };
        for (offsets, edits, frames, want) in [
            (&[0, 0][..], &[][..], 100, vec![]),
            (
                &[0, 0],
                &[0, 1, 300, 1000, RATE],
                75,
                vec![edit(0, 300, false)],
            ),
            (
                &[0, 0],
                &[0, 1, 100, 1010, RATE],
                25,
                vec![edit(0, 100, true)],
            ),
            // All are shown later, or one of them earlier.
            (
                &[0, 1, 100, 20],
                &[0, 1, 100, 1000, RATE],
                25,
                vec![edit(0, 100, true)],
            ),
            (
                &[0, 2, 50, 0, 1, -10_i32 as u32],
                &[0, 1, 10, 1990, 1],
                3,
                vec![edit(0, 10, false)],
            ),
            // After a second without a picture, and a part that is shown twice.
            (
                &[0, 0],
                &[0, 3, 100, NONE, RATE, 100, 10, 0, 50, 10, RATE],
                25 + 12,
                vec![edit(100, 100, true), edit(200, 50, true)],
            ),
        ] {
            let read = read(&moov(100, &[], offsets, edits, b"avc1")).expect("a movie");
            assert_eq!((read.frames, read.edits), (Some(frames), want), "{edits:?}");
            assert_eq!(read.period, Some(40e6));
        }
    }

    #[test]
    fn what_is_not_known_is_not_counted() {
        let frames = |file: &[u8]| read(file).and_then(|movie| movie.frames);
        let none: &[u32] = &[0, 0];
        for edits in [
            // At another speed, for no time, from nowhere, and more edits than there are.
            &[0, 1, 100, 0, 1 << 17][..],
            &[0, 1, 0, 0, 1],
            &[0, 1, 100, -2_i32 as u32, 1],
            &[0, 2, 100, 0, 1],
        ] {
            assert_eq!(
                frames(&moov(100, &[], none, edits, b"avc1")),
                None,
                "{edits:?}"
            );
        }
        let mut mpeg = moov(100, &[], none, &[], b"mp4v");
        assert_eq!(frames(&mpeg), Some(100));
        let object_type = mpeg.iter().position(|byte| *byte == MPEG1);
        mpeg[object_type.expect("it is there")] = 0x20;
        assert_eq!(frames(&mpeg), None);
        assert_eq!(frames(&moov(100, &[], none, &[], b"vp08")), None);
        assert_eq!(frames(&moov(u32::MAX, &[], none, &[], b"avc1")), None);
        assert_eq!(frames(&moov(2, &[5, 0], none, &[], b"avc1")), None);
        assert_eq!(frames(&moov(2, &[5, 5], none, &[], b"avc1")), Some(2));
        let whole = moov(100, &[], none, &[0, 1, 100, 10, 1], b"avc1");
        for length in 0..whole.len() {
            assert_eq!(frames(&whole[..length]), None);
        }
    }

    #[test]
    fn fragments_are_counted() {
        let fragment = |track, flags, fields: &[u32]| {
            let header = boxed(b"tfhd", &[&words(&[0, track])]);
            let run = boxed(b"trun", &[&words(&[flags, 3]), &words(fields)]);
            boxed(b"moof", &[&boxed(b"traf", &[&header, &run])])
        };
        let edits = [0, 1, 100, 10, 1];
        let file = [
            moov(0, &[], &[0, 0], &edits, b"avc1"),
            fragment(7, 0x1, &[0]),
            fragment(8, 0, &[]),
            fragment(7, 0x305, &[0, 0, 50, 9, 50, 9, 50, 9]),
        ]
        .concat();
        let read = read(&file).expect("a movie");
        let want = Movie {
            frames: Some(6),
            period: Some(50e6),
            ..Movie::default()
        };
        assert_eq!(read, want);
        let cut = movie(&mut Cursor::new(&file[..file.len() - 1]));
        assert_eq!(
            cut.expect("it is read").and_then(|movie| movie.frames),
            None
        );
    }
}
