// SPDX-License-Identifier: MPL-2.0
//! The program's state, its keys and its events.

use std::error::Error;
use std::time::{Duration, Instant};

use facetrack::findings::Finding;
use facetrack::printable::Line;
use gst::ClockTime;
use gstfacetrack::meta::FaceTrackMeta;
use winit::application::ApplicationHandler;
use winit::event::{ElementState, WindowEvent};
use winit::event_loop::{ActiveEventLoop, ControlFlow};
use winit::keyboard::ModifiersState;
use winit::window::WindowId;

use crate::controls::{Seek, Wish, engine_after, wish};
use crate::drawing::{Drawing, Frame};
use crate::faders::Faders;
use crate::gauge::{Figures, Gauge};
use crate::notice::Notice;
use crate::outputs::Outputs;
use crate::pipelines::Event;
use crate::profile::Profile;
use crate::record::{Order, Record};
use crate::state;
use crate::tracking::{Analysis, Tracking};
use crate::view::{Side, View};

/// Period between looks at a live source and at the outputs.
const PERIOD: Duration = Duration::from_secs(1);

/// The answer to keys that change the analysis, while a record is shown.
const NO_ANALYSIS: &str = "this key has no effect on a record";

/// The program.
pub struct Preview {
    pub tracking: Tracking,
    pub drawing: Drawing,
    pub outputs: Outputs,
    pub faders: Faders,
    pub profile: Profile,
    /// The record whose faces are shown.
    pub record: Option<Record>,
    /// `None` before the first frame.
    view: Option<View>,
    gauge: Gauge,
    pub figures: Option<Figures>,
    /// The running engine, and the last requested one.
    pub engine: String,
    wanted: String,
    /// True from the loss of a live source to its next frame.
    pub is_lost: bool,
    pub notice: Notice,
    modifiers: ModifiersState,
    /// Time of the next look at a live source and at the outputs.
    next_look: Instant,
    outcome: Result<(), String>,
}

impl Preview {
    pub fn new(
        tracking: Tracking,
        drawing: Drawing,
        outputs: Outputs,
        (faders, profile): (Faders, Profile),
        record: Option<Record>,
    ) -> Self {
        Self {
            notice: Notice::default(),
            tracking,
            drawing,
            outputs,
            faders,
            profile,
            record,
            view: None,
            gauge: Gauge::default(),
            figures: None,
            engine: String::new(),
            wanted: String::new(),
            is_lost: false,
            modifiers: ModifiersState::empty(),
            next_look: Instant::now(),
            outcome: Ok(()),
        }
    }

    /// The result of the program.
    pub fn outcome(self) -> Result<(), Box<dyn Error>> {
        self.outcome.map_err(Into::into)
    }

    fn fail(&mut self, events: &ActiveEventLoop, error: String) {
        // Only the first error is reported; others are its consequences.
        self.outcome = std::mem::replace(&mut self.outcome, Ok(())).and(Err(error));
        events.exit();
    }

    fn open(&mut self, events: &ActiveEventLoop) -> Result<(), Box<dyn Error>> {
        let source = self.tracking.stage.connection.source.to_string();
        self.view = Some(View::open(events, &source)?);
        self.arrange();
        Ok(())
    }

    fn heed(&mut self, events: &ActiveEventLoop, event: Event) -> Result<(), Box<dyn Error>> {
        match event {
            Event::Opened => self.open(events)?,
            // It requests a redraw, like all events.
            Event::Drawn => (),
            Event::Ready { engine, device } => {
                println!("{}", Line(format_args!("{engine} on {device}")));
                // With the space, since the name of an engine may begin with the name of another.
                self.notice.take_back(&format!("{engine} "));
                // Another engine may have been requested in the meantime.
                if self.wanted.is_empty() {
                    self.wanted.clone_from(&engine);
                }
                self.engine = engine;
            }
            Event::Learned(rest) => {
                let text = "the neutral face is learned";
                self.notice.show(text);
                let learned = self.profile.learn(&self.engine, rest);
                learned.unwrap_or_else(|error| self.warn(&error));
                println!("{text}");
            }
            Event::Kept => {
                let text = "the neutral face is kept; L: learn it again";
                self.notice.show(text);
            }
            Event::Lost(reason) => self.on_lost(&reason),
            Event::Back => {
                self.is_lost = false;
                println!("the camera is back");
                self.notice.show("the camera is back");
            }
            Event::Warned(text) => self.warn(&text),
            Event::Searched(findings) => self.keep_findings(findings),
            Event::Ended => self.notice.show("The video is over."),
            Event::Failed(text) => self.fail(events, text),
            Event::Quit => events.exit(),
        }
        self.request_redraw();
        Ok(())
    }

    fn warn(&mut self, text: &str) {
        eprintln!("{}", Line(text));
        self.notice.show(text);
    }

    /// Handles the loss of a live source, which is reported again after each try to open it.
    fn on_lost(&mut self, reason: &str) {
        if !self.is_lost {
            eprintln!("{}", Line(format_args!("{}: {reason}", state::WAITING)));
            self.gauge.pause();
            self.figures = None;
        }
        self.is_lost = true;
        self.notice.show(reason);
    }

    fn fulfil(&mut self, events: &ActiveEventLoop, wish: Wish) {
        match wish {
            Wish::Quit => events.exit(),
            Wish::Pause => self.pause(Tracking::toggle),
            Wish::Seek(Seek::Frames(1)) => self.step(),
            Wish::Seek(seek) => self.seek(seek),
            Wish::Finding(order) => self.find(order),
            Wish::Mirror => self.analyze(Analysis::flip),
            Wish::Help => self.turn_to(Side::Keys),
            Wish::Panels => self.turn_to(Side::Nothing),
            Wish::NextEngine => self.change_engine(engine_after(&self.wanted, 1)),
            Wish::PreviousEngine => self.change_engine(engine_after(&self.wanted, -1)),
            Wish::Layer(name) => self.drawing.toggle(name),
            Wish::Send => self.output(Outputs::toggle_sending),
            Wish::Record => self.output(Outputs::toggle_recording),
            Wish::Neutral => {
                self.notice.show("the next half second is the neutral face");
                self.analyze(Analysis::set_neutral);
            }
            Wish::SelectGain(steps) => self.set_gain(|faders| faders.select(steps)),
            Wish::ChangeGain(steps) => self.set_gain(|faders| faders.change(steps.into())),
        }
    }

    /// Shows something next to the picture, or the channels again.
    fn turn_to(&mut self, side: Side) {
        if let Some(view) = &mut self.view {
            view.side = if view.side == side {
                Side::Channels
            } else {
                side
            };
        }
        let has_panel = |view: &View| view.layout().panel.is_some();
        if side == Side::Keys && !self.view.as_ref().is_some_and(has_panel) {
            self.notice.show("make the window wider to see the keys");
        }
        self.arrange();
    }

    /// Fits the picture into its part of the window.
    fn arrange(&self) {
        if let Some(view) = &self.view {
            self.drawing.resize(view.layout().picture.size());
            view.request_redraw();
        }
    }

    /// Changes the analysis, unless a record is shown.
    fn analyze(&mut self, change: impl FnOnce(&Analysis)) {
        match self.tracking.analysis() {
            Some(analysis) => change(analysis),
            None => self.notice.show(NO_ANALYSIS),
        }
    }

    /// Changes or selects a gain, and shows it.
    fn set_gain(&mut self, change: impl FnOnce(&mut Faders)) {
        change(&mut self.faders);
        let text = self.faders.text();
        println!("{text}");
        self.notice.show(&text);
        let gains = self.faders.gains;
        self.analyze(|analysis| analysis.set_gains(&gains));
    }

    /// Shows the next frame. The faces of a record do not depend on the frames before, so that it can
    /// be sought: a video that plays and pauses may leave out frames.
    fn step(&mut self) {
        let now = self.drawing.frame().and_then(|frame| frame.time);
        let next = |record: &Record| record.further(now?, 1);
        match self.record.as_ref().and_then(next) {
            Some(time) => self.pause(|tracking| tracking.jump(time)),
            None => self.pause(Tracking::step),
        }
    }

    /// Goes to another frame of a file.
    fn seek(&mut self, seek: Seek) {
        if self.tracking.stage.is_live() {
            return self.warn("a live video has no other frames");
        }
        let frame = self.drawing.frame();
        let target = frame.and_then(|frame| self.target(&frame, seek));
        if let Some(time) = target {
            self.pause(|tracking| tracking.jump(time));
        }
    }

    fn keep_findings(&mut self, findings: Vec<Finding>) {
        let text = format!("findings in the record: {}", findings.len());
        println!("{text}");
        self.notice.show(&text);
        if let Some(record) = &mut self.record {
            record.findings = findings;
        }
    }

    /// Goes to another finding, and describes it.
    fn find(&mut self, order: Order) {
        let now = self.drawing.frame().and_then(|frame| frame.time);
        let found = |record: &Record| record.finding(now?, order);
        let Some((time, number, text)) = self.record.as_ref().and_then(found) else {
            return self.notice.show("no further finding");
        };
        println!("frame {number}: {}", Line(&text));
        self.notice.show(&format!("frame {number}: {text}"));
        self.pause(|tracking| tracking.jump(time));
    }

    /// The time of another frame than this one.
    fn target(&self, frame: &Frame, seek: Seek) -> Option<ClockTime> {
        let now = frame.time?;
        match (seek, &self.record) {
            (Seek::Start, _) => Some(ClockTime::ZERO),
            (Seek::End, Some(record)) => record.last(),
            (Seek::End, None) => {
                let end = self.tracking.stage.duration()?;
                Some(end.saturating_sub(frame.period? * 3 / 2))
            }
            (Seek::Frames(frames), Some(record)) => record.further(now, frames),
            // Between the wanted frame and the one before that.
            (Seek::Frames(frames), None) => {
                let period = frame.period?.nseconds() as i64;
                Some(moved(now, frames * period - period / 2))
            }
            (Seek::Seconds(seconds), _) => {
                let second = ClockTime::SECOND.nseconds() as i64;
                Some(moved(now, seconds * second))
            }
        }
    }

    /// Starts or stops an output, and says so.
    fn output(&mut self, toggle: fn(&Outputs) -> Result<String, Box<dyn Error>>) {
        let text = toggle(&self.outputs).unwrap_or_else(|error| error.to_string());
        println!("{}", Line(&text));
        self.notice.show(&text);
    }

    fn pause(&mut self, change: impl FnOnce(&Tracking)) {
        change(&self.tracking);
        self.gauge.pause();
        self.figures = None;
        self.request_redraw();
    }

    fn change_engine(&mut self, name: &str) {
        let Some(analysis) = self.tracking.analysis() else {
            return self.notice.show(NO_ANALYSIS);
        };
        analysis.set_engine(name);
        name.clone_into(&mut self.wanted);
        if name == self.engine {
            return self.notice.show("");
        }
        self.notice.show(&if self.tracking.is_paused() {
            format!("{name} takes over when the video resumes")
        } else {
            format!("{name} is loading")
        });
    }

    fn request_redraw(&self) {
        if let Some(view) = &self.view {
            view.request_redraw();
        }
    }

    /// Displays the newest picture, and the state.
    fn redraw(&mut self) -> Result<(), Box<dyn Error>> {
        let Some(mut view) = self.view.take() else {
            return Ok(());
        };
        view.picture = self.drawing.take_picture().or(view.picture.take());
        let shown = view.show(&state::text(self));
        let number = view.picture.as_ref().and_then(|picture| {
            let number = picture.buffer()?.offset();
            (view.shown != Some(number)).then_some(number)
        });
        if let (Some(number), Some(picture)) = (number, &view.picture) {
            view.shown = Some(number);
            let age = self.drawing.age(picture).unwrap_or_default();
            let figures = self.gauge.count(Instant::now(), age.into());
            self.figures = figures.or(self.figures);
        }
        self.view = Some(view);
        self.tell_of_pause();
        shown
    }

    /// Prints the frame that is displayed in a pause, once.
    fn tell_of_pause(&mut self) {
        // Read first, so that the frame is the last one.
        let is_paused = self.tracking.is_paused();
        let (Some(view), Some(frame)) = (&mut self.view, self.drawing.frame()) else {
            return;
        };
        let is_new = view.shown == Some(frame.number) && view.told != view.shown;
        if !is_paused || !is_new {
            return;
        }
        view.told = view.shown;
        let report = frame.sample.buffer().and_then(FaceTrackMeta::from_buffer);
        if let (Some(time), Some(report)) = (frame.time, report) {
            let (engine, faces) = (&report.source.engine, report.faces.len());
            let number = self.record.as_ref().and_then(|record| record.number(time));
            let number = number.map_or_else(String::new, |number| format!("frame {number}, "));
            println!("paused at {time}: {number}{engine}, faces: {faces}");
        }
    }

    /// Looks at a live source and at the outputs, whose rate changes without other events.
    fn look(&mut self, now: Instant) {
        self.tracking.stage.watch(now);
        self.next_look = now + PERIOD;
        self.request_redraw();
    }

    /// Keeps what was changed, when the program ends.
    fn save(&mut self) {
        self.profile.set_gains(&self.faders.gains);
        if let Err(error) = self.profile.save() {
            eprintln!("{}", Line(error));
        }
    }
}

/// A time that is some nanoseconds later; not before the start.
fn moved(time: ClockTime, by: i64) -> ClockTime {
    let distance = ClockTime::from_nseconds(by.unsigned_abs());
    if by < 0 {
        time.saturating_sub(distance)
    } else {
        time + distance
    }
}

impl ApplicationHandler<Event> for Preview {
    fn resumed(&mut self, _: &ActiveEventLoop) {
        self.tracking.stage.start();
    }

    fn user_event(&mut self, events: &ActiveEventLoop, event: Event) {
        if let Err(error) = self.heed(events, event) {
            self.fail(events, error.to_string());
        }
    }

    fn window_event(&mut self, events: &ActiveEventLoop, _: WindowId, event: WindowEvent) {
        match event {
            WindowEvent::CloseRequested => events.exit(),
            WindowEvent::Resized(_) => self.arrange(),
            WindowEvent::ScaleFactorChanged { .. } => {
                self.view.iter_mut().for_each(View::rescale);
                self.arrange();
            }
            WindowEvent::ModifiersChanged(modifiers) => self.modifiers = modifiers.state(),
            WindowEvent::RedrawRequested => {
                if let Err(error) = self.redraw() {
                    self.fail(events, error.to_string());
                }
            }
            // Keys that are down when the window gets the focus are reported as well, possibly
            // twice.
            WindowEvent::KeyboardInput {
                event,
                is_synthetic: false,
                ..
            } if event.state == ElementState::Pressed => {
                let wish = wish(&event.logical_key, self.modifiers);
                if let Some(wish) = wish.filter(|wish| !event.repeat || wish.repeats()) {
                    self.fulfil(events, wish);
                    self.request_redraw();
                }
            }
            _ => (),
        }
    }

    fn about_to_wait(&mut self, events: &ActiveEventLoop) {
        let now = Instant::now();
        if self.notice.end().is_some_and(|end| end <= now) {
            self.notice.show("");
            self.request_redraw();
        }
        if self.next_look <= now {
            self.look(now);
        }
        let until = self
            .notice
            .end()
            .map_or(self.next_look, |end| end.min(self.next_look));
        events.set_control_flow(ControlFlow::WaitUntil(until));
    }

    fn exiting(&mut self, _: &ActiveEventLoop) {
        self.tracking.stage.stop();
        self.save();
        if let Err(error) = self.outputs.stop() {
            eprintln!("{}", Line(error));
        }
        self.drawing.stop();
    }
}
