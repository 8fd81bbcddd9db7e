// SPDX-License-Identifier: MPL-2.0
//! The pictures of the documentation are what the elements draw today.

use std::collections::BTreeSet;
use std::path::Path;

use gst::prelude::*;

use crate::common::player::open;
use crate::common::tool::{Finished, Tool};
use crate::common::{file, init};
use crate::docs::{self, Files, has_matplotlib};
use crate::pages;

const FOLDER: &str = "docs/pictures";

/// Maximum size of all pictures, bytes.
const MOST_BYTES: u64 = 400_000;

/// Maximum width of a picture on a page, px.
const MOST_WIDTH: u32 = 1280;

/// Minimum difference of a changed pixel, levels, and maximum share of such pixels caused by other
/// processors, codecs and scalers.
const OTHER: u8 = 40;
const MOST_OTHERS: f64 = 0.01;

/// Maximum shift of a curve's point, in points of the SVG.
const MOST_SHIFT: f64 = 2.0;

/// Width and height, and red, green and blue of each pixel.
type Picture = (u32, u32, Vec<u8>);

fn jpeg(path: &Path) -> Picture {
    init();
    let (pipeline, sink) = open(path, "jpegdec ! videoconvert ! video/x-raw,format=RGBx");
    let sample = sink.pull_sample().expect("a JPEG file");
    pipeline.set_state(gst::State::Null).expect("it stops");
    let caps = sample.caps().expect("caps");
    let info = gst_video::VideoInfo::from_caps(caps).expect("of a picture");
    let pixels = sample
        .buffer()
        .expect("a frame")
        .map_readable()
        .expect("mapped");
    (info.width(), info.height(), pixels.to_vec())
}

/// The share of pixels that are other ones.
fn others(a: &Picture, b: &Picture) -> f64 {
    assert_eq!((a.0, a.1), (b.0, b.1));
    let pixels = a.2.chunks_exact(4).zip(b.2.chunks_exact(4));
    let is_other = |(a, b): &(&[u8], &[u8])| {
        let differences = a.iter().zip(*b).map(|(a, b)| a.abs_diff(*b));
        differences.max() > Some(OTHER)
    };
    pixels.filter(is_other).count() as f64 / (a.2.len() / 4) as f64
}

/// Names of the pictures that there are.
fn committed() -> BTreeSet<String> {
    let files = std::fs::read_dir(file(FOLDER)).expect("pictures");
    files
        .map(|file| {
            file.expect("a file")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect()
}

#[test]
fn the_documentation_shows_all_pictures_and_they_are_small() {
    let shown: BTreeSet<String> = pages::guides()
        .flat_map(|page| pages::links(&page))
        .filter_map(|link| Some(link.split_once("pictures/")?.1.to_owned()))
        .collect();
    assert_eq!(shown, committed());
    let path = |name: &String| file(FOLDER).join(name);
    let bytes = shown
        .iter()
        .map(|name| path(name).metadata().expect("a file").len());
    assert!(bytes.sum::<u64>() < MOST_BYTES);
    for name in shown.iter().filter(|name| name.ends_with(".jpg")) {
        assert!(jpeg(&path(name)).0 <= MOST_WIDTH, "{name}");
    }
}

#[test]
fn pictures_are_what_is_drawn_today() {
    let files = Files::find().filter(|files| files.have("openseeface") && has_matplotlib());
    let (Some(files), Some(portrait)) = (files, docs::portrait().filter(|_| docs::has_ffmpeg()))
    else {
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let script = file("scripts/pictures.sh");
    let tool = Tool::new("sh")
        .arg(&script.to_string_lossy())
        .arg(&portrait.to_string_lossy())
        .arg(&folder.path().to_string_lossy());
    let Finished { success, text } = files.given_to(tool).run();
    assert!(success, "{text}");
    let drawn = |name: &str| folder.path().join(name);
    // The picture of a page needs a browser: `make test-view` draws it.
    for name in committed().into_iter().filter(|name| name != "view.jpg") {
        assert!(text.contains(&name), "{name} is not drawn any more");
        let was = file(FOLDER).join(&name);
        match name.ends_with(".svg") {
            true => assert_same_curves(&was, &drawn(&name)),
            false => {
                let others = others(&jpeg(&was), &jpeg(&drawn(&name)));
                assert!(
                    others < MOST_OTHERS,
                    "{name}: {others}. Run `make pictures`"
                );
            }
        }
    }
    let [a, b] = ["opencv-yunet.jpg", "opencv-haar.jpg"].map(|name| jpeg(&drawn(name)));
    assert!(
        others(&a, &b) > MOST_OTHERS,
        "another box is another picture"
    );
}

/// The same words, and numbers that are nearly the same; other versions of Matplotlib draw
/// otherwise.
fn assert_same_curves(was: &Path, is: &Path) {
    let [was, is] = [was, is].map(|path| std::fs::read_to_string(path).expect("a picture"));
    let version = |svg: &str| {
        let line = svg.lines().find(|line| line.contains("Matplotlib v"));
        line.expect("a version").to_owned()
    };
    if version(&was) != version(&is) {
        eprintln!(
            "SKIPPED: the curves were drawn by another {}",
            version(&was).trim()
        );
        return;
    }
    let tokens = |svg: &str| {
        let tokens = svg.split([' ', '\n', '"', ',', '(', ')']);
        tokens.map(str::to_owned).collect::<Vec<_>>()
    };
    let (was, is) = (tokens(&was), tokens(&is));
    assert_eq!(was.len(), is.len(), "run `make pictures`");
    for (was, is) in was.iter().zip(&is) {
        match (was.parse::<f64>(), is.parse::<f64>()) {
            (Ok(was), Ok(is)) => {
                assert!(
                    (was - is).abs() < MOST_SHIFT,
                    "{was} {is}: run `make pictures`"
                );
            }
            _ => assert_eq!(was, is, "run `make pictures`"),
        }
    }
}
