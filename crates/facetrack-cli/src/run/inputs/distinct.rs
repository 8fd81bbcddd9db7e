// SPDX-License-Identifier: MPL-2.0
//! Checks that no two videos have the same files, and that no file of a video is an input.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::{Inputs, Video, names};

/// Paths with the links in their folders resolved, each folder once.
#[derive(Default)]
pub(crate) struct Places(HashMap<PathBuf, PathBuf>);

impl Places {
    /// The path of a file.
    pub(crate) fn of(&mut self, path: &Path) -> PathBuf {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let Some((folder, name)) = path.parent().zip(path.file_name()) else {
            return path;
        };
        let resolved = self.0.entry(folder.to_owned());
        let resolved = resolved.or_insert_with_key(|it| it.canonicalize().unwrap_or(it.clone()));
        resolved.join(name)
    }
}

/// Leaves out videos that are named twice. Refuses videos whose files would replace an input or a
/// file of another video. `lists` are inputs, too.
pub(super) fn keep(inputs: &mut Inputs, lists: &[&Path]) {
    let mut places = Places::default();
    let mut named = HashSet::new();
    let Inputs { videos, notes } = inputs;
    videos.retain(|video| {
        let key = (places.of(&video.path), video.record.clone(), times(video));
        let is_new = named.insert(key);
        if !is_new {
            notes.push(format!("{} is named twice", video.path.display()));
        }
        is_new
    });
    let read = lists.iter().copied();
    let read = read.chain(videos.iter().map(|video| video.path.as_path()));
    let read: HashSet<_> = read.map(|path| places.of(path)).collect();
    let mut records: HashMap<PathBuf, Vec<usize>> = HashMap::new();
    for (index, video) in videos.iter_mut().enumerate() {
        if video.refusal.is_some() {
            continue;
        }
        let mut own = names::all(&video.record).into_iter();
        if let Some(input) = own.find(|path| read.contains(&places.of(path))) {
            let input = input.display();
            video.refusal = Some(format!(
                "its record or status file would replace the input {input}. Set --out, or list it with \
                 another id"
            ));
            continue;
        }
        records
            .entry(places.of(&video.record))
            .or_default()
            .push(index);
    }
    for same in records.into_values().filter(|same| same.len() > 1) {
        refuse(videos, &same);
    }
}

fn refuse(videos: &mut [Video], same: &[usize]) {
    for index in same {
        let other = same.iter().find(|other| *other != index);
        let other = other.map_or(Path::new(""), |other| &videos[*other].path);
        let reason = format!(
            "{} would be its record and that of {}. Rename one, or list them with different ids",
            videos[*index].record.display(),
            other.display()
        );
        videos[*index].refusal = Some(reason);
    }
}

/// Returns the start and the end of the part of a video, for comparison.
fn times(video: &Video) -> [Option<u64>; 2] {
    [video.segment.start, video.segment.stop].map(|time| time.map(f64::to_bits))
}
