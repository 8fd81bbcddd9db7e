# SPDX-License-Identifier: MPL-2.0
# Every line of a recipe is a command that can be typed by hand.

TARGET = $(or $(CARGO_TARGET_DIR),target)
# What make sets up for use in the checkout, which builds in less than half the time, and what is
# installed and measured.
QUICK = $(TARGET)/quick
RELEASE = $(TARGET)/release
FACETRACK = $(QUICK)/facetrack

# What programs with a window load when they open it, and the camera of a desktop.
WINDOWS = gstreamer1.0-x libx11-6 libx11-xcb1 libxcursor1 libxi6 libxkbcommon-x11-0 libwayland-client0 gstreamer1.0-pipewire

VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)

# Where GStreamer searches is up to GStreamer, whatever PREFIX is.
PREFIX = /usr/local
PLUGINSDIR = $(shell pkg-config --variable=pluginsdir gstreamer-1.0)
# Empty keeps the debug symbols.
STRIP = -s

# Arguments of cargo for the plugin. Empty builds it without the feature `analytics`.
FEATURES = $(shell scripts/analytics-feature.sh)
# The library for this feature, where GStreamer has it. Its headers need 0.8 GB, with those of OpenCV.
ANALYTICS = $(shell pkg-config --atleast-version=1.24 gstreamer-1.0 && echo libgstreamer-plugins-bad1.0-dev)

# What the sanitizers build for, and the modules of the domain that call no C and read no large file.
HOST = $(shell rustc -vV | sed -n 's/^host: //p')
PURE = nms:: tracker:: motion:: speaking:: words:: geometry:: schedule:: smoothing:: packet:: record:: replay::

# The program that runs what cargo built.
OLD_CPU = CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER
# Tests that compare engines and networks with recordings of the originals.
PARITY = drawn_face pictures_are litert yield

.DEFAULT_GOAL = help
.PHONY: help demo preview test-packages test test-cluster test-blender test-view test-debian test-deb test-aarch64 test-bits test-old-cpu attack soak sanitize bench fuzz pictures doctor setup env build packages lint features api audit msrv crates deb dist reproducible test-install install uninstall clean

##@ Use

help: ## List the targets
	@sed -n -e 's/^##@ \(.*\)/\n\1:/p' -e 's/^\([a-z0-9-]*\):.*## /  \1\t/p' Makefile | expand -t 18

demo: setup ## Track a sample clip and show the result; sets up everything first
	scripts/demo.sh $(FACETRACK) $(TARGET)/demo.json

preview: setup ## Show a camera or SOURCE=<video> with what is tracked; without a camera the sample clip
	scripts/system-packages.sh $(WINDOWS)
	@echo "Building the preview. The first time this takes some minutes, then a window opens."
	eval "$$($(FACETRACK) env)" && cargo run --profile quick --locked --package facetrack-preview -- $(if $(SOURCE),'$(subst ','\'',$(SOURCE))')

# GStreamer searches the whole tree under a plugin path, so the plugin has a folder of its own.
setup: packages ## Install system packages, build for use in this checkout, fetch models
	@echo "Building the plugin. The first time this takes some minutes."
	cargo build --profile quick --locked $(FEATURES)
	mkdir -p $(QUICK)/gstreamer-1.0
	ln -sf ../libgstfacetrack.so $(QUICK)/gstreamer-1.0/libgstfacetrack.so
	$(FACETRACK) fetch

build: packages ## Build the plugin in release, with all optimisations
	cargo build --release --locked $(FEATURES)
	mkdir -p $(RELEASE)/gstreamer-1.0
	ln -sf ../libgstfacetrack.so $(RELEASE)/gstreamer-1.0/libgstfacetrack.so

# Folders of completions.
BASH = share/bash-completion/completions
FISH = share/fish/vendor_completions.d
ZSH = share/zsh/site-functions
MAN = share/man/man1
PAGES = facetrack $(addprefix facetrack-, blur completions doctor env export fetch index path run view)

install: ## Install the built plugin and tools, stripped (PREFIX, PLUGINSDIR, DESTDIR, STRIP)
	@[ -e $(RELEASE)/libgstfacetrack.so ] || { echo "There is nothing to install yet: run 'make build'" >&2; exit 1; }
	install -D $(STRIP) -m 755 $(RELEASE)/libgstfacetrack.so '$(DESTDIR)$(PLUGINSDIR)/libgstfacetrack.so'
	install -D $(STRIP) -m 755 $(RELEASE)/facetrack '$(DESTDIR)$(PREFIX)/bin/facetrack'
	install -D $(STRIP) -m 755 $(RELEASE)/facetrack-worker '$(DESTDIR)$(PREFIX)/bin/facetrack-worker'
	install -d '$(DESTDIR)$(PREFIX)/$(BASH)' '$(DESTDIR)$(PREFIX)/$(FISH)' '$(DESTDIR)$(PREFIX)/$(ZSH)' '$(DESTDIR)$(PREFIX)/$(MAN)'
	$(RELEASE)/facetrack completions bash >'$(DESTDIR)$(PREFIX)/$(BASH)/facetrack'
	$(RELEASE)/facetrack completions fish >'$(DESTDIR)$(PREFIX)/$(FISH)/facetrack.fish'
	$(RELEASE)/facetrack completions zsh >'$(DESTDIR)$(PREFIX)/$(ZSH)/_facetrack'
	$(RELEASE)/facetrack man '$(DESTDIR)$(PREFIX)/$(MAN)'

uninstall: ## Remove what 'make install' installed (PREFIX, PLUGINSDIR, DESTDIR); fetched files stay
	rm -f '$(DESTDIR)$(PLUGINSDIR)/libgstfacetrack.so' '$(DESTDIR)$(PREFIX)/bin/facetrack' '$(DESTDIR)$(PREFIX)/bin/facetrack-worker' \
		'$(DESTDIR)$(PREFIX)/$(BASH)/facetrack' '$(DESTDIR)$(PREFIX)/$(FISH)/facetrack.fish' '$(DESTDIR)$(PREFIX)/$(ZSH)/_facetrack' \
		$(patsubst %,'$(DESTDIR)$(PREFIX)/$(MAN)/%.1',$(PAGES))

doctor: $(FACETRACK) ## Say what is installed and what is missing, with the commands that install it
	@$(FACETRACK) doctor

env: $(FACETRACK) ## Print the exports that let gst-launch-1.0 find the built plugin
	@$(FACETRACK) env

# Without GStreamer, so that the doctor can say that GStreamer is missing.
$(FACETRACK):
	cargo build --profile quick --locked --package facetrack-cli

packages: ## Install missing system packages
	scripts/system-packages.sh

clean: ## Remove what was built; fetched files stay
	cargo clean
	cargo clean --manifest-path fuzz/Cargo.toml

##@ Develop

# Many tests wait for pipelines and programs, so two run on each core.
test: test-packages ## Run every test; sets up what is missing first
	cargo test --locked --workspace $(FEATURES) --no-run
	$(TARGET)/debug/facetrack fetch
	$(TARGET)/debug/facetrack fetch onnxruntime pictures
	$(TARGET)/debug/facetrack fetch eos || echo 'The tests of eos are left out: its server cannot be reached.'
	RUST_TEST_THREADS=$$(($$(nproc) * 2)) cargo test --locked --workspace $(FEATURES)
	mkdir -p $(TARGET)/debug/gstreamer-1.0
	ln -sf ../deps/libgstfacetrack.so $(TARGET)/debug/gstreamer-1.0/libgstfacetrack.so
	eval "$$($(TARGET)/debug/facetrack env)" && scripts/python.sh tests pytest -q -n logical --maxprocesses 4 python/tests --ignore python/tests/clusters --ignore python/tests/blender --ignore python/tests/browser

test-packages: packages
	scripts/system-packages.sh python3-matplotlib python3-venv $(WINDOWS) xvfb gir1.2-gst-rtsp-server-1.0 ffmpeg meson strace

lint: ## Check formatting, lints, types, spelling and documentation, and that the library needs no GStreamer
	cargo fmt --check
	cargo fmt --check --manifest-path fuzz/Cargo.toml
	cargo clippy --locked --workspace --all-targets $(FEATURES) -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --locked --workspace --no-deps
	scripts/python.sh tests sh -c 'cd python && ruff check . && ruff format --check . && mypy'
	scripts/python.sh tests typos
	tree=$$(cargo tree --locked --package facetrack --package facetrack-cli --edges normal) && ! echo "$$tree" | grep gstreamer

features: ## Check the library with each engine alone, by default, and with everything, and the plugin without GPU
	for features in mediapipe opencv-haar opencv-yunet opencv-yunet-pyfeat openseeface eos insightface scripted mediapipe,onnxruntime insightface,gpu; do \
		cargo check --locked --package facetrack --lib --no-default-features --features $$features || exit 1; \
	done
	cargo check --locked --package facetrack --lib
	cargo check --locked --package facetrack --lib --all-features
	cargo check --locked --package gst-plugin-facetrack --package facetrack-cli --no-default-features

api: ## Compare the public items of the library with the recorded ones (UPDATE_API=1 records them)
	scripts/public-api.sh

audit: ## Check licences, origin and known vulnerabilities of the dependencies
	scripts/audit.sh

attack: test-packages ## Attack the elements for FACTOR times as long as make test does (20)
	cargo build --locked --package facetrack-cli && $(TARGET)/debug/facetrack fetch
	FACETRACK_ATTACK=$(or $(FACTOR),20) cargo test --locked --test attack

# Seconds for each target.
SECONDS = 60

fuzz: ## Fuzz every reader for SECONDS each, or only TARGETS, from fuzz/corpus on
	scripts/system-packages.sh g++
	fuzz/run $(SECONDS) $(TARGETS)

soak: setup ## Play FRAMES frames (100000) and LOADS loads (1000) per engine and check memory; ENGINES limits it
	eval "$$($(FACETRACK) env)" && cargo bench --locked --bench soak -- $(or $(FRAMES),100000) $(or $(LOADS),1000) $(ENGINES)

# ThreadSanitizer needs an instrumented standard library, so a nightly toolchain. It cannot see the
# locks of GLib, so it is only for the domain, as is Miri, which runs no C. Miri tries several orders
# of the threads that wait for each other. The head pose is left out, because nalgebra's singular
# value decomposition violates stacked borrows. So does rayon's thread pool, which also never ends:
# tests with it follow the rules of tree borrows, and its memory does not count as leaked.
sanitize: test-packages ## Run tests with AddressSanitizer, ThreadSanitizer and Miri (rustup, an hour)
	rustup toolchain install nightly --profile minimal --component miri --component rust-src
	RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address ASAN_OPTIONS=detect_leaks=0 cargo test --locked \
		--target $(HOST) --target-dir $(TARGET)/address -p facetrack -p facetrack-assets -p facetrack-graph -p facetrack-net -p gst-plugin-facetrack --lib --test domain --test operators --test network --test attack
	RUSTFLAGS=-Zsanitizer=thread cargo +nightly test --locked -Zbuild-std \
		--target $(HOST) --target-dir $(TARGET)/thread -p facetrack --lib --test domain
	MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test --locked \
		--target-dir $(TARGET)/miri -p facetrack --lib -- $(PURE) --skip mediapipe::geometry
	MIRIFLAGS='-Zmiri-disable-isolation -Zmiri-many-seeds=0..32' cargo +nightly miri test --locked \
		--target-dir $(TARGET)/miri -p facetrack --lib -- device::permit
	MIRIFLAGS='-Zmiri-disable-isolation -Zmiri-many-seeds=0..8' cargo +nightly miri test --locked \
		--target-dir $(TARGET)/miri -p facetrack --lib -- runtime::pool workers::
	MIRIFLAGS='-Zmiri-disable-isolation -Zmiri-tree-borrows -Zmiri-ignore-leaks -Zmiri-many-seeds=0..8' \
		cargo +nightly miri test --locked --target-dir $(TARGET)/miri -p facetrack --lib -- engine::parallel

bench: build ## Write BENCHMARKS.md, or renew its SECTIONS; REPEATS=<rounds>; OPENSEEFACE=<checkout> adds OpenSeeFace
	scripts/system-packages.sh libgl1 libegl1 libgles2 util-linux
	$(RELEASE)/facetrack fetch
	$(RELEASE)/facetrack fetch onnxruntime
	[ ! -e "$$($(RELEASE)/facetrack path sfm_shape_3448.bin)" ] || scripts/system-packages.sh g++ cmake python3-dev
	eval "$$($(RELEASE)/facetrack env)" && benches/report.py $(if $(REPEATS),--repeats $(REPEATS)) \
		$(if $(OPENSEEFACE),--openseeface '$(OPENSEEFACE)') $(SECTIONS)

pictures: setup ## Redraw the pictures of the documentation from a portrait in the public domain
	scripts/system-packages.sh python3-matplotlib ffmpeg
	$(FACETRACK) fetch pictures
	eval "$$($(FACETRACK) env)" && scripts/pictures.sh "$$($(FACETRACK) path astronaut.png)" docs/pictures

test-cluster: test-packages ## Test on clusters of two nodes on this machine, by Ray and by Slurm (Debian, root, 1 GB)
	scripts/system-packages.sh slurmctld slurmd slurm-client munge
	cargo build --locked --features test-faults
	$(TARGET)/debug/facetrack fetch
	eval "$$($(TARGET)/debug/facetrack env)" && scripts/python.sh clusters pytest -q python/tests/clusters

test-blender: test-packages ## Animate a mesh in Blender from a tracked clip (Debian, 1 GB)
	scripts/system-packages.sh blender
	cargo build --locked
	$(TARGET)/debug/facetrack fetch
	eval "$$($(TARGET)/debug/facetrack env)" && scripts/python.sh tests pytest -q python/tests/blender

BROWSERS = chromium firefox

test-view: test-packages ## Test the pages of `facetrack view` in Chromium and Firefox, or BROWSERS (Debian, 0.7 GB)
	scripts/system-packages.sh $(patsubst firefox,firefox-esr,$(patsubst chromium,chromium chromium-driver,$(BROWSERS)))
	cargo test --locked --workspace $(FEATURES) --no-run
	mkdir -p $(TARGET)/debug/gstreamer-1.0
	ln -sf ../deps/libgstfacetrack.so $(TARGET)/debug/gstreamer-1.0/libgstfacetrack.so
	$(TARGET)/debug/facetrack fetch
	$(TARGET)/debug/facetrack fetch pictures
	eval "$$($(TARGET)/debug/facetrack env)" && PATH=$(if $(findstring firefox,$(BROWSERS)),$$(scripts/cargo-tool.sh geckodriver 0.37.1):)$$PATH \
		BROWSERS='$(BROWSERS)' scripts/python.sh tests pytest -q python/tests/browser

##@ Release

msrv: packages ## Check that the oldest supported Rust is enough (rustup)
	scripts/msrv.sh

# Debian 13 has the first GStreamer with analytics.
test-debian: ## Run every test in Rust and build the package on SUITE (trixie), in a folder (Debian, root or sudo)
	scripts/test-debian.sh $(or $(SUITE),trixie)

test-aarch64: test-packages ## Build for aarch64 in a folder and test it in an emulator (Debian, root or sudo)
	cargo build --locked
	$(TARGET)/debug/facetrack fetch
	mkdir -p $(TARGET)/debug/gstreamer-1.0
	ln -sf ../libgstfacetrack.so $(TARGET)/debug/gstreamer-1.0/libgstfacetrack.so
	scripts/test-aarch64.sh $(TARGET)/debug/facetrack $(TARGET)/debug/gstreamer-1.0 $(PARITY)

test-bits: packages ## Compare records of this processor with those of emulated ones, byte for byte (Debian, x86-64, rustup)
	scripts/system-packages.sh qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross ffmpeg
	rustup target add aarch64-unknown-linux-gnu
	cargo build --locked --package facetrack-cli && $(TARGET)/debug/facetrack fetch
	scripts/test-bits.sh $(TARGET)/debug/facetrack $(TARGET)

# What a processor of 2008 has: SSE4.2, no AVX. The other one has nothing beyond SSE3.
test-old-cpu: test-packages ## Test the engines on emulated processors without AVX and without SSE4 (Debian, x86-64)
	@[ "$(HOST)" = x86_64-unknown-linux-gnu ] || { echo "test-old-cpu needs an x86-64 machine, not $(HOST)" >&2; exit 1; }
	scripts/system-packages.sh qemu-user
	cargo build --locked --package facetrack-cli && $(TARGET)/debug/facetrack fetch
	$(OLD_CPU)='qemu-x86_64 -cpu Nehalem' cargo test --locked --package facetrack --test engines -- $(PARITY)
	$(OLD_CPU)='qemu-x86_64 -cpu qemu64' cargo test --locked --package facetrack --test engines -- $(PARITY)

deb: packages ## Build the Debian package into target/deb
	scripts/system-packages.sh appstream build-essential debhelper $(ANALYTICS)
	scripts/deb.sh

test-deb: packages ## Install and use the Debian package in bare Debian 12 and 13 folders (Debian 12, root or sudo)
	scripts/test-deb.sh

test-install: packages ## Compare what cargo-c and meson install, and link the plugin into a program in C
	scripts/system-packages.sh meson
	scripts/test-install.sh $(TARGET)/install

dist: packages ## Write a tarball with the sources of all crates, and the bills of materials, to $(TARGET)/dist
	scripts/system-packages.sh xz-utils
	scripts/dist.sh $(TARGET)/dist

reproducible: dist ## Build this tarball in two folders without a network, and compare the programs
	scripts/reproducible.sh $(TARGET)/dist/gst-plugin-facetrack-$(VERSION).tar.xz

crates: packages ## Pack every crate as for a registry, print the sizes, and build each from its package
	cargo publish --workspace --dry-run --locked
