// SPDX-License-Identifier: MPL-2.0
use super::*;

/// A cascade with an upright and a tilted feature, a stump and a tree.
const CASCADE: &str = r#"<?xml version="1.0"?>
<opencv_storage>
<cascade type_id="opencv-cascade-classifier"><stageType>BOOST</stageType>
  <featureType>HAAR</featureType>
  <height>12</height>
  <width>10</width>
  <stageParams><maxWeakCount>2</maxWeakCount></stageParams>
  <featureParams><maxCatCount>0</maxCatCount></featureParams>
  <stageNum>1</stageNum>
  <stages>
    <_><maxWeakCount>2</maxWeakCount>
      <stageThreshold>-1.5</stageThreshold>
      <weakClassifiers>
        <_><internalNodes>0 -1 1 2.5e-3</internalNodes>
          <leafValues>0.25 -0.5</leafValues></_>
        <_><internalNodes>1 0 0 -1e-2 -1 -2 1 3e-2</internalNodes>
          <leafValues>0.5 1. -2</leafValues></_></weakClassifiers></_></stages>
  <features>
    <_><rects>
        <_>0 0 10 12 -1.</_>
        <_>0 6 10 6 2.</_></rects>
      <tilted>0</tilted></_>
    <_><rects>
        <_>5 1 3 4 -1.</_>
        <_>5 2 1 2 9.</_></rects>
      <tilted>1</tilted></_></features></cascade>
</opencv_storage>
"#;

fn error(xml: &str) -> String {
    read(xml.as_bytes()).expect_err("it is broken")
}

#[test]
fn a_cascade_is_read_as_it_is_written() {
    let cascade = read(CASCADE.as_bytes()).unwrap();
    assert_eq!(cascade.window, [10, 12]);
    assert!(cascade.is_tilted() && !cascade.features[0].tilted);
    assert_eq!(cascade.features[1].rects[1].weight, 9.0);
    let stage = &cascade.stages[0];
    assert_eq!(stage.threshold, -1.5 - 1e-5);
    let stump = &stage.trees[0].nodes[0];
    assert_eq!((stump.feature, stump.threshold), (1, 2.5e-3));
    assert_eq!((stump.below, stump.above), (Child::Leaf(0), Child::Leaf(1)));
    let tree = &stage.trees[1];
    let children: Vec<_> = tree.nodes.iter().map(|n| (n.below, n.above)).collect();
    assert_eq!(
        children,
        [
            (Child::Node(1), Child::Leaf(0)),
            (Child::Leaf(1), Child::Leaf(2))
        ]
    );
    assert_eq!(tree.leaves, [0.5, 1.0, -2.0]);
}

#[test]
fn in_a_cascade_of_stumps_the_first_leaf_is_for_values_below() {
    let tree = CASCADE.find("        <_><internalNodes>1 0").unwrap();
    let end = CASCADE.find("</weakClassifiers>").unwrap();
    let stumps = [&CASCADE[..tree], &CASCADE[end..]].concat();
    let reversed = stumps.replace(">0 -1 1 ", ">-1 0 1 ");
    assert_eq!(read(reversed.as_bytes()), read(stumps.as_bytes()));
}

#[test]
fn what_is_no_cascade_is_refused_with_the_reason() {
    for (what, instead, reason) in [
        ("opencv_storage", "html", "<html>"),
        (
            "opencv-cascade-classifier",
            "opencv-haar-classifier",
            "before OpenCV 2.4.4",
        ),
        ("HAAR", "LBP", "\"LBP\"; HAAR cascades are read"),
        ("HAAR", "HOG", "\"HOG\"; HAAR cascades are read"),
        ("BOOST", "OTHER", "BOOST"),
        ("<width>10<", "<width>2<", "3 to 256 px"),
        ("<width>10<", "<width>1000000000<", "3 to 256 px"),
        ("<width>10<", "<width>-1<", "not a number"),
        ("<width>10</width>", "", "lacks <width>"),
        ("<width>10</width>", "<width/>", "<width> is not one number"),
        ("<maxCatCount>0", "<maxCatCount>256", "<maxCatCount> is 256"),
        ("0 6 10 6 2.", "0 6 10 7 2.", "out of the window"),
        ("0 6 10 6 2.", "0 6 10 0 2.", "without extent"),
        ("0 6 10 6 2.", "0 6.5 10 5 2.", "6.5 is no index"),
        ("0 6 10 6 2.", "0 6 4294967295 6 2.", "no index"),
        ("0 6 10 6 2.", "0 6 10 6 nan", "not finite"),
        ("0 6 10 6 2.", "0 6 10 6 1e300", "not finite"),
        ("0 6 10 6 2.", "0 6 10 6", "5 numbers"),
        ("5 1 3 4 -1.", "3 1 3 4 -1.", "out of the window"),
        ("5 1 3 4 -1.", "5 6 3 4 -1.", "out of the window"),
        ("0 -1 1 2.5e-3", "0 -1 2 2.5e-3", "feature 2 of 2"),
        ("0 -1 1 2.5e-3", "0 -3 1 2.5e-3", "leads to -3"),
        ("0 -1 1 2.5e-3", "0 -1 1", "a tree of 3 numbers"),
        ("0 -1 1 2.5e-3", "0 -1 1 inf", "not finite"),
        ("1 0 0 -1e-2 -1", "1 0 0 -1e-2 1", "leads to 1"),
        ("0.25 -0.5<", "0.25<", "1 leaves"),
        (
            "<stageThreshold>-1.5<",
            "<stageThreshold>high<",
            "not a number",
        ),
    ] {
        let broken = CASCADE.replacen(what, instead, usize::MAX);
        assert_ne!(broken, CASCADE, "{what}");
        let error = error(&broken);
        assert!(error.contains(reason), "{what} → {instead}: {error}");
    }
    let stages = CASCADE.find("    <_><maxWeakCount>2").unwrap();
    let end = CASCADE.find("</stages>").unwrap();
    let empty = [&CASCADE[..stages], &CASCADE[end..]].concat();
    assert!(error(&empty).contains("no stages"));
    assert!(error("").contains("document"), "{}", error(""));
    assert!(read(&[0xff, 0xfe, 0, 0]).unwrap_err().contains("UTF-8"));
}

#[test]
fn a_flood_of_numbers_or_elements_is_refused() {
    let numbers = "1 ".repeat(100_000);
    let flood = CASCADE.replace("0 6 10 6 2.", &numbers);
    assert!(error(&flood).contains("more than"));
    let elements = "<a>".repeat(2_000_000);
    assert!(error(&elements).contains("nodes"), "{}", error(&elements));
    let attributes: String = (0..1_000_000).map(|i| format!(" a{i}=''")).collect();
    let flood = CASCADE.replace("<features>", &format!("<features{attributes}>"));
    assert!(error(&flood).contains("attributes"), "{}", error(&flood));
    let entity = format!("<!DOCTYPE x [<!ENTITY a \"b\">]>{CASCADE}");
    assert!(read(entity.as_bytes()).is_err());
}

#[test]
fn damaged_files_are_refused_or_read_but_never_panic() {
    let bytes = CASCADE.as_bytes();
    for end in 0..bytes.len() - "</opencv_storage>\n".len() {
        assert!(read(&bytes[..end]).is_err(), "{end} bytes");
    }
    let mut refused = 0;
    for place in 0..bytes.len() {
        for byte in [0, b' ', b'<', b'-', b'9', 0xff] {
            let mut damaged = bytes.to_vec();
            damaged[place] = byte;
            refused += usize::from(read(&damaged).is_err());
        }
    }
    assert!(refused > bytes.len(), "{refused}");
}
