// SPDX-License-Identifier: MPL-2.0
use super::super::LANDMARKS;
use super::super::tests::synthetic::{Noise, head, landmarks, pose};
use super::*;

fn fitter() -> Fitter {
    Fitter::new(Arc::new(head()), FitSettings::default())
}

/// A face turned this far to the image's right.
fn face(model: &FaceModel, yaw: f32) -> [Point; 68] {
    landmarks(
        model,
        &pose(yaw, 5.0, -4.0, 1.5),
        &[0.8, -0.5, 0.4],
        &[0.5, 0.2],
    )
}

fn assert_sound(fit: &Fit, model: &FaceModel) {
    assert!(fit.is_finite());
    assert!(fit.expression.iter().all(|strength| *strength >= 0.0));
    assert_eq!(fit.shape.len(), model.shape().components);
    assert_eq!(fit.vertices.len(), model.shape().mean.len());
    let outline: Vec<_> = fit.contour.iter().map(|(landmark, _)| *landmark).collect();
    let all: Vec<_> = (0..8).chain(9..17).collect();
    assert_eq!(outline, all);
    let points = fit.landmarks(model).points;
    assert_eq!(points.len(), LANDMARKS);
    assert!(points.iter().all(|p| (p.x + p.y + p.z).is_finite()));
    let depth = points.iter().map(|p| p.z).sum::<f32>() / 68.0;
    assert!(
        depth.abs() < 1e-3 * fit.pose.scale as f32 * 100.0,
        "{depth}"
    );
}

#[test]
fn a_face_is_found_as_it_was_drawn_from_profile_to_profile() {
    let mut fitter = fitter();
    let model = fitter.model().clone();
    for yaw in [-90.0f32, -60.0, -30.0, -7.0, 0.0, 7.0, 30.0, 60.0, 90.0] {
        let drawn = face(&model, yaw);
        let fit = fitter.fit(&drawn).unwrap();
        assert_sound(&fit, &model);
        assert!(
            (fit.pose.yaw() as f32 - yaw).abs() < 4.0,
            "{yaw}: {}",
            fit.pose.yaw()
        );
        assert!(
            (fit.pose.scale - 1.5).abs() < 0.08,
            "{yaw}: {}",
            fit.pose.scale
        );
        assert!(fit.residual < 2.0, "{yaw}: {} px", fit.residual);
        let seen = fit.landmarks(&model).points;
        for (landmark, _) in &model.mapping().vertices {
            let point = Point::new(seen[*landmark].x, seen[*landmark].y);
            let distance = point.distance(drawn[*landmark]);
            assert!(
                distance < 8.0,
                "{yaw}: landmark {landmark} is {distance} px off"
            );
        }
    }
}

#[test]
fn a_fit_does_not_depend_on_the_one_before() {
    let mut used = fitter();
    let model = used.model().clone();
    used.fit(&face(&model, 40.0)).unwrap();
    let wanted = fitter().fit(&face(&model, -20.0)).unwrap();
    assert_eq!(used.fit(&face(&model, -20.0)).unwrap(), wanted);
}

#[test]
fn landmarks_that_are_no_face_are_refused_with_the_reason() {
    use FitFailure::{Degenerate, NoLandmarks, NotFinite};
    let mut fitter = fitter();
    let good = face(fitter.model(), 10.0);
    let with = |index: usize, point: Point| {
        let mut points = good;
        points[index] = point;
        points.to_vec()
    };
    let all = |of: &dyn Fn(usize) -> Point| (0..68).map(of).collect::<Vec<_>>();
    let on_a_line = |i: usize| Point::new(10.0 + 3.0 * i as f32, 200.0 - 2.0 * i as f32);
    let nearly = |i: usize| {
        let point = on_a_line(i);
        Point::new(point.x + (i % 3) as f32, point.y)
    };
    let cases = [
        (Vec::new(), NoLandmarks),
        (good[..67].to_vec(), NoLandmarks),
        ([good.as_slice(), &good[..1]].concat(), NoLandmarks),
        (with(0, Point::new(f32::NAN, 5.0)), NotFinite),
        (with(67, Point::new(5.0, f32::INFINITY)), NotFinite),
        (with(30, Point::new(f32::NEG_INFINITY, f32::NAN)), NotFinite),
        (with(20, Point::new(1e30, 5.0)), NotFinite),
        (with(60, Point::new(5.0, -2e7)), NotFinite),
        (all(&|_| Point::new(f32::MAX, f32::MIN)), NotFinite),
        (all(&|_| Point::default()), Degenerate),
        (all(&|_| Point::new(1.6e7, 1.6e7)), Degenerate),
        (all(&|i| Point::new((i % 2) as f32 * 90.0, 5.0)), Degenerate),
        (all(&|i| Point::new(1e7, (i % 2) as f32 * 90.0)), Degenerate),
        (all(&on_a_line), Degenerate),
        (all(&nearly), Degenerate),
    ];
    for (number, (points, reason)) in cases.into_iter().enumerate() {
        assert_eq!(fitter.fit(&points), Err(reason), "case {number}");
        let mut past = Past::default();
        assert_eq!(
            fitter.follow(&points, &mut past),
            Err(reason),
            "case {number}"
        );
        assert!(past.0.is_none());
    }
    assert!(fitter.fit(&good).is_ok());
}

#[test]
fn landmarks_that_coincide_here_and_there_are_a_face() {
    let mut fitter = fitter();
    let model = fitter.model().clone();
    let open = face(&model, 10.0);
    let mut closed = open;
    let eyes = [(37, 41), (38, 40), (43, 47), (44, 46)];
    let lips = [(61, 67), (62, 66), (63, 65), (48, 60), (54, 64)];
    for (upper, lower) in eyes.into_iter().chain(lips) {
        closed[lower] = closed[upper];
    }
    let fit = fitter.fit(&closed).unwrap();
    assert_sound(&fit, &model);
    assert!((fit.pose.yaw() - 10.0).abs() < 4.0);
    let mut without_outline = open;
    for landmark in (0..8).chain(9..17) {
        without_outline[landmark] = open[8];
    }
    assert_sound(&fitter.fit(&without_outline).unwrap(), &model);
}

/// Any landmarks yield a valid fit, or a reason.
#[test]
fn any_landmarks_make_a_sound_fit_or_none() {
    let mut fitter = fitter();
    let model = fitter.model().clone();
    let mut noise = Noise(5);
    let mut past = Past::default();
    let mut fits = 0;
    for round in 0..2000 {
        let mut points = face(&model, 95.0 * noise.next());
        let (strength, far) = (
            10f32.powf(4.0 * noise.next()),
            10f32.powf(4.0 + 4.0 * noise.next()),
        );
        let size = 10f32.powf(3.0 * noise.next());
        let moved = [noise.next() * far, noise.next() * far];
        for point in &mut points {
            *point = match round % 3 {
                0 => Point::new(noise.next() * far, noise.next() * far),
                _ => Point::new(
                    moved[0] + size * (point.x + strength * noise.next()),
                    moved[1] + size * (point.y + strength * noise.next()),
                ),
            };
        }
        for _ in 0..round % 7 {
            let [a, b] = [0; 2].map(|_| ((noise.next() + 1.0) * 33.9) as usize);
            points[a] = points[b];
        }
        for fit in [fitter.fit(&points), fitter.follow(&points, &mut past)]
            .into_iter()
            .flatten()
        {
            assert_sound(&fit, &model);
            fits += 1;
        }
    }
    assert!(fits > 2500, "{fits}");
}

#[test]
fn as_few_components_are_fitted_as_are_asked_for() {
    let model = Arc::new(head());
    let points = face(&model, 15.0);
    for count in [0, 3, 10, 99] {
        let settings = FitSettings {
            shape_coefficients: Some(count),
            ..FitSettings::default()
        };
        let fit = Fitter::new(model.clone(), settings).fit(&points).unwrap();
        let used = count.min(10);
        assert!(fit.shape[..used].iter().all(|c| *c != 0.0));
        assert!(fit.shape[used..].iter().all(|c| *c == 0.0));
    }
}

#[test]
fn the_first_frame_is_the_fit_and_a_past_of_another_model_is_none() {
    let mut fitter = fitter();
    let points = face(fitter.model(), 15.0);
    let wanted = fitter.fit(&points).unwrap();
    let mut past = Past::default();
    assert_eq!(fitter.follow(&points, &mut past).unwrap(), wanted);
    assert_ne!(fitter.follow(&points, &mut past).unwrap(), wanted);

    let settings = FitSettings {
        shape_coefficients: Some(3),
        ..FitSettings::default()
    };
    let mut other = Fitter::new(fitter.model().clone(), settings);
    let wanted = other.fit(&points).unwrap();
    assert_eq!(other.follow(&points, &mut past).unwrap(), wanted);
}
