// SPDX-License-Identifier: MPL-2.0
//! The window and its keys.

use std::error::Error;
use std::rc::Rc;
use std::time::Instant;

use facetrack::findings::Finding;
use facetrack::printable::Line;
use gst::ClockTime;
use gstfacetrack::meta::FaceTrackMeta;
use winit::application::ApplicationHandler;
use winit::dpi::LogicalSize;
use winit::event::{ElementState, WindowEvent};
use winit::event_loop::{ActiveEventLoop, ControlFlow};
use winit::platform::x11::WindowAttributesExtX11;
use winit::window::{Window, WindowId};

use crate::controls::{Seek, Wish, engine_after, help, wish};
use crate::drawing::{Drawing, Frame, fit};
use crate::faders::Faders;
use crate::gauge::{Figures, Gauge};
use crate::notice::Notice;
use crate::outputs::Outputs;
use crate::pipelines::Event;
use crate::record::{Order, Record};
use crate::screen::Screen;
use crate::tracking::{Analysis, Tracking};

/// Identifies the program to a desktop, which shows its entry and its icon.
const APPLICATION: &str = "invalid.gst_plugin_facetrack.preview";

/// Name of the program.
const PROGRAM: &str = "facetrack-preview";

/// Maximum initial size of the window.
const FIRST_SIZE: [u32; 2] = [1280, 720];

/// The answer to keys that change the analysis, while a record is shown.
const NO_ANALYSIS: &str = "this key has no effect on a record";

/// The program.
pub struct Preview {
    tracking: Tracking,
    drawing: Drawing,
    outputs: Outputs,
    faders: Faders,
    /// The record whose faces are shown.
    record: Option<Record>,
    /// `None` before the first frame.
    view: Option<View>,
    gauge: Gauge,
    figures: Option<Figures>,
    /// The running engine, and the last requested one.
    engine: String,
    wanted: String,
    notice: Notice,
    outcome: Result<(), String>,
}

struct View {
    window: Rc<Window>,
    screen: Screen,
    picture: Option<gst::Sample>,
    /// Numbers of the last displayed frame, and of the last frame reported in a pause.
    shown: Option<u64>,
    told: Option<u64>,
}

impl Preview {
    pub fn new(
        tracking: Tracking,
        drawing: Drawing,
        outputs: Outputs,
        faders: Faders,
        record: Option<Record>,
    ) -> Self {
        Self {
            notice: Notice::new(drawing.clone()),
            tracking,
            drawing,
            outputs,
            faders,
            record,
            view: None,
            gauge: Gauge::default(),
            figures: None,
            engine: String::new(),
            wanted: String::new(),
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

    fn open(&mut self, events: &ActiveEventLoop, frame: [u32; 2]) -> Result<(), Box<dyn Error>> {
        let [width, height] = fit(frame, FIRST_SIZE);
        let attributes = Window::default_attributes()
            .with_title("Face Tracking Preview")
            .with_inner_size(LogicalSize::new(width, height));
        // Wayland has the same name.
        let attributes = WindowAttributesExtX11::with_name(attributes, APPLICATION, PROGRAM);
        let window = Rc::new(events.create_window(attributes)?);
        let screen = Screen::new(events.owned_display_handle(), window.clone())?;
        self.drawing.resize(window.inner_size().into());
        self.view = Some(View {
            window,
            screen,
            picture: None,
            shown: None,
            told: None,
        });
        self.notice.show("h: keys");
        Ok(())
    }

    fn heed(&mut self, events: &ActiveEventLoop, event: Event) -> Result<(), Box<dyn Error>> {
        match event {
            Event::Opened(frame) => self.open(events, frame)?,
            Event::Drawn => self.request_redraw(),
            Event::Ready { engine, device } => {
                println!("{}", Line(format_args!("{engine} on {device}")));
                // With the space, since the name of an engine may begin with the name of another.
                self.notice.take_back(&format!("{engine} "));
                // Another engine may have been requested in the meantime.
                if self.wanted.is_empty() {
                    self.wanted.clone_from(&engine);
                }
                self.engine = engine;
                self.entitle();
            }
            Event::Neutral(text) => self.notice.show(text),
            Event::Warned(text) => {
                eprintln!("{}", Line(&text));
                self.notice.show(&text);
            }
            Event::Searched(findings) => self.keep_findings(findings),
            Event::Ended => self.notice.show("The video is over."),
            Event::Failed(text) => self.fail(events, text),
        }
        Ok(())
    }

    fn fulfil(&mut self, events: &ActiveEventLoop, wish: Wish) {
        match wish {
            Wish::Quit => events.exit(),
            Wish::Pause => self.pause(Tracking::toggle),
            Wish::Step => self.step(),
            Wish::Seek(seek) => self.seek(seek),
            Wish::Finding(order) => self.find(order),
            Wish::Mirror => self.analyze(Analysis::flip),
            Wish::Help => self.notice.show(&help()),
            Wish::NextEngine => self.change_engine(engine_after(&self.wanted, 1)),
            Wish::PreviousEngine => self.change_engine(engine_after(&self.wanted, -1)),
            Wish::Engine(name) => self.change_engine(name),
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
        let next = |record: &Record| record.after(now?);
        match self.record.as_ref().and_then(next) {
            Some(time) => self.pause(|tracking| tracking.jump(time)),
            None => self.pause(Tracking::step),
        }
    }

    /// Goes to another frame of a file.
    fn seek(&mut self, seek: Seek) {
        if self.tracking.stage.is_live() {
            return self.notice.show("a live video has no other frames");
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
            (Seek::Back, Some(record)) => record.before(now),
            // Between the frame before and the one before that.
            (Seek::Back, None) => Some(now.saturating_sub(frame.period? * 3 / 2)),
            (Seek::Start, _) => Some(ClockTime::ZERO),
            (Seek::By(seconds), _) => {
                let distance = ClockTime::from_seconds(seconds.unsigned_abs());
                Some(if seconds < 0 {
                    now.saturating_sub(distance)
                } else {
                    now + distance
                })
            }
        }
    }

    /// Starts or stops an output, and says so.
    fn output(&mut self, toggle: fn(&Outputs) -> Result<String, Box<dyn Error>>) {
        let text = toggle(&self.outputs).unwrap_or_else(|error| error.to_string());
        println!("{}", Line(&text));
        self.notice.show(&text);
        self.entitle();
    }

    fn pause(&mut self, change: impl FnOnce(&Tracking)) {
        change(&self.tracking);
        self.gauge.pause();
        self.entitle();
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
            view.window.request_redraw();
        }
    }

    /// Displays the newest picture.
    fn redraw(&mut self) -> Result<(), Box<dyn Error>> {
        let Some(view) = &mut self.view else {
            return Ok(());
        };
        view.picture = self.drawing.take_picture().or(view.picture.take());
        let size = view.window.inner_size();
        view.screen.show(view.picture.as_ref(), size)?;
        let Some(picture) = &view.picture else {
            return Ok(());
        };
        let number = picture.buffer().map(|buffer| buffer.offset());
        if view.shown == number {
            self.tell_of_pause();
            return Ok(());
        }
        view.shown = number;
        let age = self.drawing.age(picture).unwrap_or_default();
        if let Some(figures) = self.gauge.count(Instant::now(), age.into()) {
            self.figures = Some(figures);
            self.entitle();
        }
        self.tell_of_pause();
        Ok(())
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
        self.entitle();
    }

    /// Shows source, engine and speed in the title.
    fn entitle(&self) {
        let Some(view) = &self.view else {
            return;
        };
        let mut title = match (self.tracking.analysis(), &self.record) {
            (Some(analysis), _) => format!("{} on {}", self.engine, analysis.device()),
            (None, record) => record
                .iter()
                .map(|it| it.path.display().to_string())
                .collect(),
        };
        if let Some(Figures { fps, age }) = self.figures {
            let delay = if self.tracking.stage.is_live() {
                "old"
            } else {
                "late"
            };
            title += &format!(", {fps:.1} fps, {} ms {delay}", age.as_millis());
        }
        if let Some(cost) = self.tracking.analysis().and_then(Analysis::cost) {
            title += &format!(", {:.1} ms tracking", cost.as_secs_f64() * 1e3);
        }
        title += &self.outputs.title();
        if self.tracking.is_paused() {
            title += ", paused";
        }
        view.window.set_title(&title);
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
            WindowEvent::Resized(size) => {
                self.drawing.resize(size.into());
                self.request_redraw();
            }
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
                let wish = wish(&event.logical_key);
                if let Some(wish) = wish.filter(|wish| !event.repeat || wish.repeats()) {
                    self.fulfil(events, wish);
                }
            }
            _ => (),
        }
    }

    fn about_to_wait(&mut self, events: &ActiveEventLoop) {
        let until = self.notice.expire().map(ControlFlow::WaitUntil);
        events.set_control_flow(until.unwrap_or(ControlFlow::Wait));
    }

    fn exiting(&mut self, _: &ActiveEventLoop) {
        self.tracking.stage.stop();
        if let Err(error) = self.outputs.stop() {
            eprintln!("{}", Line(error));
        }
        self.drawing.stop();
    }
}
