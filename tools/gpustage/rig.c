/* tools/gpustage/rig.c -- the views as a camera rig in COLMAP's conventions: the reference sensor, here the
   first view, is the rig's origin, and every other one is placed relative to it. Writes no file. */
#include "rig.h"

#include "json.h"

#include <math.h>
#include <stdio.h>

/* out = transposed(a) * b: from b's frame into a's, for rotations camera to world. */
static void rig_relative(const double a[9], const double b[9], double out[9]) {
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 3; c++)
            out[3 * r + c] = a[r] * b[c] + a[3 + r] * b[3 + c] + a[6 + r] * b[6 + c];
}

/* The largest component is found first, so that nothing small is divided by. The sign makes w (or what comes
   first) positive. */
static void rig_quaternion(const double m[9], double q[4]) {
    const double squares[4] = {1.0 + m[0] + m[4] + m[8], 1.0 + m[0] - m[4] - m[8], 1.0 - m[0] + m[4] - m[8],
                               1.0 - m[0] - m[4] + m[8]};
    const double sums[4][4] = {{squares[0], m[7] - m[5], m[2] - m[6], m[3] - m[1]},
                               {m[7] - m[5], squares[1], m[1] + m[3], m[2] + m[6]},
                               {m[2] - m[6], m[1] + m[3], squares[2], m[5] + m[7]},
                               {m[3] - m[1], m[2] + m[6], m[5] + m[7], squares[3]}};
    int best = 0;
    for (int i = 1; i < 4; i++)
        if (squares[i] > squares[best])
            best = i;
    double length = 0.0;
    for (int i = 0; i < 4; i++)
        length += sums[best][i] * sums[best][i];
    length = sums[best][0] < 0.0 ? -sqrt(length) : sqrt(length);
    for (int i = 0; i < 4; i++)
        q[i] = sums[best][i] == 0.0 ? 0.0 : sums[best][i] / length; /* no -0 in the file */
}

void rig_camera_make(const rig_views* self, uint32_t index, rig_camera* out) {
    static const double identity[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    double rig_rotation[9], rotation[9], relative[9], camera[4] = {0.0, 0.0, 0.0, 0.0};
    gpst_view_rotation(&self->views[0], rig_rotation);
    gpst_view_rotation(&self->views[index], rotation);
    rig_relative(rotation, rig_rotation, relative);
    rig_quaternion(relative, out->cam_from_rig);
    rig_relative(rotation, identity, relative);
    rig_quaternion(relative, out->cam_from_panorama);
    (void)gpst_warp_query_camera(self->warp, index, camera); /* which the warp has */
    out->fx = camera[0], out->fy = camera[1];
    out->cx = camera[2], out->cy = camera[3];
}

/* To a billionth of a pixel: 960, not 960.00000000000011. */
double rig_round(double pixels) { return floor(pixels * 1e9 + 0.5) / 1e9; }

static void rig_list(json* self, const char* key, const double* values, int n) {
    json_open(self, key, '[');
    for (int i = 0; i < n; i++)
        json_number(self, NULL, values[i]);
    json_close(self, ']');
}

/* image_suffix and cam_from_panorama_rotation are ours: COLMAP passes over names it does not know. */
static void rig_write_camera(json* self, const rig_camera* camera, uint32_t index, const char* extension,
                             bool suffixes) {
    static const double origin[3] = {0.0, 0.0, 0.0};
    const double params[4] = {rig_round(camera->fx), rig_round(camera->fy), camera->cx, camera->cy};
    char name[48];
    json_open(self, NULL, '{');
    snprintf(name, sizeof name, "v%02u/", (unsigned)index);
    json_string(self, "image_prefix", name);
    snprintf(name, sizeof name, "_v%02u.%.16s", (unsigned)index, extension);
    if (suffixes)
        json_string(self, "image_suffix", name);
    if (index == 0) { /* COLMAP refuses a pose for the reference sensor */
        json_bool(self, "ref_sensor", true);
    } else {
        rig_list(self, "cam_from_rig_rotation", camera->cam_from_rig, 4);
        rig_list(self, "cam_from_rig_translation", origin, 3);
    }
    json_string(self, "camera_model_name", "PINHOLE");
    rig_list(self, "camera_params", params, 4);
    rig_list(self, "cam_from_panorama_rotation", camera->cam_from_panorama, 4);
    json_close(self, '}');
}

text rig_make_json(const rig_views* self, const char* extension, bool suffixes) {
    json writer = GPST_ZERO;
    json_open(&writer, NULL, '[');
    json_open(&writer, NULL, '{');
    json_open(&writer, "cameras", '[');
    for (uint32_t i = 0; i < self->n_views; i++) {
        rig_camera camera;
        rig_camera_make(self, i, &camera);
        rig_write_camera(&writer, &camera, i, extension, suffixes);
    }
    json_close(&writer, ']');
    json_close(&writer, '}');
    json_close(&writer, ']');
    return writer.out;
}
