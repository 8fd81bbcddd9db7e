/* SPDX-License-Identifier: MPL-2.0 */
/* Runs a pipeline with the elements of the plugin, which is linked into the program. First, `cargo cinstall` has to install the
 * library, as docs/installing.md describes:
 *   gcc examples/static_plugin.c -o static_plugin $(pkg-config --cflags --libs gstfacetrack gstreamer-video-1.0 gio-2.0) -lm
 *   ./static_plugin "videotestsrc num-buffers=10 ! facetrack engine=scripted ! trackjsonsink location=faces.json"
 */
#include <gst/gst.h>

GST_PLUGIN_STATIC_DECLARE (facetrack);

/* Prints the error of a message that is none of the end. */
static gboolean
is_end (GstMessage *message)
{
  GError *error = NULL;

  if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_EOS)
    return TRUE;
  gst_message_parse_error (message, &error, NULL);
  gst_printerrln ("%s", error->message);
  g_error_free (error);
  return FALSE;
}

static gboolean
play_to_end (GstElement *pipeline)
{
  GstBus *bus = gst_element_get_bus (pipeline);

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  GstMessage *message = gst_bus_timed_pop_filtered (bus, GST_CLOCK_TIME_NONE,
      GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  gboolean has_ended = is_end (message);

  gst_message_unref (message);
  gst_object_unref (bus);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  return has_ended;
}

int
main (int argc, char **argv)
{
  GError *error = NULL;

  gst_init (&argc, &argv);
  GST_PLUGIN_STATIC_REGISTER (facetrack);
  if (argc != 2) {
    gst_printerrln ("usage: %s PIPELINE", argv[0]);
    return 2;
  }
  GstElement *pipeline = gst_parse_launch (argv[1], &error);

  if (error != NULL) {
    gst_printerrln ("%s", error->message);
    g_error_free (error);
    gst_clear_object (&pipeline);
    return 1;
  }
  gboolean has_ended = play_to_end (pipeline);

  gst_object_unref (pipeline);
  return has_ended ? 0 : 1;
}
