/* SPDX-License-Identifier: MPL-2.0 */
/* Prints what `facetrack` measures in a video, with GStreamer's own API alone:
 *   gcc examples/read_metadata.c -o read_metadata $(pkg-config --cflags --libs gstreamer-app-1.0) -lm
 *   eval "$(make -s env)"; ./read_metadata video.mp4
 */
#include <gst/app/gstappsink.h>
#include <gst/gst.h>
#include <math.h>
#include <string.h>

/* How long a frame is waited for before the bus is asked whether there is an error. */
#define PATIENCE (100 * GST_MSECOND)

/* Little-endian 32-bit floats of a field; NULL where the field is absent. */
static const guint8 *
get_floats (const GstStructure *structure, const gchar *field, gsize *count)
{
  const GValue *value = gst_structure_get_value (structure, field);
  gsize size = 0;
  const guint8 *data = NULL;

  if (value != NULL && G_VALUE_HOLDS (value, G_TYPE_BYTES))
    data = g_bytes_get_data (g_value_get_boxed (value), &size);
  *count = size / 4;
  return data;
}

/* The value of `name` in the field `values`, whose names are in the field `names`, separated by commas; -1 where there is none. */
static gfloat
get_named (const GstStructure *structure, const gchar *names, const gchar *values,
    const gchar *name)
{
  const gchar *known = gst_structure_get_string (structure, names);
  gsize count;
  const guint8 *floats = get_floats (structure, values, &count);
  gfloat found = -1.0f;

  if (known == NULL || floats == NULL)
    return found;
  gchar **list = g_strsplit (known, ",", -1);
  for (gsize i = 0; list[i] != NULL && i < count; i++) {
    if (strcmp (list[i], name) == 0)
      found = GST_READ_FLOAT_LE (floats + 4 * i);
  }
  g_strfreev (list);
  return found;
}

/* How happy the 3-D face is that the engine eos fitted; -1 without one. */
static gfloat
get_happiness (const GstStructure *face)
{
  const GValue *fit = gst_structure_get_value (face, "morphable");

  if (fit == NULL || !GST_VALUE_HOLDS_STRUCTURE (fit))
    return -1.0f;
  return get_named (gst_value_get_structure (fit), "expression-names", "expression", "happiness");
}

/* How far the head is turned to the right of the picture, degrees: of a 4x4 matrix, camera from head, by rows. */
static gdouble
get_yaw (const guint8 *pose)
{
  const gfloat x = GST_READ_FLOAT_LE (pose + 4 * (0 * 4 + 2));
  const gfloat z = GST_READ_FLOAT_LE (pose + 4 * (2 * 4 + 2));

  return atan2 (x, z) * 180 / G_PI;
}

static void
print_face (const GstStructure *face, guint frame_width, guint frame_height)
{
  guint id = 0;
  gdouble x = 0, y = 0, width = 0, height = 0, age = 0;
  gsize landmarks, key_points, pose_values;
  const guint8 *pose = get_floats (face, "pose", &pose_values);
  gfloat jaw_open = get_named (face, "blendshape-names", "blendshapes", "jawOpen");
  gfloat happiness = get_happiness (face);

  gst_structure_get (face, "id", G_TYPE_UINT, &id, "x", G_TYPE_DOUBLE, &x, "y", G_TYPE_DOUBLE, &y,
      "width", G_TYPE_DOUBLE, &width, "height", G_TYPE_DOUBLE, &height, NULL);
  get_floats (face, "landmarks", &landmarks);
  get_floats (face, "key-points", &key_points);
  /* Coordinates are fractions of the frame that was analysed. */
  g_print ("  face %u at %.1f, %.1f", id, (x + width / 2) * frame_width,
      (y + height / 2) * frame_height);
  if (landmarks > 0)
    g_print (", %" G_GSIZE_FORMAT " landmarks", landmarks / 3);
  if (key_points > 0)
    g_print (", %" G_GSIZE_FORMAT " key points", key_points / 2);
  if (pose_values == 16)
    g_print (", yaw %.1f deg", get_yaw (pose));
  if (jaw_open >= 0)
    g_print (", jawOpen %.3f", jaw_open);
  if (gst_structure_get_double (face, "age", &age))
    g_print (", %s, %.0f years", gst_structure_get_string (face, "gender"), age);
  if (happiness >= 0)
    g_print (", happiness %.3f", happiness);
  g_print ("\n");
}

static void
print_buffer (GstBuffer *buffer)
{
  GstCustomMeta *meta = gst_buffer_get_custom_meta (buffer, "FaceTrackMeta");
  guint width = 0, height = 0, faces = 0;

  if (meta == NULL)
    return;
  const GstStructure *record = gst_custom_meta_get_structure (meta);
  gst_structure_get (record, "width", G_TYPE_UINT, &width, "height", G_TYPE_UINT, &height,
      "faces", G_TYPE_UINT, &faces, NULL);
  g_print ("%.3f s %s\n", (gdouble) GST_BUFFER_PTS (buffer) / GST_SECOND,
      gst_structure_get_string (record, "status"));
  for (guint i = 0; i < faces; i++) {
    gchar *field = g_strdup_printf ("face-%u", i);
    const GValue *face = gst_structure_get_value (record, field);
    if (face != NULL && GST_VALUE_HOLDS_STRUCTURE (face))
      print_face (gst_value_get_structure (face), width, height);
    g_free (field);
  }
}

int
main (int argc, char **argv)
{
  GError *error = NULL;

  gst_init (&argc, &argv);
  if (argc != 2) {
    g_printerr ("Usage: %s <video file>\n", argv[0]);
    return 1;
  }
  GstElement *pipeline = gst_parse_launch (
      "filesrc name=source ! decodebin ! videoconvert ! videoflip video-direction=auto ! facetrack ! "
      "appsink name=sink sync=false", &error);
  if (error != NULL) {
    g_printerr ("%s\n", error->message);
    g_clear_error (&error);
    return 1;
  }
  GstElement *source = gst_bin_get_by_name (GST_BIN (pipeline), "source");
  GstElement *sink = gst_bin_get_by_name (GST_BIN (pipeline), "sink");
  g_object_set (source, "location", argv[1], NULL);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);

  GstBus *bus = gst_element_get_bus (pipeline);
  GstMessage *failure = NULL;
  while (failure == NULL) {
    GstSample *sample = gst_app_sink_try_pull_sample (GST_APP_SINK (sink), PATIENCE);
    if (sample != NULL) {
      print_buffer (gst_sample_get_buffer (sample));
      gst_sample_unref (sample);
      continue;
    }
    failure = gst_bus_pop_filtered (bus, GST_MESSAGE_ERROR);
    if (failure == NULL && gst_app_sink_is_eos (GST_APP_SINK (sink)))
      break;
  }

  int status = failure == NULL ? 0 : 1;
  if (failure != NULL) {
    gst_message_parse_error (failure, &error, NULL);
    g_printerr ("%s\n", error->message);
    g_clear_error (&error);
    gst_message_unref (failure);
  }
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (bus);
  gst_object_unref (source);
  gst_object_unref (sink);
  gst_object_unref (pipeline);
  return status;
}
