// SPDX-License-Identifier: MPL-2.0
//! Records become tables and curves.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::tool::Finished;
use crate::docs::{self, Files, has_matplotlib};

const SCRIPT: &str = "examples/plot_blendshapes.py";

/// Two faces. One is not in all frames, and is measured only once, in its fifth frame.
const LINES: &str = r#"{"metadata":{}}
{"frame":1,"tracked_objects":[{"id":"obj_1","blendshapes":{"_neutral":1,"jawOpen":0.5,"mouthPucker":0.1}}],"pts":0,"status":"tracked"}
{"frame":2,"tracked_objects":[{"id":"obj_1","blendshapes":{"_neutral":1,"jawOpen":0.7,"mouthPucker":0.2}},{"id":"obj_2","blendshapes":null}],"pts":40000000,"status":"tracked"}
{"frame":3,"tracked_objects":[],"pts":80000000,"status":"no-face"}
{"frame":4,"tracked_objects":[{"id":"obj_2","blendshapes":{"jawOpen":0.25}}],"pts":120000000,"status":"tracked"}
{"frame":5,"tracked_objects":[{"id":"obj_1","blendshapes":{"_neutral":1,"jawOpen":0.9,"mouthPucker":0.3}},{"id":"obj_2","blendshapes":{"jawOpen":0.5}}],"pts":160000000,"status":"tracked"}
{"frame":6,"tracked_objects":[{"id":"obj_2","blendsh"#;

const TABLE: &str = "frame,time,id,jawOpen,mouthPucker\r
1,0.0,obj_1,0.5,0.1\r
2,0.04,obj_1,0.7,0.2\r
2,0.04,obj_2,,\r
3,0.08,,,\r
4,0.12,obj_2,0.25,\r
5,0.16,obj_1,0.9,0.3\r
5,0.16,obj_2,0.5,\r
";

fn plot(arguments: &[&str]) -> Finished {
    let tool = arguments
        .iter()
        .fold(docs::script(SCRIPT), |tool, argument| tool.arg(argument));
    tool.run()
}

/// A folder with a record, and the paths of files in it.
struct Folder(tempfile::TempDir);

impl Folder {
    fn with(record: &str) -> Self {
        let folder = Self(tempfile::tempdir().expect("a temporary folder"));
        std::fs::write(folder.at("clip.jsonl"), record).expect("it is written");
        folder
    }

    fn at(&self, name: &str) -> String {
        self.0.path().join(name).to_string_lossy().into_owned()
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.at(name)).expect("the file")
    }
}

/// The SVG's curves: those lines that are cut to a diagram.
fn curves(svg: &str) -> Vec<&str> {
    let paths = svg.split("<path d=\"").skip(1);
    paths
        .filter_map(|path| path.split('>').next()?.split_once('"'))
        .filter(|(_, style)| style.contains("clip-path") && style.contains("stroke-width: 1.5"))
        .map(|(path, _)| path)
        .collect()
}

#[test]
fn gaps_stay_gaps() {
    if !has_matplotlib() {
        return;
    }
    let folder = Folder::with(LINES);
    let (table, svg) = (folder.at("clip.csv"), folder.at("clip.svg"));
    let Finished { success, text } = plot(&[&folder.at("clip.jsonl"), &table, &svg]);
    assert!(success, "{text}");
    assert_eq!(folder.text("clip.csv"), TABLE);
    let svg = folder.text("clip.svg");
    for text in [
        "<!-- obj_1 -->",
        "<!-- obj_2 -->",
        "<!-- jawOpen -->",
        "<!-- time, s -->",
    ] {
        assert!(svg.contains(text), "{text}");
    }
    assert!(!svg.contains("_neutral"));
    let curves = curves(&svg);
    // Of the first face each of two channels joins frames 1 and 2, and has a point of its own in
    // frame 5; of the second one channel joins frames 4 and 5.
    let steps = |step: &'static str| curves.iter().map(move |curve| curve.matches(step).count());
    assert_eq!(steps("M").collect::<Vec<_>>(), [2, 2, 1], "{curves:?}");
    assert_eq!(steps("L").collect::<Vec<_>>(), [1, 1, 1], "{curves:?}");

    // Only the chosen channels, in the given order, as pixels.
    let png = folder.at("clip.png");
    let chosen = [
        &*folder.at("clip.jsonl"),
        &table,
        &png,
        "--channels",
        "mouthPucker",
    ];
    let Finished { success, text } = plot(&chosen);
    assert!(success, "{text}");
    assert!(
        folder
            .text("clip.csv")
            .starts_with("frame,time,id,mouthPucker\r\n")
    );
    assert_eq!(size_of_png(&png), (800, 300), "one face has it");
}

#[test]
fn faces_come_in_the_order_of_their_numbers() {
    if !has_matplotlib() {
        return;
    }
    let faces =
        [10, 9, 2].map(|id| format!(r#"{{"id":"obj_{id}","blendshapes":{{"jawOpen":0.5}}}}"#));
    let faces = faces.join(",");
    let folder = Folder::with(&format!(
        r#"{{"metadata":{{}},"frames":[{{"frame":1,"tracked_objects":[{faces}],"pts":0}}]}}"#
    ));
    let Finished { success, text } = plot(&[&folder.at("clip.jsonl"), &folder.at("clip.svg")]);
    assert!(success, "{text}");
    let svg = folder.text("clip.svg");
    let places = [2, 9, 10].map(|id| svg.find(&format!("<!-- obj_{id} -->")).expect("a face"));
    assert!(places.is_sorted(), "{places:?}");
}

fn size_of_png(path: &str) -> (u32, u32) {
    let file = std::fs::File::open(path).expect("the picture");
    let reader = png::Decoder::new(std::io::BufReader::new(file));
    let info = reader.read_info().expect("a PNG file");
    (info.info().width, info.info().height)
}

#[test]
fn the_table_has_what_the_record_has() {
    let Some(files) = Files::find().filter(|_| has_matplotlib()) else {
        return;
    };
    let folder = Folder::with("");
    let track = PathBuf::from(folder.at("clip.json"));
    docs::record(&files, "", &track);
    let Finished { success, text } = plot(&[&folder.at("clip.json"), &folder.at("clip.csv")]);
    assert!(success, "{text}");
    let record: Value = serde_json::from_str(&folder.text("clip.json")).expect("JSON");
    let table = folder.text("clip.csv");
    let mut rows = table
        .lines()
        .map(|line| line.split(',').collect::<Vec<_>>());
    let head = rows.next().expect("a head");
    assert_eq!(head.len(), 3 + 51, "all channels but the neutral one");
    let frames = record["frames"].as_array().expect("frames");
    assert_eq!(table.lines().count(), 1 + frames.len());
    for (row, frame) in rows.zip(frames) {
        let face = &frame["tracked_objects"][0];
        assert_eq!(
            [row[0], row[2]],
            [
                &*frame["frame"].to_string(),
                face["id"].as_str().expect("an id")
            ]
        );
        for (name, value) in head.iter().zip(&row).skip(3) {
            let value: f64 = value.parse().expect("a number");
            assert_eq!(face["blendshapes"][name].as_f64(), Some(value), "{name}");
        }
    }
}

#[test]
fn what_cannot_be_plotted_is_said() {
    if !has_matplotlib() {
        return;
    }
    let bare = r#"{"metadata":{},"frames":[{"frame":1,"tracked_objects":[{"id":"obj_1","blendshapes":null}],"pts":0}]}"#;
    let reduced = r#"{"frames_analysis":[],"fps":25,"total_frames":0}"#;
    let foreign = "takes what trackjsonsink writes";
    for (record, options, reason) in [
        ("", &[][..], foreign),
        (reduced, &[], foreign),
        ("no JSON\n", &[], foreign),
        ("[1, 2]", &[], foreign),
        (r#"{"frames":[{"tracked_objects":[1]}]}"#, &[], foreign),
        (bare, &[], "there are no blendshapes in it"),
        (
            LINES,
            &["--channels", "tailWag"],
            "there is no tailWag in it, but jawOpen, mouthPucker",
        ),
        (LINES, &["--most", "0"], "argument --most: invalid choice"),
        (LINES, &["--most", "-3"], "argument --most: invalid choice"),
    ] {
        let folder = Folder::with(record);
        let arguments = [&*folder.at("clip.jsonl"), &*folder.at("clip.svg")];
        let Finished { success, text } = plot(&[&arguments, options].concat());
        assert!(!success && text.contains(reason), "{record}: {text}");
        assert!(!text.contains("Traceback"), "{text}");
        assert!(!Path::new(&folder.at("clip.svg")).exists());
    }
    let Finished { success, text } = plot(&["/nowhere.json", "/tmp/nothing.csv"]);
    assert!(!success && text.contains("No such file"), "{text}");
    let folder = Folder::with(LINES);
    let Finished { success, text } = plot(&[&folder.at("clip.jsonl"), &folder.at("clip.doc")]);
    assert!(!success && text.contains("is not supported"), "{text}");
}
