// SPDX-License-Identifier: MPL-2.0
//! Tools for Fusion and DaVinci Resolve: a rectangle mask with the box of each face, a transform
//! with each point, and a 3-D transform with the pose.
//!
//! The layout follows `animate_position` and `animate` in brunocbreis/pysion: points are an
//! `XYPath` of two `BezierSpline`s. Positions are parts of the width and the height from the bottom
//! left corner of the picture. Frames are counted from 0, the global start.

use super::tracks::{
    Curve, FaceTracks, Program, Tracks, center_and_size, changed, decimal, presence,
};

pub(super) const PROGRAM: Program = Program {
    extension: "setting",
    start: START,
    first_frame: 0,
    text: |tracks| Ok(text(tracks)),
};

const START: &str = "{\n\tTools = ordered() {\n";

/// Decimals of a value: less than a thousandth of a pixel of the width.
const DECIMALS: usize = 7;

/// Distance of the tools in the flow.
const SPACING: usize = 110;

/// Inputs of a 3-D transform, in the order of a pose of [`FaceTracks`].
const POSE: [&str; 6] = [
    "Translate.X",
    "Translate.Y",
    "Translate.Z",
    "Rotate.Y",
    "Rotate.X",
    "Rotate.Z",
];

/// A text of tools.
struct Tools {
    text: String,
    /// Number of tools in the flow.
    count: usize,
    width: f64,
    height: f64,
}

fn text(tracks: &Tracks) -> String {
    let mut tools = Tools {
        text: START.to_owned(),
        count: 0,
        width: tracks.width,
        height: tracks.height,
    };
    for (id, face) in &tracks.faces {
        tools.add_face(*id, face);
    }
    tools.text + "\t}\n}\n"
}

impl Tools {
    fn add_face(&mut self, id: u32, face: &FaceTracks) {
        if !face.edges[0].is_empty() {
            self.add_box(&format!("obj_{id}_box"), face);
        }
        for (name, [x, y]) in &face.points {
            let name = format!("obj_{id}_{}", name.replace('-', "_"));
            let center = self.point(&name, x, y);
            self.tool(&name, "Transform", &[center]);
        }
        if !face.pose[0].is_empty() {
            self.add_pose(&format!("obj_{id}_pose"), &face.pose);
        }
    }

    fn add_box(&mut self, name: &str, face: &FaceTracks) {
        let [x, y, across, down] = center_and_size(&face.edges);
        let (width, height) = (self.width, self.height);
        let center = self.point(name, &x, &y);
        let across = self.number(name, "Width", &changed(&across, |it| it / width), "Linear");
        let down = self.number(name, "Height", &changed(&down, |it| it / height), "Linear");
        let level = self.number(name, "Level", &presence(&face.frames), "StepIn");
        self.tool(name, "RectangleMask", &[center, across, down, level]);
    }

    /// The pose of the record, whose space is Fusion's: the rotation is first about z, then x, then
    /// y.
    fn add_pose(&mut self, name: &str, pose: &[Curve; 6]) {
        let order = "[\"Transform3DOp.Rotate.RotOrder\"] = Input { Value = FuID { \"ZXY\" }, }";
        let mut inputs = vec![order.to_owned()];
        for (input, curve) in std::iter::zip(POSE, pose) {
            let input = format!("Transform3DOp.{input}");
            inputs.push(self.number(name, &input, curve, "Linear"));
        }
        self.tool(name, "Transform3D", &inputs);
    }

    /// Adds the curves of a point. Returns the input.
    fn point(&mut self, name: &str, x: &Curve, y: &Curve) -> String {
        let (width, height) = (self.width, self.height);
        let x = self.number(name, "X", &changed(x, |it| it / width), "Linear");
        let y = self.number(name, "Y", &changed(y, |it| 1.0 - it / height), "Linear");
        self.text +=
            &format!("\t\t{name}_path = XYPath {{\n\t\t\tInputs = {{ {x}, {y}, }},\n\t\t}},\n");
        format!("Center = Input {{ SourceOp = \"{name}_path\", Source = \"Value\", }}")
    }

    /// Adds a curve. Returns the input.
    fn number(&mut self, name: &str, input: &str, curve: &Curve, flag: &str) -> String {
        let source = format!("{name}_{}", input.replace('.', "_"));
        let keys = curve.iter().map(|(frame, value)| {
            let value = decimal(*value, DECIMALS);
            format!("\t\t\t\t[{frame}] = {{ {value}, Flags = {{ {flag} = true }} }},\n")
        });
        let keys: String = keys.collect();
        self.text += &format!(
            "\t\t{source} = BezierSpline {{\n\t\t\tKeyFrames = {{\n{keys}\t\t\t}},\n\t\t}},\n"
        );
        let input = if input.contains('.') {
            format!("[\"{input}\"]")
        } else {
            input.to_owned()
        };
        format!("{input} = Input {{ SourceOp = \"{source}\", Source = \"Value\", }}")
    }

    fn tool(&mut self, name: &str, class: &str, inputs: &[String]) {
        let inputs: String = inputs.iter().map(|it| format!("\t\t\t\t{it},\n")).collect();
        let x = SPACING * self.count;
        self.count += 1;
        self.text += &format!(
            "\t\t{name} = {class} {{\n\t\t\tNameSet = true,\n\t\t\tInputs = {{\n{inputs}\t\t\t}},\n\
             \t\t\tViewInfo = OperatorInfo {{ Pos = {{ {x}, 0 }} }},\n\t\t}},\n"
        );
    }
}
