// SPDX-License-Identifier: MPL-2.0
//! Reads cascades from OpenCV's XML, as `CascadeClassifierImpl::Data::read` and
//! `HaarEvaluator::Feature::read` in its `cascadedetect.cpp` do, and checks values that these
//! trust.

use std::ops::RangeInclusive;
use std::str::FromStr;

use roxmltree::{Document, Node as Element, ParsingOptions};

use super::cascade::{Cascade, Child, Feature, Node, Stage, Tree, WeightedRect};

/// Maximum number of XML nodes of a file. OpenCV's largest cascade has 180,000.
const MAX_XML_NODES: u32 = 1 << 20;

/// Maximum number of `=` in a file, and so of attributes and namespaces, which the parser compares
/// with one another. OpenCV's cascades have up to 110, most of them in comments.
const MAX_EQUALS: usize = 1000;

/// Allowed sides of a window, px. Brightness is normalised without a border
/// (`HaarEvaluator::normrect`), and a smaller window has nothing inside it. The sum of squares of a
/// larger window does not fit 32 bits.
const WINDOW_SIDE: RangeInclusive<usize> = 3..=256;

/// Maximum number of nodes of a tree. OpenCV's cascades have up to 3.
pub(crate) const MAX_TREE_NODES: usize = 8;

/// Number that is subtracted from a stage's threshold: `THRESHOLD_EPS` in
/// `CascadeClassifierImpl::Data::read`.
const THRESHOLD_EPS: f32 = 1e-5;

/// Maximum number of numbers in an element, as in a tree's nodes.
const MAX_NUMBERS: usize = 4 * MAX_TREE_NODES;

/// Rectangles of a feature: `HaarEvaluator::Feature::RECT_NUM`.
const MAX_RECTS: usize = 3;

/// The cascade in `xml`.
///
/// # Errors
/// Returns the reason why the text is not a valid cascade.
pub(crate) fn read(xml: &[u8]) -> Result<Cascade, String> {
    let text = std::str::from_utf8(xml).map_err(|_| "it is not UTF-8 text".to_owned())?;
    if text.matches('=').nth(MAX_EQUALS).is_some() {
        return Err(format!("it has more than {MAX_EQUALS} attributes"));
    }
    let options = ParsingOptions {
        nodes_limit: MAX_XML_NODES,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(text, options).map_err(|e| e.to_string())?;
    let root = document.root_element();
    if root.tag_name().name() != "opencv_storage" {
        let name = root.tag_name().name();
        return Err(format!("it holds <{name}>, not <opencv_storage>"));
    }
    let cascade = root.first_element_child();
    cascade_of(cascade.ok_or("<opencv_storage> is empty")?)
}

fn cascade_of(element: Element) -> Result<Cascade, String> {
    if element.attribute("type_id") == Some("opencv-haar-classifier") {
        let reason = "it is a cascade in the format before OpenCV 2.4.4 (opencv-haar-classifier); opencv-cascade-classifier is read";
        return Err(reason.to_owned());
    }
    expect_word(element, "stageType", "BOOST")?;
    expect_word(element, "featureType", "HAAR")?;
    let window = [
        window_side(element, "width")?,
        window_side(element, "height")?,
    ];
    let categories: usize = value(child(element, "featureParams")?, "maxCatCount")?;
    if categories != 0 {
        return Err(format!(
            "<maxCatCount> is {categories}; HAAR cascades have 0"
        ));
    }
    let features = list(child(element, "features")?, |e| feature_of(e, window))?;
    let mut stages = list(child(element, "stages")?, |e| stage_of(e, features.len()))?;
    if stages.is_empty() {
        return Err("it has no stages".to_owned());
    }
    order_leaves_of_stumps(&mut stages);
    Ok(Cascade {
        window,
        stages,
        features,
    })
}

fn window_side(element: Element, name: &str) -> Result<usize, String> {
    let side = value(element, name)?;
    if WINDOW_SIDE.contains(&side) {
        return Ok(side);
    }
    let (least, most) = (WINDOW_SIDE.start(), WINDOW_SIDE.end());
    Err(format!(
        "<{name}> is {side}; {least} to {most} px can be used"
    ))
}

fn feature_of(element: Element, window: [usize; 2]) -> Result<Feature, String> {
    let rects = list(child(element, "rects")?, |rect| {
        let [x, y, width, height, weight] = numbers::<f64>(rect)?[..] else {
            return Err("a rectangle has not 5 numbers".to_owned());
        };
        Ok(WeightedRect {
            x: index(x)?,
            y: index(y)?,
            width: extent(width)?,
            height: extent(height)?,
            weight: single(weight)?,
        })
    })?;
    if rects.is_empty() || rects.len() > MAX_RECTS {
        return Err(format!("a feature of {} rectangles", rects.len()));
    }
    let tilted = child(element, "tilted").is_ok() && value::<u8>(element, "tilted")? != 0;
    let feature = Feature { tilted, rects };
    if feature.corners(window).is_none() {
        return Err("a feature reaches out of the window".to_owned());
    }
    Ok(feature)
}

fn stage_of(element: Element, features: usize) -> Result<Stage, String> {
    let threshold = single(value(element, "stageThreshold")?)? - THRESHOLD_EPS;
    let trees = list(child(element, "weakClassifiers")?, |e| tree_of(e, features))?;
    if trees.is_empty() {
        return Err("a stage without classifiers".to_owned());
    }
    Ok(Stage { threshold, trees })
}

fn tree_of(element: Element, features: usize) -> Result<Tree<usize>, String> {
    let numbers_of = |name| numbers::<f64>(child(element, name)?);
    let nodes = numbers_of("internalNodes")?;
    let leaves = numbers_of("leafValues")?;
    let count = nodes.len() / 4;
    if nodes.len() % 4 != 0 || !(1..=MAX_TREE_NODES).contains(&count) || leaves.len() != count + 1 {
        let (nodes, leaves) = (nodes.len(), leaves.len());
        return Err(format!("a tree of {nodes} numbers and {leaves} leaves"));
    }
    let node = |(own, [below, above, feature, threshold]): (usize, &[f64; 4])| {
        let feature = index(*feature)?;
        if feature >= features {
            return Err(format!("feature {feature} of {features}"));
        }
        Ok(Node {
            feature,
            threshold: single(*threshold)?,
            below: child_of(*below, own, count)?,
            above: child_of(*above, own, count)?,
        })
    };
    let nodes = nodes.as_chunks().0.iter().enumerate();
    Ok(Tree {
        nodes: nodes.map(node).collect::<Result<_, _>>()?,
        leaves: leaves.into_iter().map(single).collect::<Result<_, _>>()?,
    })
}

/// Reads a child. Numbers above 0 are nodes, 0 and below are leaves. Nodes come before their
/// children, so trees end.
fn child_of(number: f64, own: usize, count: usize) -> Result<Child, String> {
    let place = index(number.abs())?;
    if number > 0.0 && place > own && place < count {
        return Ok(Child::Node(place));
    }
    if number <= 0.0 && place <= count {
        return Ok(Child::Leaf(place));
    }
    Err(format!("node {own} of {count} leads to {number}"))
}

/// Orders the leaves of trees with one node. If all trees have one node, OpenCV takes the first
/// leaf for values below the bound, whatever the node says: `predictOrderedStump`.
fn order_leaves_of_stumps(stages: &mut [Stage]) {
    let trees = || stages.iter().flat_map(|stage| &stage.trees);
    if trees().any(|tree| tree.nodes.len() > 1) {
        return;
    }
    for tree in stages.iter_mut().flat_map(|stage| &mut stage.trees) {
        tree.nodes[0].below = Child::Leaf(0);
        tree.nodes[0].above = Child::Leaf(1);
    }
}

fn child<'a, 'input>(
    element: Element<'a, 'input>,
    name: &str,
) -> Result<Element<'a, 'input>, String> {
    let mut children = element.children();
    children
        .find(|child| child.has_tag_name(name))
        .ok_or_else(|| format!("<{}> lacks <{name}>", element.tag_name().name()))
}

/// Converts the items (`<_>`) of a list, in their order.
fn list<T>(
    element: Element,
    item: impl Fn(Element) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let name = element.tag_name().name();
    element
        .children()
        .filter(Element::is_element)
        .enumerate()
        .map(|(i, e)| item(e).map_err(|reason| format!("<{name}> {i}: {reason}")))
        .collect()
}

fn words<'a>(element: Element<'a, '_>) -> impl Iterator<Item = &'a str> {
    element.text().unwrap_or_default().split_whitespace()
}

fn numbers<T: FromStr>(element: Element) -> Result<Vec<T>, String> {
    let name = element.tag_name().name();
    if words(element).nth(MAX_NUMBERS).is_some() {
        return Err(format!("<{name}> has more than {MAX_NUMBERS} numbers"));
    }
    words(element)
        .map(|word| {
            word.parse()
                .map_err(|_| format!("{word:?} in <{name}> is not a number"))
        })
        .collect()
}

fn value<T: FromStr + Copy>(element: Element, name: &str) -> Result<T, String> {
    match numbers(child(element, name)?)?[..] {
        [value] => Ok(value),
        _ => Err(format!("<{name}> is not one number")),
    }
}

fn expect_word(element: Element, name: &str, expected: &str) -> Result<(), String> {
    let actual: Vec<&str> = words(child(element, name)?).collect();
    if actual == [expected] {
        return Ok(());
    }
    Err(format!(
        "<{name}> is {:?}; {expected} cascades are read",
        actual.join(" ")
    ))
}

/// An index in a list, or a position in the window.
fn index(number: f64) -> Result<usize, String> {
    let whole = number as u32;
    if f64::from(whole) == number && whole <= MAX_XML_NODES {
        return Ok(whole as usize);
    }
    Err(format!("{number} is no index"))
}

fn extent(number: f64) -> Result<usize, String> {
    match index(number)? {
        0 => Err("a rectangle without extent".to_owned()),
        extent => Ok(extent),
    }
}

fn single(number: f64) -> Result<f32, String> {
    let number = number as f32;
    if number.is_finite() {
        return Ok(number);
    }
    Err(format!("{number} is not finite"))
}

#[cfg(test)]
mod tests;
