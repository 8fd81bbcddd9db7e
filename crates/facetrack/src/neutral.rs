// SPDX-License-Identifier: MPL-2.0
//! Subtracts the values that blendshapes have in a face at rest.
//!
//! Networks report values other than 0 for a face at rest, and the values differ between persons. A
//! corrected value is `(value − rest) / (1 − rest)`, limited to 0…1: it is 0 at rest and 1 at 1.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use smart_default::SmartDefault;

use super::blendshape::{Blendshapes, MEDIAPIPE_CHANNELS, NEUTRAL};
use super::engine::EngineError;
use super::geometry::Rect;
use super::report::TrackedFace;

/// Time for which rest values are learned on request, s: some frames, because values differ from
/// frame to frame, and short enough to stay at rest.
const REQUESTED_TIME: f64 = 0.5;

/// Maximum rest value that is subtracted. A higher one would multiply the noise of a channel by
/// more than ten.
const MAX_REST: f32 = 0.9;

/// Maximum number of faces that are away and whose rest values are kept. A session at a desk has
/// one or two, and a stream of passers-by any number.
const MAX_AWAY: usize = 16;

/// Settings for the rest values of new faces.
#[derive(Debug, Clone, Copy, PartialEq, SmartDefault)]
#[non_exhaustive]
pub struct NeutralSettings {
    /// Time for which the rest values of a new face are learned, s; 0 if they are not.
    pub time: f64,
    /// True if a face that returns has its rest values again.
    #[default(true)]
    pub keep: bool,
}

/// An event of the rest values of a face.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NeutralEvent {
    /// The rest values were learned.
    Learned,
    /// The face has the rest values of an earlier face.
    Kept,
}

/// Rest values of the faces in a stream.
#[derive(Debug, Default)]
pub struct NeutralPose {
    /// Channels of the engine.
    channels: Arc<[String]>,
    faces: BTreeMap<u32, Face>,
    /// Faces that have ended, the last one at the end.
    away: Vec<KnownFace>,
    /// Events since the last call of [`NeutralPose::take_events`], with the ids of the faces.
    events: Vec<(NeutralEvent, u32)>,
    /// Rest values for faces without their own.
    common: Option<Baseline>,
    /// True if learned values become the common ones.
    is_shared: bool,
    /// True if the faces of the next frame are at rest.
    is_requested: bool,
}

/// A rest value for each channel, 0…1; 0 for a channel that is not corrected.
type Baseline = Arc<[f32]>;

/// A face.
#[derive(Debug, Default)]
struct Face {
    /// Last box of the face.
    place: Rect,
    rest: Option<Baseline>,
    learning: Option<Learning>,
}

/// A face with rest values that is not in the picture.
#[derive(Debug, Clone)]
struct KnownFace {
    /// Last box of the face.
    place: Rect,
    rest: Baseline,
}

/// Rest values that are being learned.
#[derive(Debug, Default)]
struct Learning {
    /// Time of learning, s.
    time: f64,
    /// Time of the first sample.
    start: Option<Duration>,
    /// Measured values, in the order of the channels.
    samples: Vec<Vec<f32>>,
}

impl NeutralPose {
    /// Creates a state without rest values, for an engine with these `channels`.
    pub fn new(channels: Arc<[String]>) -> Self {
        Self {
            channels,
            ..Self::default()
        }
    }

    /// Makes the rest values that were learned last common: from now on, faces without their own
    /// use them.
    pub fn share(&mut self) {
        self.is_shared = true;
    }

    /// Learns the rest values of the faces in the next frame that has faces.
    pub fn request(&mut self) {
        self.is_requested = true;
    }

    /// Begins the next frame with these faces.
    pub fn begin_frame(&mut self, faces: &[TrackedFace], settings: NeutralSettings) {
        for TrackedFace { id, face } in faces {
            if !self.faces.contains_key(id) {
                let new = self.new_face(face.bbox, faces, settings);
                if new.rest.is_some() {
                    self.events.push((NeutralEvent::Kept, *id));
                }
                self.faces.insert(*id, new);
            }
            let known = self.faces.entry(*id).or_default();
            known.place = face.bbox;
            if self.is_requested {
                known.learning = Some(Learning::new(REQUESTED_TIME));
            }
        }
        self.is_requested &= faces.is_empty();
    }

    /// Returns the state of a face that is new at `place`, in a frame with these faces.
    fn new_face(&self, place: Rect, faces: &[TrackedFace], settings: NeutralSettings) -> Face {
        let rest = if settings.keep {
            self.kept(place, faces)
        } else {
            None
        };
        let learns = rest.is_none() && settings.time > 0.0;
        Face {
            place,
            rest,
            learning: learns.then(|| Learning::new(settings.time)),
        }
    }

    /// The rest values of the face that has returned at `place`: of the nearest face that was lost
    /// within its own size, or of the only face that has rest values if it is the only one in the
    /// picture. Landmarks do not identify a person: measured in four people, the shapes of one face
    /// in two poses differ as much as the shapes of two faces.
    fn kept(&self, place: Rect, faces: &[TrackedFace]) -> Option<Baseline> {
        let is_seen = |id: &u32| faces.iter().any(|face| face.id == *id);
        let unseen = self.faces.iter().filter(|(id, _)| !is_seen(id));
        let unseen = unseen.filter_map(|(_, face)| face.known());
        let known: Vec<_> = unseen.chain(self.away.iter().cloned()).collect();
        let distance = |it: &KnownFace| it.place.center().distance(place.center());
        let near = known.iter().filter(|it| distance(it) <= it.size());
        let nearest = near.min_by(|a, b| distance(a).total_cmp(&distance(b)));
        let first = known.first()?;
        let is_one = known.iter().all(|it| Arc::ptr_eq(&it.rest, &first.rest));
        let only = Some(first).filter(|_| is_one && faces.len() == 1);
        nearest.or(only).map(|it| it.rest.clone())
    }

    /// Returns the events since the last call, with the ids of the faces.
    pub fn take_events(&mut self) -> Vec<(NeutralEvent, u32)> {
        std::mem::take(&mut self.events)
    }

    /// Corrects the blendshapes of the face `id`, measured at `time`, if its rest values are known.
    pub fn correct(&mut self, id: u32, measured: Blendshapes, time: Duration) -> Blendshapes {
        let face = self.faces.get_mut(&id);
        let Some(face) = face.filter(|_| *measured.names() == self.channels) else {
            return measured;
        };
        if let Some(samples) = face.learn(measured.values(), time) {
            let rest = baseline(&samples, &self.channels);
            if self.is_shared {
                self.common = Some(rest.clone());
            }
            if let Some(old) = face.rest.replace(rest) {
                self.away.retain(|other| !Arc::ptr_eq(&other.rest, &old));
            }
            self.events.push((NeutralEvent::Learned, id));
        }
        match face.rest.as_ref().or(self.common.as_ref()) {
            Some(rest) => corrected(measured, rest),
            None => measured,
        }
    }

    /// Handles the end of the face `id`, whose rest values are kept.
    pub fn on_ended(&mut self, id: u32) {
        let Some(known) = self.faces.remove(&id).and_then(|face| face.known()) else {
            return;
        };
        self.away
            .retain(|other| !Arc::ptr_eq(&other.rest, &known.rest));
        self.away.push(known);
        let surplus = self.away.len().saturating_sub(MAX_AWAY);
        self.away.drain(..surplus);
    }

    /// Forgets all faces: the next ones are others. The common rest values are kept.
    pub fn forget_faces(&mut self) {
        self.faces.clear();
        self.away.clear();
    }

    /// Begins another stream. The common rest values are kept.
    pub fn restart(&mut self) {
        self.forget_faces();
        self.events.clear();
        self.is_requested = false;
    }

    /// The rest values of the face `id`, with the names of their channels; empty if it has none of
    /// its own.
    pub fn rest(&self, id: u32) -> impl Iterator<Item = (&str, f32)> {
        let rest = self.faces.get(&id).and_then(|face| face.rest.as_ref());
        rest.into_iter().flat_map(|rest| self.named(rest))
    }

    /// Rest values with the names of their channels.
    fn named<'a>(&'a self, rest: &'a Baseline) -> impl Iterator<Item = (&'a str, f32)> {
        let names = self.channels.iter().map(String::as_str);
        std::iter::zip(names, rest.iter().copied()).filter(|(name, _)| *name != NEUTRAL)
    }

    /// The common rest values, as JSON for [`NeutralPose::set_common`]; `None` if there are none.
    pub fn common(&self) -> Option<String> {
        let values: IndexMap<_, _> = self.named(self.common.as_ref()?).collect();
        serde_json::to_string_pretty(&values).ok()
    }

    /// Sets the common rest values: a JSON object with a number from 0 to 1 by channel name.
    /// Channels that the engine does not measure are ignored, and channels without a value are not
    /// corrected.
    ///
    /// # Errors
    /// Returns [`EngineError::Config`] for any other text.
    pub fn set_common(&mut self, json: &str) -> Result<(), EngineError> {
        let refused = |reason| EngineError::config("neutral", reason);
        let values: IndexMap<String, f32> =
            serde_json::from_str(json).map_err(|error| refused(error.to_string()))?;
        for (name, value) in &values {
            self.check(name, *value).map_err(refused)?;
        }
        let rest = self.channels.iter();
        let rest = rest.map(|name| values.get(name).copied().unwrap_or(0.0));
        self.common = Some(rest.collect());
        Ok(())
    }

    fn check(&self, name: &str, value: f32) -> Result<(), String> {
        let is_known =
            MEDIAPIPE_CHANNELS.contains(&name) || self.channels.iter().any(|c| c == name);
        if !is_known || name == NEUTRAL {
            return Err(format!("{name:?} is not a blendshape with a rest value"));
        }
        if !(0.0..=1.0).contains(&value) {
            return Err(format!(
                "the rest value {value} of {name} is not from 0 to 1"
            ));
        }
        Ok(())
    }
}

impl KnownFace {
    /// Mean side of its box, px.
    fn size(&self) -> f32 {
        (self.place.width + self.place.height) / 2.0
    }
}

impl Face {
    /// The face if its rest values are known.
    fn known(&self) -> Option<KnownFace> {
        Some(KnownFace {
            place: self.place,
            rest: self.rest.clone()?,
        })
    }

    /// Learns from the values of another frame. Returns all samples when the time is over.
    fn learn(&mut self, values: &[f32], time: Duration) -> Option<Vec<Vec<f32>>> {
        let learning = self.learning.as_mut()?;
        learning.samples.push(values.to_vec());
        let start = *learning.start.get_or_insert(time);
        let is_over = time.saturating_sub(start).as_secs_f64() >= learning.time;
        let learning = self.learning.take_if(|_| is_over)?;
        Some(learning.samples)
    }
}

impl Learning {
    fn new(time: f64) -> Self {
        Self {
            time,
            ..Self::default()
        }
    }
}

/// The medians of samples, which a blink does not change much.
fn baseline(samples: &[Vec<f32>], channels: &[String]) -> Baseline {
    let median = |(index, name): (usize, &String)| {
        let values = samples.iter().filter_map(|values| values.get(index));
        let mut values: Vec<_> = values.copied().filter(|value| value.is_finite()).collect();
        values.sort_unstable_by(f32::total_cmp);
        let median = values.get(values.len() / 2).copied();
        median
            .filter(|_| name != NEUTRAL)
            .map_or(0.0, |rest| rest.clamp(0.0, 1.0))
    };
    channels.iter().enumerate().map(median).collect()
}

/// `measured` with the values that remain over `rest`.
fn corrected(measured: Blendshapes, rest: &Baseline) -> Blendshapes {
    let values = std::iter::zip(measured.values(), &**rest);
    let values = values
        .map(|(value, rest)| over_rest(*value, *rest))
        .collect();
    measured.corrected(values)
}

/// A value without its rest value, so that `rest` becomes 0 and 1 stays 1.
fn over_rest(value: f32, rest: f32) -> f32 {
    if rest == 0.0 || !value.is_finite() {
        return value;
    }
    let rest = rest.min(MAX_REST);
    ((value - rest) / (1.0 - rest)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::Observation;

    /// Side of a face, px.
    const SIDE: f32 = 40.0;

    const NAMES: [&str; 3] = [NEUTRAL, "jawOpen", "eyeBlinkLeft"];

    fn neutral() -> NeutralPose {
        NeutralPose::new(NAMES.map(str::to_owned).into())
    }

    fn measured(neutral: &NeutralPose, values: [f32; 3]) -> Blendshapes {
        Blendshapes::new(neutral.channels.clone(), values.to_vec())
    }

    /// Begins a frame with faces at different places.
    fn begin(neutral: &mut NeutralPose, ids: &[u32], time: f64) {
        let places: Vec<_> = ids.iter().map(|id| (*id, 200.0 * *id as f32)).collect();
        begin_at(neutral, &places, time);
    }

    /// Begins a frame with faces at these x.
    fn begin_at(neutral: &mut NeutralPose, places: &[(u32, f32)], time: f64) {
        let face = |(id, x): &(u32, f32)| TrackedFace {
            id: *id,
            face: Observation::from_bbox(Rect::new(*x, 0.0, SIDE, SIDE)),
        };
        let faces: Vec<_> = places.iter().map(face).collect();
        neutral.begin_frame(&faces, NeutralSettings { time, keep: true });
    }

    /// Corrects values of the face `id` at `ms`.
    fn correct(neutral: &mut NeutralPose, id: u32, ms: u64, values: [f32; 3]) -> Blendshapes {
        let measured = measured(neutral, values);
        neutral.correct(id, measured, Duration::from_millis(ms))
    }

    #[track_caller]
    fn assert_close(got: &Blendshapes, want: [f32; 3]) {
        for (got, want) in std::iter::zip(got.values(), want) {
            assert!((got - want).abs() < 1e-6, "{got} {want}");
        }
    }

    #[test]
    fn rest_becomes_0_and_1_stays_1() {
        for (value, rest, want) in [
            (0.2, 0.2, 0.0),
            (0.1, 0.2, 0.0),
            (0.6, 0.2, 0.5),
            (1.0, 0.2, 1.0),
            (1.2, 0.2, 1.0),
            (0.3, 0.0, 0.3),
            (0.9, 1.0, 0.0),
            (0.95, 1.0, 0.5),
            (1.0, 1.0, 1.0),
            (f32::INFINITY, 0.2, f32::INFINITY),
        ] {
            let got = over_rest(value, rest);
            assert!(
                got == want || (got - want).abs() < 1e-6,
                "{value} {rest}: {got}"
            );
        }
        assert!(over_rest(f32::NAN, 0.2).is_nan());
    }

    #[test]
    fn the_first_seconds_of_each_face_are_its_rest() {
        let mut neutral = neutral();
        let blink = [0.0, 0.1, 0.9];
        for (ms, values) in [(0, [0.3, 0.2, 0.1]), (500, blink), (999, [0.3, 0.2, 0.1])] {
            begin(&mut neutral, &[1], 1.0);
            let got = correct(&mut neutral, 1, ms, values);
            assert_eq!((got.values(), got.raw()), (&values[..], None), "{ms}");
        }
        begin(&mut neutral, &[1, 2], 1.0);
        let got = correct(&mut neutral, 1, 1000, [0.3, 0.6, 0.1]);
        // `_neutral` keeps its value.
        assert_close(&got, [0.3, 0.5, 0.0]);
        assert_eq!(got.raw(), Some(&[0.3, 0.6, 0.1][..]));
        let other = correct(&mut neutral, 2, 1000, [0.3, 0.6, 0.1]);
        assert_eq!(other.raw(), None, "it has just come");
        assert_eq!(neutral.common(), None);

        assert_eq!(neutral.take_events(), [(NeutralEvent::Learned, 1)]);
    }

    /// Learns the rest values 0.2 of the faces 1 at x = 0 and 2 at x = 200, which leave.
    fn after_faces(count: usize) -> NeutralPose {
        let mut neutral = neutral();
        let places = &[(1, 0.0), (2, 200.0)][..count];
        for ms in [0, 500] {
            begin_at(&mut neutral, places, 0.5);
            for (id, _) in places {
                correct(&mut neutral, *id, ms, [0.0, 0.2 * *id as f32, 0.0]);
            }
        }
        places.iter().for_each(|(id, _)| neutral.on_ended(*id));
        neutral.take_events();
        neutral
    }

    #[test]
    fn a_face_that_returns_has_its_rest_values() {
        // Faces that left, places of those that come, and rest values of the first one.
        for (count, places, want) in [
            (1, &[(3, 10.0)][..], Some(0.2)),
            // The only face may be anywhere.
            (1, &[(3, 600.0)], Some(0.2)),
            (1, &[(3, 600.0), (4, 900.0)], None),
            (1, &[(3, 10.0), (4, 900.0)], Some(0.2)),
            (2, &[(3, 10.0)], Some(0.2)),
            (2, &[(3, 230.0)], Some(0.4)),
            (2, &[(3, 600.0)], None),
        ] {
            let mut neutral = after_faces(count);
            begin_at(&mut neutral, places, 0.5);
            let rest = neutral.faces[&3].rest.as_ref().map(|rest| rest[1]);
            assert_eq!(rest, want, "{count} {places:?}");
            let kept = neutral.take_events().contains(&(NeutralEvent::Kept, 3));
            assert_eq!(kept, want.is_some());
            let learns = neutral.faces[&3].learning.is_some();
            assert_eq!(learns, want.is_none(), "{count} {places:?}");
        }
    }

    #[test]
    fn rest_values_are_learned_again_only_on_request() {
        let mut neutral = after_faces(1);
        begin_at(&mut neutral, &[(3, 10.0)], 0.5);
        let smile = [0.0, 0.6, 0.0];
        assert_close(&correct(&mut neutral, 3, 9000, smile), [0.0, 0.5, 0.0]);
        neutral.request();
        for (ms, want) in [(9100, 0.5), (9600, 0.0)] {
            begin_at(&mut neutral, &[(3, 10.0)], 0.5);
            assert_close(&correct(&mut neutral, 3, ms, smile), [0.0, want, 0.0]);
        }
        // Both ids are the same face, wherever it comes back.
        neutral.on_ended(3);
        begin_at(&mut neutral, &[(4, 600.0)], 0.5);
        let kept = Some(&(NeutralEvent::Kept, 4));
        assert_eq!(neutral.take_events().last(), kept);
    }

    #[test]
    fn rest_values_are_forgotten_with_all_faces_and_unless_they_are_kept() {
        let mut neutral = after_faces(1);
        let face = TrackedFace {
            id: 3,
            face: Observation::from_bbox(Rect::new(0.0, 0.0, SIDE, SIDE)),
        };
        let settings = NeutralSettings {
            keep: false,
            ..NeutralSettings::default()
        };
        neutral.begin_frame(&[face], settings);
        assert!(neutral.faces[&3].rest.is_none());
        neutral.forget_faces();
        begin_at(&mut neutral, &[(4, 0.0)], 0.0);
        assert!(neutral.faces[&4].rest.is_none());
    }

    #[test]
    fn rest_is_learned_on_request() {
        let mut neutral = neutral();
        begin(&mut neutral, &[1], 0.0);
        assert_eq!(correct(&mut neutral, 1, 0, [0.0, 0.2, 0.2]).raw(), None);
        neutral.request();
        // The request waits for a face.
        begin(&mut neutral, &[], 0.0);
        begin(&mut neutral, &[1], 0.0);
        assert_eq!(correct(&mut neutral, 1, 40, [0.0, 0.2, 0.2]).raw(), None);
        begin(&mut neutral, &[1, 2], 0.0);
        assert_close(&correct(&mut neutral, 1, 540, [0.0, 0.2, 0.2]), [0.0; 3]);
        assert_eq!(correct(&mut neutral, 2, 540, [0.0, 0.2, 0.2]).raw(), None);

        // The values before are used until others are learned.
        neutral.request();
        for (ms, want) in [(600, 0.5), (1099, 0.5), (1100, 0.0)] {
            begin(&mut neutral, &[1], 0.0);
            let got = correct(&mut neutral, 1, ms, [0.0, 0.6, 0.2]);
            assert_close(&got, [0.0, want, 0.0]);
        }
    }

    #[test]
    fn shared_values_are_those_that_were_learned_last() {
        let mut neutral = neutral();
        neutral.share();
        neutral
            .set_common(r#"{"jawOpen": 0.2, "cheekPuff": 0.5}"#)
            .expect("rest values");
        begin(&mut neutral, &[1], 0.0);
        assert_close(
            &correct(&mut neutral, 1, 0, [0.3, 0.6, 0.6]),
            [0.3, 0.5, 0.6],
        );
        neutral.request();
        for ms in [0, 500] {
            begin(&mut neutral, &[1, 2], 0.5);
            for (id, rest) in [(1, 0.4), (2, 0.8)] {
                correct(&mut neutral, id, ms, [0.3, rest, 0.0]);
            }
        }
        begin(&mut neutral, &[1, 2, 3], 0.0);
        for (id, want) in [(1, 2.0 / 3.0), (2, 0.0), (3, 0.0)] {
            let got = correct(&mut neutral, id, 600, [0.3, 0.8, 0.0]);
            assert_close(&got, [0.3, want, 0.0]);
        }

        neutral.restart();
        let json = neutral.common().expect("rest values");
        let mut next = super::tests::neutral();
        next.set_common(&json).expect("its own JSON");
        assert_eq!(next.common, neutral.common);
        assert_eq!(next.common().as_ref(), Some(&json));
        assert!(!json.contains(NEUTRAL), "{json}");
    }

    #[test]
    fn other_texts_are_no_rest_values() {
        for (json, reason) in [
            ("", "EOF"),
            ("[]", "expected a map"),
            (r#"{"jawOpen": "a"}"#, "expected f32"),
            (r#"{"jawOpen": null}"#, "expected f32"),
            (r#"{"jawOpne": 0.1}"#, "\"jawOpne\" is not a blendshape"),
            (r#"{"_neutral": 0.1}"#, "\"_neutral\" is not a blendshape"),
            (r#"{"jawOpen": 1.1}"#, "jawOpen is not from 0 to 1"),
            (r#"{"jawOpen": -0.1}"#, "jawOpen is not from 0 to 1"),
            (r#"{"jawOpen": 1e99}"#, "number out of range"),
        ] {
            let mut neutral = neutral();
            let error = neutral.set_common(json).expect_err(json).to_string();
            assert!(error.contains(reason), "{json}: {error}");
            assert_eq!(neutral.common, None);
        }
    }

    #[test]
    fn values_that_are_not_finite_are_not_learned() {
        let mut neutral = neutral();
        for (ms, jaw, blink) in [(0, f32::NAN, f32::NAN), (1000, 0.5, f32::NAN)] {
            begin(&mut neutral, &[1], 1.0);
            correct(&mut neutral, 1, ms, [0.0, jaw, blink]);
        }
        let got = correct(&mut neutral, 1, 1040, [0.0, 0.5, 0.5]);
        assert_close(&got, [0.0, 0.0, 0.5]);
    }

    #[test]
    fn other_channels_are_not_corrected() {
        let mut neutral = neutral();
        neutral
            .set_common(r#"{"jawOpen": 0.2}"#)
            .expect("rest values");
        begin(&mut neutral, &[1], 0.0);
        let other = Blendshapes::new(["jawOpen".to_owned()].into(), vec![0.6]);
        let got = neutral.correct(1, other.clone(), Duration::ZERO);
        assert_eq!(got, other);
    }
}
