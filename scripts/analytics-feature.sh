#!/bin/sh
# SPDX-License-Identifier: MPL-2.0
# Prints the argument of cargo that turns the feature `analytics` on, if GStreamer's analytics library and its headers are
# installed and recent enough.
# Usage: scripts/analytics-feature.sh
set -eu

! pkg-config --atleast-version=1.24 gstreamer-analytics-1.0 || echo --features=gst-plugin-facetrack/analytics
