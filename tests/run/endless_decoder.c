// SPDX-License-Identifier: MPL-2.0
// A plugin with a decoder that takes all pictures, and never yields one or ends.
#define PACKAGE "facetrack"
#include <gst/gst.h>

static GstStaticPadTemplate input = GST_STATIC_PAD_TEMPLATE("sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS("image/jpeg"));
static GstStaticPadTemplate output = GST_STATIC_PAD_TEMPLATE("src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS("video/x-raw"));

typedef GstElement EndlessDecoder;
typedef GstElementClass EndlessDecoderClass;
G_DEFINE_TYPE(EndlessDecoder, endless_decoder, GST_TYPE_ELEMENT)

static GstFlowReturn take(GstPad *pad, GstObject *parent, GstBuffer *buffer) {
    (void)pad, (void)parent;
    gst_buffer_unref(buffer);
    return GST_FLOW_OK;
}

static gboolean take_event(GstPad *pad, GstObject *parent, GstEvent *event) {
    (void)pad, (void)parent;
    gst_event_unref(event);
    return TRUE;
}

static void endless_decoder_class_init(EndlessDecoderClass *class) {
    gst_element_class_add_static_pad_template(class, &input);
    gst_element_class_add_static_pad_template(class, &output);
    gst_element_class_set_static_metadata(class, "Endless", "Codec/Decoder/Video", "Never ends", "facetrack");
}

static void endless_decoder_init(EndlessDecoder *self) {
    GstPad *pad = gst_pad_new_from_static_template(&input, "sink");
    gst_pad_set_chain_function(pad, take);
    gst_pad_set_event_function(pad, take_event);
    gst_element_add_pad(self, pad);
    gst_element_add_pad(self, gst_pad_new_from_static_template(&output, "src"));
}

static gboolean start(GstPlugin *plugin) {
    return gst_element_register(plugin, "endlessdecoder", GST_RANK_PRIMARY + 100, endless_decoder_get_type());
}

GST_PLUGIN_DEFINE(GST_VERSION_MAJOR, GST_VERSION_MINOR, endless, "Never ends", start, "1.0", "MPL", PACKAGE, "https://example.org")
