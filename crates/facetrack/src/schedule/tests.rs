// SPDX-License-Identifier: MPL-2.0

use super::*;

const PERIOD: Duration = ms(40);

fn decide(schedule: &mut Schedule, late_frames: LateFrames, arrival: Arrival) -> Decision {
    let settings = ScheduleSettings {
        late_frames,
        ..ScheduleSettings::default()
    };
    let frame = Candidate {
        time: arrival.time,
        arrival: Some(arrival),
        can_hold: true,
        cut: false,
    };
    schedule.decide(&settings, &frame)
}

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

fn live(latency: u64) -> Schedule {
    let mut schedule = Schedule::default();
    schedule.set_upstream(Upstream {
        live: true,
        latency: ms(latency),
    });
    schedule
}

/// Time that the n-th frame takes, ms.
type Millis = fn(u64) -> u64;

/// A camera with 25 frames per second, whose decoder runs in the same thread and takes `decoding`
/// for the n-th frame. The first frame comes after `start` ms.
struct Camera {
    start: u64,
    decoding: Millis,
}

const CAMERA: Camera = Camera {
    start: 0,
    decoding: |_| 0,
};

/// The decisions on its frames.
struct Played {
    /// Times of the analysed frames, ms.
    analyzed: Vec<u64>,
    /// Age of each frame when it leaves, ms.
    ages: Vec<u64>,
}

impl Camera {
    /// Plays `frames` through an analysis, which takes `cost` for the n-th.
    fn play(
        &self,
        schedule: &mut Schedule,
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
            if decide(schedule, wanted, arrival) == Decision::Analyze {
                analyzed.push(time);
                now += cost(frame);
                schedule.on_analyzed(Some(arrival), ms(cost(frame)));
            }
            ages.push(now - time);
        }
        Played { analyzed, ages }
    }
}

/// Times of the frames that an analysis of `cost` ms analyses.
fn play(schedule: &mut Schedule, wanted: LateFrames, cost: u64, frames: u64) -> Vec<u64> {
    CAMERA.play(schedule, wanted, frames, |_| cost).analyzed
}

/// Ten minutes, with a sink that never reports late frames.
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
fn a_backlog_at_the_start_is_cleared() {
    let cases: [(u64, Millis); 4] = [(1000, |_| 0), (0, |_| 30), (1000, |_| 15), (3000, |_| 10)];
    for (start, decoding) in cases {
        let camera = Camera { start, decoding };
        let played = camera.play(&mut live(0), LateFrames::Auto, 1500, |_| 160);
        let oldest = played.ages[500..].iter().max();
        let bound = decoding(0) + 40 + 160;
        assert!(oldest <= Some(&bound), "{start}: {oldest:?}");
    }
}

/// Some frames, such as key frames, take a decoder longer than a frame period.
#[test]
fn a_decoder_that_is_sometimes_late_is_not_a_late_source() {
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
        let mut schedule = Schedule::default();
        let latency = Duration::ZERO;
        schedule.set_upstream(Upstream { live, latency });
        let analyzed = play(&mut schedule, wanted, 160, 50);
        assert_eq!(analyzed.len() == 50, all, "{live} {wanted:?}");
    }
    let analyzed = play(&mut Schedule::default(), LateFrames::Auto, 160, 50);
    assert_eq!(analyzed.len(), 50, "upstream was not queried");
}

/// A file that is played through a sink without a queue before it, and with an analysis of twice
/// the frame period.
#[test]
fn a_file_is_held_where_a_sink_reports_that_it_is_late() {
    for (wanted, range) in [
        (LateFrames::Auto, 45..=55),
        (LateFrames::Analyze, 100..=100),
    ] {
        let mut schedule = Schedule::default();
        let (live, latency) = (false, Duration::ZERO);
        schedule.set_upstream(Upstream { live, latency });
        let (mut now, mut analyzed, mut ages) = (0, 0, Vec::new());
        for frame in 0..100 {
            let time = 40 * frame;
            let arrival = arrival(now, time);
            if decide(&mut schedule, wanted, arrival) == Decision::Analyze {
                analyzed += 1;
                now += 80;
                schedule.on_analyzed(Some(arrival), ms(80));
            }
            let late = now as i64 - time as i64;
            schedule.on_qos(ms(time), late * 1_000_000);
            ages.push(late);
            // The sink waits for the frame's time.
            now = now.max(time);
        }
        assert!(range.contains(&analyzed), "{wanted:?}: {analyzed}");
        let keeps_up = ages.iter().all(|age| *age <= 80);
        assert_eq!(keeps_up, wanted == LateFrames::Auto, "{ages:?}");
    }
}

#[test]
fn a_usual_delay_is_not_late() {
    for (upstream, first_delay, delay, want) in [
        (0, 0, 40, Decision::Analyze),
        (0, 0, 41, Decision::Hold),
        (100, 0, 140, Decision::Analyze),
        (100, 0, 141, Decision::Hold),
        (0, 500, 540, Decision::Analyze),
        (0, 500, 541, Decision::Hold),
        (33, 500, 0, Decision::Analyze),
    ] {
        let mut schedule = live(upstream);
        let first = arrival(first_delay, 0);
        assert_eq!(
            decide(&mut schedule, LateFrames::Auto, first),
            Decision::Analyze
        );
        schedule.on_analyzed(Some(first), Duration::ZERO);
        let second = arrival(40 + delay, 40);
        let case = (upstream, first_delay, delay);
        assert_eq!(
            decide(&mut schedule, LateFrames::Auto, second),
            want,
            "{case:?}"
        );
    }
}

/// Returns for each frame whether it is analysed; from the 50th on, each comes about 200 ms late.
fn analyses_of_a_late_stream(cost: u64, reports_late: bool) -> Vec<bool> {
    let (mut schedule, mut now) = (live(0), 0);
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
            let analyze = decide(&mut schedule, LateFrames::Auto, arrival) == Decision::Analyze;
            if analyze {
                schedule.on_analyzed(Some(arrival), ms(cost));
                now += cost;
            }
            if reports_late {
                schedule.on_qos(ms(time), 1);
            }
            analyze
        })
        .collect()
}

#[test]
fn the_delay_of_a_source_that_stays_late_becomes_usual() {
    let count = |frames: &[bool]| frames.iter().filter(|look| **look).count();
    let looks = analyses_of_a_late_stream(1, false);
    assert_eq!(count(&looks[..50]), 50);
    assert_eq!(count(&looks[50..150]), 25, "one in four");
    assert_eq!(count(&looks[1900..]), 100, "as before");
    let looks = analyses_of_a_late_stream(1, true);
    assert_eq!(count(&looks[1900..]), 25, "a sink cannot show them");
    for (cost, frames) in [(30, 1200), (60, 800), (160, 320), (500, 90)] {
        let looks = count(&analyses_of_a_late_stream(cost, false)[500..]);
        assert!(looks >= frames, "{cost}: {looks}");
    }
}

#[test]
fn a_frame_after_a_reset_is_analysed_however_late() {
    let mut schedule = live(0);
    decide(&mut schedule, LateFrames::Auto, arrival(0, 0));
    schedule.on_analyzed(Some(arrival(0, 0)), Duration::ZERO);
    assert_eq!(
        decide(&mut schedule, LateFrames::Auto, arrival(500, 40)),
        Decision::Hold
    );
    schedule.reset();
    assert_eq!(
        decide(&mut schedule, LateFrames::Auto, arrival(500, 80)),
        Decision::Analyze
    );
}

#[test]
fn frames_that_a_sink_cannot_show_in_time_are_held() {
    for (lateness, time, want) in [
        (-50, 80, Decision::Analyze),
        (0, 80, Decision::Analyze),
        (50, 80, Decision::Hold),
        (50, 120, Decision::Analyze),
    ] {
        let mut schedule = live(0);
        decide(&mut schedule, LateFrames::Auto, arrival(40, 40));
        schedule.on_analyzed(Some(arrival(40, 40)), Duration::ZERO);
        schedule.on_qos(ms(40), lateness * 1_000_000);
        let decision = decide(&mut schedule, LateFrames::Auto, arrival(time, time));
        assert_eq!(decision, want, "{lateness} {time}");
    }
}

#[test]
fn a_stream_that_is_always_late_is_analysed_at_intervals() {
    let one_in_four = (0..25).map(|n| 160 * n).collect();
    for (cost, want) in [(1, one_in_four), (500, vec![0, 2000])] {
        let mut schedule = live(0);
        schedule.on_qos(ms(1_000_000), 1);
        let analyzed: Vec<_> = (0..100)
            .map(|frame| 40 * frame)
            .filter(|time| {
                let arrival = arrival(*time, *time);
                let analyze = decide(&mut schedule, LateFrames::Auto, arrival) == Decision::Analyze;
                if analyze {
                    schedule.on_analyzed(Some(arrival), ms(cost));
                }
                analyze
            })
            .collect();
        assert_eq!(analyzed, want, "{cost}");
    }
}

#[test]
fn the_latency_is_that_of_slow_frames() {
    let mut schedule = live(0);
    let mut analyze = |cost| {
        schedule.on_analyzed(Some(arrival(0, 0)), ms(cost));
        (schedule.take_latency_change(), schedule.latency())
    };
    assert_eq!(analyze(8), (true, ms(10)));
    assert_eq!(analyze(10), (false, ms(10)));
    assert_eq!(analyze(2), (false, ms(10)));
    assert_eq!(analyze(80), (true, ms(150)), "80 and a frame");
    let quick: Vec<_> = (0..3000).map(|_| analyze(8)).collect();
    let told: Vec<_> = quick.iter().filter(|(news, _)| *news).collect();
    assert!((1..5).contains(&told.len()), "{told:?}");
    assert!(quick[2999].1 < ms(20), "{told:?}");
}

#[test]
fn the_latency_of_a_file_does_not_change() {
    let mut schedule = Schedule::default();
    schedule.on_analyzed(None, ms(8));
    assert!(!schedule.take_latency_change());
}

/// A sink may invalidate it while a frame is analysed.
#[test]
fn the_answer_of_upstream_is_valid_until_the_next_one() {
    let mut schedule = Schedule::default();
    assert!(schedule.take_invalid(), "upstream was not queried");
    schedule.set_upstream(Upstream {
        live: true,
        latency: Duration::ZERO,
    });
    assert!(!schedule.take_invalid());
    decide(&mut schedule, LateFrames::Auto, arrival(0, 0));
    schedule.invalidate_latency();
    schedule.on_analyzed(Some(arrival(0, 0)), ms(8));
    assert!(schedule.take_latency_change());
    assert_eq!(
        decide(&mut schedule, LateFrames::Auto, arrival(500, 40)),
        Decision::Hold
    );
    assert!(schedule.take_invalid());
}

#[test]
fn a_faster_engine_has_a_lower_latency() {
    let mut schedule = live(0);
    schedule.on_analyzed(Some(arrival(0, 0)), ms(400));
    schedule.forget_cost();
    assert_eq!(schedule.latency(), ms(550));
    schedule.on_analyzed(Some(arrival(40, 40)), ms(8));
    assert_eq!(schedule.latency(), ms(10));
}

/// The table of the module's documentation.
#[test]
fn decisions_follow_the_table() {
    let settings = ScheduleSettings {
        late_frames: LateFrames::Hold,
        inference_interval: 2,
        max_fps: 5.0,
    };
    for follows in ["a reset", "a failure", "an analysed frame"] {
        for is_late in [false, true] {
            for is_interval_reached in [false, true] {
                for is_rate_allowed in [false, true] {
                    let case = [is_late, is_interval_reached, is_rate_allowed];
                    let time = if is_rate_allowed { 200 } else { 80 };
                    let mut schedule = Schedule::default();
                    let first = arrival(0, 0);
                    assert_eq!(
                        decide(&mut schedule, LateFrames::Hold, first),
                        Decision::Analyze
                    );
                    if follows != "a failure" {
                        schedule.on_analyzed(Some(first), ms(100));
                    }
                    schedule.rate = RateLimit {
                        max_fps: 5.0,
                        next: Some(ms(200)),
                    };
                    schedule.since_analysis = u32::from(is_interval_reached);
                    let now = if is_late { time + 50 } else { time };
                    let frame = Candidate {
                        time: ms(time),
                        arrival: Some(arrival(now, time)),
                        can_hold: follows == "an analysed frame",
                        cut: false,
                    };
                    let want = match (follows, case) {
                        ("a reset", _) | ("a failure", [.., true]) | (_, [false, true, true]) => {
                            Decision::Analyze
                        }
                        _ => Decision::Hold,
                    };
                    let decision = schedule.decide(&settings, &frame);
                    assert_eq!(decision, want, "{follows} {case:?}");
                }
            }
        }
    }
}

fn decisions(settings: ScheduleSettings, frames: impl IntoIterator<Item = Duration>) -> Vec<bool> {
    let mut schedule = Schedule::default();
    let mut can_hold = false;
    let decide = |time| {
        let frame = Candidate {
            time,
            arrival: None,
            can_hold,
            cut: false,
        };
        can_hold = true;
        schedule.decide(&settings, &frame) == Decision::Analyze
    };
    frames.into_iter().map(decide).collect()
}

/// Numbers of the frames that are analysed out of 10 at 25 per second.
fn analyzed_at(max_fps: f64) -> Vec<usize> {
    let settings = ScheduleSettings {
        max_fps,
        ..ScheduleSettings::default()
    };
    let decisions = decisions(settings, (0..10).map(|frame| 40 * ms(frame)));
    (0..10).filter(|frame| decisions[*frame]).collect()
}

#[test]
fn the_maximum_rate_is_kept_on_average() {
    let all: Vec<_> = (0..10).collect();
    for (max_fps, want) in [
        (0.0, all.clone()),
        (25.0, all.clone()),
        (1000.0, all.clone()),
        (f64::NAN, all.clone()),
        (-1.0, all),
        (12.5, vec![0, 2, 4, 6, 8]),
        (10.0, vec![0, 3, 5, 8]),
        (5.0, vec![0, 5]),
        (f64::MIN_POSITIVE, vec![0]),
    ] {
        assert_eq!(analyzed_at(max_fps), want, "{max_fps}");
    }
}

#[test]
fn a_maximum_rate_that_is_the_frame_rate_is_no_limit() {
    for (max_fps, times) in [
        (24.0, [0, 41_666_666, 83_333_333, 125_000_000]),
        (60.0, [0, 16_666_666, 33_333_333, 50_000_000]),
        (30.0, [0, 31_000_000, 68_000_000, 99_000_000]),
    ] {
        let settings = ScheduleSettings {
            max_fps,
            ..ScheduleSettings::default()
        };
        let decisions = decisions(settings, times.map(Duration::from_nanos));
        assert_eq!(decisions, [true; 4], "{max_fps}");
    }
}

#[test]
fn unused_analyses_are_not_saved() {
    let settings = ScheduleSettings {
        max_fps: 10.0,
        ..ScheduleSettings::default()
    };
    let times = [0, 1000, 1010, 1100, 1110, 1200].map(ms);
    let want = [true, true, false, true, false, true];
    assert_eq!(decisions(settings, times), want);
}

#[test]
fn a_new_maximum_rate_and_a_frame_that_follows_none_begin_a_new_interval() {
    let frame = |time, can_hold| Candidate {
        time: ms(time),
        arrival: None,
        can_hold,
        cut: false,
    };
    let mut schedule = Schedule::default();
    let mut decide = |max_fps, frame| {
        let settings = ScheduleSettings {
            max_fps,
            ..ScheduleSettings::default()
        };
        let decision = schedule.decide(&settings, &frame);
        schedule.on_analyzed(None, Duration::ZERO);
        decision
    };
    assert_eq!(decide(10.0, frame(0, true)), Decision::Analyze);
    assert_eq!(decide(10.0, frame(10, true)), Decision::Hold);
    assert_eq!(decide(10.0, frame(20, false)), Decision::Analyze);
    assert_eq!(decide(10.0, frame(30, true)), Decision::Hold);
    assert_eq!(decide(9.0, frame(40, true)), Decision::Analyze);
}

/// The table of the documentation of [`lateness`], by what becomes of a frame after the event.
#[test]
fn lateness_follows_the_table() {
    type Event = fn(&mut Schedule);
    let late: Event = |schedule| assert_eq!(held(schedule, 500, 40), Decision::Hold);
    let events: [(&str, &[Event], Arrival, Decision); 7] = [
        ("in time", &[], arrival(80, 40), Decision::Analyze),
        ("overdue", &[], arrival(81, 40), Decision::Hold),
        ("late", &[late], arrival(540, 80), Decision::Hold),
        (
            "late, then in time",
            &[late],
            arrival(541, 520),
            Decision::Analyze,
        ),
        (
            "reset",
            &[late, Schedule::reset],
            arrival(541, 80),
            Decision::Analyze,
        ),
        (
            "a sink was late",
            &[|schedule| schedule.on_qos(ms(0), 50_000_000)],
            arrival(50, 50),
            Decision::Hold,
        ),
        (
            "a sink was late, then in time",
            &[
                |schedule| schedule.on_qos(ms(0), 50_000_000),
                |schedule| schedule.on_qos(ms(0), -1),
            ],
            arrival(50, 50),
            Decision::Analyze,
        ),
    ];
    for (name, events, arrival_after, want) in events {
        let mut schedule = live(0);
        decide(&mut schedule, LateFrames::Auto, arrival(0, 0));
        schedule.on_analyzed(Some(arrival(0, 0)), ms(200));
        events.iter().for_each(|event| event(&mut schedule));
        let decision = decide(&mut schedule, LateFrames::Auto, arrival_after);
        assert_eq!(decision, want, "{name}");
    }
}

fn held(schedule: &mut Schedule, now: u64, time: u64) -> Decision {
    decide(schedule, LateFrames::Auto, arrival(now, time))
}
