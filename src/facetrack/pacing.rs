// SPDX-License-Identifier: MPL-2.0
//! Whether a frame is late, and what latency the analysis adds. Times are arguments: running times of the pipeline, and
//! what an analysis took.

use std::time::Duration;

use super::clock::NOMINAL_PERIOD;
use crate::options::LateFrames;

/// Of a stream that is always late, one frame in this many is analysed, and that takes one part in as many of the time at
/// most, so that it can catch up. Our choice.
const SHARE: u32 = 4;

/// When frames were late for so long, it is looked how late they come where nothing is backed up. Our choice.
const WINDOW: Duration = Duration::from_secs(5);

/// Nothing is backed up when for so long no frame came less late than the ones before. Our choice.
const SETTLING: Duration = Duration::from_secs(1);

/// A quick analysis takes this part of the distance away from the cost that is remembered: it is that of the slow frames,
/// as a latency has to be. Our choice.
const FORGETTING: u32 = 512;

/// A latency that is too great by less is not told again, as every sink would be timed anew: half a nominal frame. Our
/// choice.
const TOLERANCE: Duration = Duration::from_millis(20);

/// What upstream says of its latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Upstream {
    /// Whether frames come when they come.
    pub live: bool,
    /// How long after their time they may come.
    pub latency: Duration,
}

/// A frame that has come, in running time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    pub now: Duration,
    /// The frame's own time.
    pub time: Duration,
    /// The distance of frames; `None` where it is not known.
    pub period: Option<Duration>,
}

impl Arrival {
    /// How long a frame lasts.
    fn frame(self) -> Duration {
        self.period.unwrap_or(NOMINAL_PERIOD)
    }
}

/// What to do with a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// There is time for it.
    Analyze,
    /// It is late: its faces are those of the frame before.
    Hold,
}

/// Keeps a stream's pace.
#[derive(Debug, Default)]
pub(super) struct Pacing {
    /// `None` until it was asked.
    upstream: Option<Upstream>,
    /// Whether it may answer otherwise now.
    is_doubted: bool,
    /// The least delay at which frames come: cameras and decoders take longer than they say.
    least_delay: Option<Duration>,
    /// `None` where frames come in time.
    late: Option<Lateness>,
    /// Whether frames that are late are held, as far as is known.
    holds: bool,
    /// Frames up to this time are late where they are shown, as a sink has told.
    missed_until: Option<Duration>,
    /// Time of the frame that was analysed last.
    analyzed: Option<Duration>,
    /// What a slow analysis takes.
    cost: Duration,
    /// The latency to tell.
    latency: Duration,
    /// Whether it was told to nobody yet.
    news: bool,
}

impl Pacing {
    /// Whether upstream has to be asked for its latency now. What it said before holds until it answers.
    pub fn take_doubt(&mut self) -> bool {
        std::mem::take(&mut self.is_doubted) || self.upstream.is_none()
    }

    pub fn set_upstream(&mut self, upstream: Upstream) {
        self.upstream = Some(upstream);
    }

    /// Upstream may answer otherwise now.
    pub fn doubt_upstream(&mut self) {
        self.is_doubted = true;
    }

    /// What comes does not continue what was. What an analysis takes is known nevertheless.
    pub fn reset(&mut self) {
        self.least_delay = None;
        self.late = None;
        self.missed_until = None;
        self.analyzed = None;
    }

    /// Another engine analyses from now on. The latency stays until its first frame tells what it takes.
    pub fn forget_cost(&mut self) {
        self.cost = Duration::ZERO;
    }

    /// Whether frames that are late are held.
    pub fn holds(&self) -> bool {
        self.holds
    }

    /// A sink tells that the frame of this time came `lateness` after it was due, or so much earlier.
    pub fn heed_sink(&mut self, time: Duration, lateness: i64) {
        let late = u64::try_from(lateness).ok().filter(|late| *late > 0);
        self.missed_until = late.map(|late| time.saturating_add(Duration::from_nanos(late)));
        if late.is_some() {
            // What comes later would be shown later still.
            self.late = None;
        }
    }

    /// What to do with a frame.
    ///
    /// A frame is late when the one after it is there already, or when a sink could not show it in time. So a stream that
    /// is analysed too slowly is never further behind than the latency with which it comes, a frame and an analysis.
    pub fn pace(&mut self, wanted: LateFrames, arrival: Arrival) -> Pace {
        let delay = arrival.now.saturating_sub(arrival.time);
        let least = self.least_delay.map_or(delay, |least| least.min(delay));
        self.least_delay = Some(least);
        self.holds = match wanted {
            LateFrames::Auto => self.is_live(),
            LateFrames::Hold => true,
            LateFrames::Analyze => false,
        };
        self.forget_lateness(arrival.now);
        let is_late = self.holds
            && !self.is_starved(arrival)
            && (self.is_overtaken(arrival, delay, least) || self.is_missed(arrival));
        match is_late {
            true => Pace::Hold,
            false => Pace::Analyze,
        }
    }

    /// Whether the frame after that of `arrival`, which comes `delay` after its time, is there already.
    fn is_overtaken(&mut self, arrival: Arrival, delay: Duration, least: Duration) -> bool {
        let (now, frame) = (arrival.now, arrival.frame());
        let mut least = least;
        if let Some(late) = self.late_for_long(now) {
            match late.look(now, delay, least.saturating_add(frame / 2)) {
                Cause::Unknown => return true,
                Cause::Backlog => {}
                Cause::Source(delay) => least = delay,
            }
            self.least_delay = Some(least);
            self.late = None;
        }
        let told = self.upstream.map_or(Duration::ZERO, |up| up.latency);
        let overtaken = delay > least.max(told).saturating_add(frame);
        if overtaken {
            self.late.get_or_insert(Lateness::since(now)).last = now;
        }
        overtaken
    }

    /// Frames that were late long ago have nothing to do with those that come at `now`.
    fn forget_lateness(&mut self, now: Duration) {
        let window = self.window();
        self.late = self
            .late
            .filter(|late| now < late.last.saturating_add(window));
    }

    /// Frames that have been late for so long that it has to be looked why.
    fn late_for_long(&mut self, now: Duration) -> Option<&mut Lateness> {
        let window = self.window();
        let late = self.late.as_mut();
        late.filter(|late| now >= late.first.saturating_add(window))
    }

    fn window(&self) -> Duration {
        WINDOW.max(self.cost.saturating_mul(SHARE))
    }

    /// Whether a sink told that such a frame can't be shown in time.
    fn is_missed(&self, arrival: Arrival) -> bool {
        self.missed_until.is_some_and(|until| arrival.time <= until)
    }

    fn is_live(&self) -> bool {
        self.upstream.is_some_and(|upstream| upstream.live)
    }

    /// Whether it is too long ago that a frame was analysed.
    fn is_starved(&mut self, arrival: Arrival) -> bool {
        let usual = self.cost.max(arrival.frame()).saturating_mul(SHARE);
        // Each analysis backs up what is looked at.
        let longest = match self.late_for_long(arrival.now) {
            Some(_) => usual.saturating_mul(SHARE).max(2 * SETTLING),
            None => usual,
        };
        self.analyzed
            .is_none_or(|analyzed| arrival.time >= analyzed.saturating_add(longest))
    }

    /// The frame of `arrival` was analysed, which took `cost`.
    pub fn count(&mut self, arrival: Option<Arrival>, cost: Duration) {
        self.analyzed = arrival.map(|arrival| arrival.time).or(self.analyzed);
        if let Some(late) = &mut self.late {
            late.lowest = None;
        }
        self.cost = remembered(self.cost, cost);
        let period = arrival.and_then(|arrival| arrival.period);
        let latency = worth_telling(self.latency, added_latency(self.cost, period));
        self.latency = latency.unwrap_or(self.latency);
        self.news |= latency.is_some();
    }

    /// Whether a live pipeline has to be told of another latency since the last call.
    pub fn take_news(&mut self) -> bool {
        self.is_live() && std::mem::take(&mut self.news)
    }

    /// How much later frames leave the element than they come.
    pub fn latency(&self) -> Duration {
        self.latency
    }
}

/// Frames that have been late for a while.
#[derive(Debug, Clone, Copy)]
struct Lateness {
    /// When the first of them came, and the last.
    first: Duration,
    last: Duration,
    /// The least delay of those that were looked at since the last analysis, and since when none came less late.
    lowest: Option<(Duration, Duration)>,
}

/// Why frames are late.
enum Cause {
    /// What comes now will tell.
    Unknown,
    /// What was backed up behind analyses, and is no more.
    Backlog,
    /// It takes so long at least until they come.
    Source(Duration),
}

impl Lateness {
    fn since(now: Duration) -> Self {
        Self {
            first: now,
            last: now,
            lowest: None,
        }
    }

    /// Looks at a frame that comes `delay` after its time, where `early` is as early as ever.
    ///
    /// While frames are held, what is backed up comes quicker than a camera yields more, and so less and less late, until it
    /// is as early as ever. Where it does not, it is the source that takes so long.
    fn look(&mut self, now: Duration, delay: Duration, early: Duration) -> Cause {
        self.last = now;
        match self.lowest {
            Some((lowest, _)) if delay >= lowest && delay <= early => Cause::Backlog,
            Some((lowest, since)) if delay >= lowest => {
                match now >= since.saturating_add(SETTLING) {
                    true => Cause::Source(lowest),
                    false => Cause::Unknown,
                }
            }
            _ => {
                self.lowest = Some((delay, now));
                Cause::Unknown
            }
        }
    }
}

fn remembered(known: Duration, cost: Duration) -> Duration {
    match known.checked_sub(cost) {
        None => cost,
        Some(less) => known - less / FORGETTING,
    }
}

/// What an analysis of `cost` adds to the latency. One that takes longer than a frame lasts may begin when the frame is
/// that old.
fn added_latency(cost: Duration, period: Option<Duration>) -> Duration {
    let wait = period.filter(|period| cost > *period).unwrap_or_default();
    cost.saturating_add(wait)
}

/// The latency to tell, whole milliseconds with a quarter to spare, where that which was told is too little or far too much.
fn worth_telling(told: Duration, needed: Duration) -> Option<Duration> {
    let fits = told >= needed && told - needed <= needed.max(TOLERANCE);
    let spare = needed.saturating_add(needed / 4);
    let whole = u64::try_from(spare.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
    let latency = Duration::from_millis(whole);
    (!fits && latency != told).then_some(latency)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = ms(40);

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn arrival(now: u64, time: u64) -> Arrival {
        Arrival {
            now: ms(now),
            time: ms(time),
            period: Some(PERIOD),
        }
    }

    fn live(latency: u64) -> Pacing {
        let mut pacing = Pacing::default();
        pacing.set_upstream(Upstream {
            live: true,
            latency: ms(latency),
        });
        pacing
    }

    /// What the n-th frame takes, ms.
    type Millis = fn(u64) -> u64;

    /// Frames of a camera of 25 frames a second, whose decoder takes `decoding` for the n-th in the same thread. The first
    /// one comes after `start`; all ms.
    struct Camera {
        start: u64,
        decoding: Millis,
    }

    const CAMERA: Camera = Camera {
        start: 0,
        decoding: |_| 0,
    };

    /// What became of them.
    struct Played {
        /// Times of those that were analysed, ms.
        analyzed: Vec<u64>,
        /// The age at which each left, ms.
        ages: Vec<u64>,
    }

    impl Camera {
        /// Plays `frames` through an analysis; `cost` is what that of the n-th takes.
        fn play(
            &self,
            pacing: &mut Pacing,
            wanted: LateFrames,
            frames: u64,
            cost: impl Fn(u64) -> u64,
        ) -> Played {
            let (mut analyzed, mut ages) = (Vec::new(), Vec::new());
            let mut now = self.start;
            for frame in 0..frames {
                let time = 40 * frame;
                now = now.max(time) + (self.decoding)(frame);
                let arrival = arrival(now, time);
                if pacing.pace(wanted, arrival) == Pace::Analyze {
                    analyzed.push(time);
                    now += cost(frame);
                    pacing.count(Some(arrival), ms(cost(frame)));
                }
                ages.push(now - time);
            }
            Played { analyzed, ages }
        }
    }

    /// The times of those that are analysed by an analysis that takes `cost`, ms.
    fn play(pacing: &mut Pacing, wanted: LateFrames, cost: u64, frames: u64) -> Vec<u64> {
        CAMERA.play(pacing, wanted, frames, |_| cost).analyzed
    }

    /// Ten minutes of it, behind a sink that never complains.
    #[test]
    fn a_slow_analysis_keeps_up_with_the_camera() {
        let costs: [(Millis, usize, u64); 9] = [
            (|_| 30, 15_000, 30),
            (|_| 40, 15_000, 40),
            (|frame| 40 + frame % 20 / 19, 14_900, 81),
            (|_| 41, 14_000, 81),
            (|_| 60, 9_850, 100),
            (|_| 160, 3_650, 200),
            (|frame| 150 + frame * 7919 % 21, 3_600, 210),
            (|_| 500, 1_160, 540),
            (|_| 1000, 580, 1040),
        ];
        for (cost, frames, oldest) in costs {
            let played = CAMERA.play(&mut live(0), LateFrames::Auto, 15_000, cost);
            let case = (cost(0), played.analyzed.len(), played.ages.iter().max());
            assert!(played.analyzed.len() >= frames, "{case:?}");
            assert!(played.ages.iter().all(|age| *age <= oldest), "{case:?}");
        }
    }

    #[test]
    fn what_was_backed_up_at_the_start_is_made_up_for() {
        let cases: [(u64, Millis); 4] =
            [(1000, |_| 0), (0, |_| 30), (1000, |_| 15), (3000, |_| 10)];
        for (start, decoding) in cases {
            let camera = Camera { start, decoding };
            let played = camera.play(&mut live(0), LateFrames::Auto, 1500, |_| 160);
            let oldest = played.ages[500..].iter().max();
            let bound = decoding(0) + 40 + 160;
            assert!(oldest <= Some(&bound), "{start}: {oldest:?}");
        }
    }

    /// Key frames, and whatever else takes a decoder longer than a frame now and then.
    #[test]
    fn a_decoder_that_is_late_now_and_then_is_no_late_source() {
        let decoders: [Millis; 5] = [
            |frame| [5, 5, 50][frame as usize % 3],
            |frame| if frame % 10 == 0 { 50 } else { 8 },
            |frame| if frame % 16 == 0 { 120 } else { 10 },
            |frame| if frame % 25 == 0 { 200 } else { 20 },
            |frame| frame.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 & 31,
        ];
        for (case, decoding) in decoders.into_iter().enumerate() {
            let slowest = (0..1000).map(decoding).max().expect("some");
            for (cost, frames) in [(10, 9_700), (60, 3_100), (160, 1_150), (500, 370)] {
                let camera = Camera { decoding, ..CAMERA };
                let played = camera.play(&mut live(0), LateFrames::Auto, 15_000, |_| cost);
                let oldest = played.ages[500..].iter().max();
                let case = (case, cost, played.analyzed.len(), oldest);
                assert!(oldest <= Some(&(2 * slowest + 40 + cost)), "{case:?}");
                assert!(played.analyzed.len() >= frames, "{case:?}");
            }
        }
    }

    #[test]
    fn only_live_streams_are_held_unless_asked_for() {
        for (live, wanted, all) in [
            (true, LateFrames::Auto, false),
            (false, LateFrames::Auto, true),
            (false, LateFrames::Hold, false),
            (true, LateFrames::Analyze, true),
        ] {
            let mut pacing = Pacing::default();
            let latency = Duration::ZERO;
            pacing.set_upstream(Upstream { live, latency });
            let analyzed = play(&mut pacing, wanted, 160, 50);
            assert_eq!(analyzed.len() == 50, all, "{live} {wanted:?}");
        }
        let analyzed = play(&mut Pacing::default(), LateFrames::Auto, 160, 50);
        assert_eq!(analyzed.len(), 50, "nobody was asked");
    }

    #[test]
    fn what_comes_late_anyway_is_not_late() {
        for (upstream, first_delay, delay, want) in [
            (0, 0, 40, Pace::Analyze),
            (0, 0, 41, Pace::Hold),
            (100, 0, 140, Pace::Analyze),
            (100, 0, 141, Pace::Hold),
            (0, 500, 540, Pace::Analyze),
            (0, 500, 541, Pace::Hold),
            (33, 500, 0, Pace::Analyze),
        ] {
            let mut pacing = live(upstream);
            let first = arrival(first_delay, 0);
            assert_eq!(pacing.pace(LateFrames::Auto, first), Pace::Analyze);
            pacing.count(Some(first), Duration::ZERO);
            let second = arrival(40 + delay, 40);
            let case = (upstream, first_delay, delay);
            assert_eq!(pacing.pace(LateFrames::Auto, second), want, "{case:?}");
        }
    }

    /// Frames of which from the 50th on each comes 200 ms late, more or less, and whether they are analysed.
    fn looks_at_a_late_stream(cost: u64, complaints: bool) -> Vec<bool> {
        let (mut pacing, mut now) = (live(0), 0);
        (0..2000)
            .map(|frame| {
                let time = 40 * frame;
                let late = if frame < 50 {
                    0
                } else {
                    200 + frame * 7919 % 13
                };
                now = now.max(time + late);
                let arrival = arrival(now, time);
                let analyze = pacing.pace(LateFrames::Auto, arrival) == Pace::Analyze;
                if analyze {
                    pacing.count(Some(arrival), ms(cost));
                    now += cost;
                }
                if complaints {
                    pacing.heed_sink(ms(time), 1);
                }
                analyze
            })
            .collect()
    }

    #[test]
    fn a_source_that_stays_late_is_got_used_to() {
        let count = |frames: &[bool]| frames.iter().filter(|look| **look).count();
        let looks = looks_at_a_late_stream(1, false);
        assert_eq!(count(&looks[..50]), 50);
        assert_eq!(count(&looks[50..150]), 25, "one in four");
        assert_eq!(count(&looks[1900..]), 100, "as before");
        let looks = looks_at_a_late_stream(1, true);
        assert_eq!(count(&looks[1900..]), 25, "a sink can't show them");
        for (cost, frames) in [(30, 1200), (60, 800), (160, 320), (500, 90)] {
            let looks = count(&looks_at_a_late_stream(cost, false)[500..]);
            assert!(looks >= frames, "{cost}: {looks}");
        }
    }

    #[test]
    fn what_follows_a_reset_is_analysed_however_late() {
        let mut pacing = live(0);
        pacing.pace(LateFrames::Auto, arrival(0, 0));
        pacing.count(Some(arrival(0, 0)), Duration::ZERO);
        assert_eq!(pacing.pace(LateFrames::Auto, arrival(500, 40)), Pace::Hold);
        pacing.reset();
        assert_eq!(
            pacing.pace(LateFrames::Auto, arrival(500, 80)),
            Pace::Analyze
        );
    }

    #[test]
    fn what_a_sink_can_not_show_is_held() {
        for (lateness, time, want) in [
            (-50, 80, Pace::Analyze),
            (0, 80, Pace::Analyze),
            (50, 80, Pace::Hold),
            (50, 120, Pace::Analyze),
        ] {
            let mut pacing = live(0);
            pacing.pace(LateFrames::Auto, arrival(40, 40));
            pacing.count(Some(arrival(40, 40)), Duration::ZERO);
            pacing.heed_sink(ms(40), lateness * 1_000_000);
            let pace = pacing.pace(LateFrames::Auto, arrival(time, time));
            assert_eq!(pace, want, "{lateness} {time}");
        }
    }

    #[test]
    fn a_stream_that_is_always_late_is_analysed_now_and_then() {
        let one_in_four = (0..25).map(|n| 160 * n).collect();
        for (cost, want) in [(1, one_in_four), (500, vec![0, 2000])] {
            let mut pacing = live(0);
            pacing.heed_sink(ms(1_000_000), 1);
            let analyzed: Vec<_> = (0..100)
                .map(|frame| 40 * frame)
                .filter(|time| {
                    let arrival = arrival(*time, *time);
                    let analyze = pacing.pace(LateFrames::Auto, arrival) == Pace::Analyze;
                    if analyze {
                        pacing.count(Some(arrival), ms(cost));
                    }
                    analyze
                })
                .collect();
            assert_eq!(analyzed, want, "{cost}");
        }
    }

    #[test]
    fn the_latency_is_that_of_slow_frames() {
        let mut pacing = live(0);
        let mut tell = |cost| {
            pacing.count(Some(arrival(0, 0)), ms(cost));
            (pacing.take_news(), pacing.latency())
        };
        assert_eq!(tell(8), (true, ms(10)));
        assert_eq!(tell(10), (false, ms(10)));
        assert_eq!(tell(2), (false, ms(10)));
        assert_eq!(tell(80), (true, ms(150)), "80 and a frame");
        let quick: Vec<_> = (0..3000).map(|_| tell(8)).collect();
        let told: Vec<_> = quick.iter().filter(|(news, _)| *news).collect();
        assert!((1..5).contains(&told.len()), "{told:?}");
        assert!(quick[2999].1 < ms(20), "{told:?}");
    }

    #[test]
    fn nobody_is_told_of_the_latency_of_a_file() {
        let mut pacing = Pacing::default();
        pacing.count(None, ms(8));
        assert!(!pacing.take_news());
    }

    /// It is asked again when a sink wants it, which may be while a frame is analysed.
    #[test]
    fn what_upstream_said_holds_until_it_says_otherwise() {
        let mut pacing = Pacing::default();
        assert!(pacing.take_doubt(), "nobody was asked");
        pacing.set_upstream(Upstream {
            live: true,
            latency: Duration::ZERO,
        });
        assert!(!pacing.take_doubt());
        pacing.pace(LateFrames::Auto, arrival(0, 0));
        pacing.doubt_upstream();
        pacing.count(Some(arrival(0, 0)), ms(8));
        assert!(pacing.take_news());
        assert_eq!(pacing.pace(LateFrames::Auto, arrival(500, 40)), Pace::Hold);
        assert!(pacing.take_doubt());
    }

    #[test]
    fn a_quicker_engine_has_a_lower_latency() {
        let mut pacing = live(0);
        pacing.count(Some(arrival(0, 0)), ms(400));
        pacing.forget_cost();
        assert_eq!(pacing.latency(), ms(550));
        pacing.count(Some(arrival(40, 40)), ms(8));
        assert_eq!(pacing.latency(), ms(10));
    }

    #[test]
    fn a_latency_that_fits_is_not_told_again() {
        for (told, needed, want) in [
            (0, 0, None),
            (0, 1, Some(2)),
            (10, 10, None),
            (10, 5, None),
            (10, 0, None),
            (10, 11, Some(14)),
            (50, 25, None),
            (50, 24, Some(30)),
            (21, 0, Some(0)),
        ] {
            let told_now = worth_telling(ms(told), ms(needed));
            assert_eq!(told_now, want.map(ms), "{told} {needed}");
        }
    }
}
