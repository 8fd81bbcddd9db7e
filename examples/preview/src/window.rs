// SPDX-License-Identifier: MPL-2.0
//! The window and its keys.

use std::error::Error;
use std::rc::Rc;
use std::time::Instant;

use facetrack::printable::Line;
use gstfacetrack::meta::FaceTrackMeta;
use winit::application::ApplicationHandler;
use winit::dpi::LogicalSize;
use winit::event::{ElementState, WindowEvent};
use winit::event_loop::{ActiveEventLoop, ControlFlow};
use winit::window::{Window, WindowId};

use crate::controls::{Wish, engine_after, help, wish};
use crate::drawing::{Drawing, fit};
use crate::gauge::{Figures, Gauge};
use crate::notice::Notice;
use crate::outputs::Outputs;
use crate::pipelines::Event;
use crate::screen::Screen;
use crate::tracking::Tracking;

/// Maximum initial size of the window.
const FIRST_SIZE: [u32; 2] = [1280, 720];

/// The program.
pub struct Preview {
    tracking: Tracking,
    drawing: Drawing,
    outputs: Outputs,
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
    pub fn new(tracking: Tracking, drawing: Drawing, outputs: Outputs) -> Self {
        Self {
            notice: Notice::new(drawing.clone()),
            tracking,
            drawing,
            outputs,
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
            .with_title("facetrack preview")
            .with_inner_size(LogicalSize::new(width, height));
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
            Event::Ended => self.notice.show("The video is over."),
            Event::Failed(text) => self.fail(events, text),
        }
        Ok(())
    }

    fn fulfil(&mut self, events: &ActiveEventLoop, wish: Wish) {
        match wish {
            Wish::Quit => events.exit(),
            Wish::Pause => self.pause(Tracking::toggle),
            Wish::Step => self.pause(Tracking::step),
            Wish::Mirror => self.tracking.flip(),
            Wish::Help => self.notice.show(&help()),
            Wish::NextEngine => self.change_engine(engine_after(&self.wanted, 1)),
            Wish::PreviousEngine => self.change_engine(engine_after(&self.wanted, -1)),
            Wish::Engine(name) => self.change_engine(name),
            Wish::Layer(name) => self.drawing.toggle(name),
            Wish::Send => self.output(Outputs::toggle_sending),
            Wish::Record => self.output(Outputs::toggle_recording),
            Wish::Neutral => {
                self.tracking.set_neutral();
                self.notice.show("the next half second is the neutral face");
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

    fn pause(&mut self, change: fn(&Tracking)) {
        change(&self.tracking);
        self.gauge.pause();
        self.entitle();
        self.request_redraw();
    }

    fn change_engine(&mut self, name: &str) {
        self.tracking.set_engine(name);
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
            println!("paused at {time}: {engine}, faces: {faces}");
        }
        self.entitle();
    }

    /// Shows source, engine and speed in the title.
    fn entitle(&self) {
        let Some(view) = &self.view else {
            return;
        };
        let mut title = format!("{} on {}", self.engine, self.tracking.device());
        if let Some(Figures { fps, age }) = self.figures {
            let delay = if self.tracking.is_live() {
                "old"
            } else {
                "late"
            };
            title += &format!(", {fps:.1} fps, {} ms {delay}", age.as_millis());
        }
        if let Some(cost) = self.tracking.cost() {
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
        self.tracking.start();
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
                // A held key repeats, which only suits steps: it would turn a setting off again.
                let wish = wish(&event.logical_key);
                if let Some(wish) = wish.filter(|wish| !event.repeat || *wish == Wish::Step) {
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
        self.tracking.stop();
        if let Err(error) = self.outputs.stop() {
            eprintln!("{}", Line(error));
        }
        self.drawing.stop();
    }
}
