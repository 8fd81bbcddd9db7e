// The video, and the place that the page shows.

// Time to wait for a frame, in milliseconds. Then the record is shown without it.
const MAX_WAIT = 1000;

// Time after which a video without a frame is one that the browser cannot show. No event says so.
const MAX_LOAD = 2000;

// Events: `place` for another place or picture, `target` for a place that is waited for, `video` for a
// video that has begun, `fail` with the reason for one that cannot be shown.
class Player extends EventTarget {
  constructor(video, record) {
    super();
    this.video = video;
    this.record = record;
    this.header = record.header;
    this.place = 0;
    // The place that was asked for, while the video is paused.
    this.target = null;
    // Time of the video's first frame, once it was shown.
    this.origin = null;
    // The place of the frame that the video shows; null without a video, and after an error.
    this.videoPlace = null;
    this.name = null;
    this.listen();
  }

  tell(name, detail = null) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }

  listen() {
    const { video } = this;
    for (const name of ["play", "pause"]) video.addEventListener(name, () => this.tell("play"));
    video.addEventListener("error", () => this.fail(this.fault));
    // A file whose sound alone can be decoded has no picture, and no error.
    video.addEventListener("loadedmetadata", () => video.videoWidth === 0 && this.fail("unplayable"));
    video.addEventListener("seeked", () => {
      if (this.target !== null && this.sought !== this.target) this.seek();
    });
    // Hidden pages get no frames.
    document.addEventListener("visibilitychange", () => this.watch());
  }

  // The reason of an error. Browsers describe the fault of a file that they have read.
  get fault() {
    if (this.origin !== null) return "damaged";
    return this.isLinked && !/DEMUXER|NS_ERROR/.test(this.video.error.message) ? "missing" : "unplayable";
  }

  // Firefox shows pictures of other frames of Matroska files after a seek, and of MP4 files that were cut
  // without encoding.
  get isMisleading() {
    const { header, name } = this;
    const isCut = header.hidesFirstFrame && name === header.videoName;
    return "mozInnerScreenX" in window && (isCut || /\.mkv$/i.test(name));
  }

  // Opens a file. `isLinked` is true if the page refers to it, so that it may be missing.
  open(source, name, isLinked) {
    this.name = name;
    this.isLinked = isLinked;
    this.origin = this.videoPlace = null;
    this.target ??= this.place;
    this.sought = this.soughtTime = undefined;
    if (this.isMisleading) return this.fail("unplayable");
    this.video.src = source;
    this.load();
  }

  // Loads the video, and waits for its frames, no longer for those of the one before.
  load() {
    const { video } = this;
    const wait = () => {
      this.callback = video.requestVideoFrameCallback((_, { mediaTime }) => {
        wait();
        this.onFrame(mediaTime);
      });
    };
    if (this.callback) video.cancelVideoFrameCallback(this.callback);
    video.load();
    wait();
    this.watch();
  }

  watch() {
    clearTimeout(this.watching);
    if (document.hidden || this.name === null || this.videoPlace !== null) return;
    this.watching = setTimeout(() => this.videoPlace === null && this.fail("unplayable"), MAX_LOAD);
  }

  get isPlaying() {
    return this.target === null;
  }

  get isReady() {
    return this.videoPlace !== null;
  }

  // Goes to a place once the video has its frame, so that all parts of the page show the same frame.
  show(place) {
    this.target = Math.min(Math.max(place, 0), this.record.frames - 1);
    const { video } = this;
    // Firefox may show later frames than it has announced.
    const isExact = video.paused;
    video.pause();
    this.tell("target");
    // After an error, it may still have other frames.
    if (video.error && this.origin !== null) this.load();
    clearTimeout(this.waiting);
    if (this.videoPlace === null || (isExact && this.isShown(this.target))) return this.arrive();
    this.waiting = setTimeout(() => this.arrive(), MAX_WAIT);
    this.seek();
  }

  // Shows the target, with the picture if the video has one.
  arrive() {
    clearTimeout(this.waiting);
    this.place = this.target;
    this.tell("place");
  }

  // True if the video shows the frame at a place. Frames of damaged videos may have the same time.
  isShown(place) {
    const { record, videoPlace } = this;
    return videoPlace !== null && record.time[videoPlace] === record.time[place];
  }

  // Goes a number of frames on from where the page is going.
  step(frames) {
    this.show((this.target ?? this.place) + frames);
  }

  togglePlay() {
    const { video } = this;
    if (!this.isReady || video.error) return;
    if (!video.paused) return this.show(this.videoPlace);
    clearTimeout(this.waiting);
    this.target = null;
    video.play();
  }

  // Time of the video at a place.
  timeOf(place) {
    const { record, header } = this;
    return this.origin + record.time[place] - (header.startsAtZero ? 0 : record.time[0]);
  }

  // Seeks to the middle of the frame, since times of videos are rounded. One seek at a time.
  seek() {
    const { video, target, record, header } = this;
    if (video.seeking) return;
    const start = this.timeOf(target);
    const end = target + 1 < record.frames ? this.timeOf(target + 1) : start + 1 / header.fps;
    this.sought = target;
    // After its end, a video has no picture. While it is loaded, it has no duration.
    this.soughtTime = Math.min((start + end) / 2, (video.duration || Infinity) - ROUNDING);
    video.currentTime = this.soughtTime;
  }

  // True if the video has no other frame for the target than the one that it shows.
  hasSought() {
    return !this.video.seeking && this.sought === this.target;
  }

  // A frame of the video is on the screen.
  onFrame(mediaTime) {
    const { record, header } = this;
    const isFirst = this.videoPlace === null;
    this.origin ??= mediaTime;
    const time = mediaTime - this.origin + (header.startsAtZero ? 0 : record.time[0]);
    // Browsers report when a frame begins. After a seek, Firefox reports the time that was sought, which
    // is within the frame.
    const isWithin = Math.abs(mediaTime - this.soughtTime) < ROUNDING / 2;
    this.videoPlace = isWithin ? record.placeAt(time) : record.placeNear(time);
    if (isFirst) this.tell("video");
    if (this.isPlaying) {
      this.place = this.videoPlace;
      this.tell("place");
    } else if (this.isShown(this.target) || this.hasSought()) {
      this.arrive();
    } else {
      this.seek();
    }
  }

  // Goes on without the video, which shows no frames after an error.
  fail(reason) {
    clearTimeout(this.watching);
    this.videoPlace = null;
    this.sought = undefined;
    this.target ??= this.place;
    this.video.pause();
    this.tell("fail", reason);
    this.arrive();
  }
}
