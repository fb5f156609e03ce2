/* tools/gpustage/transforms.c -- the views as nerfstudio's transforms.json. Where a frame was taken is not known: every
   camera stands at the origin, and only turns. */
#include "rig.h"

#include "json.h"

/* Camera to world. Cameras of OpenGL have y up and look along -z. In the world x is right of the panorama's middle, y
   ahead of it, and z up. */
static void transforms_write_pose(json* self, const gpst_view* view) {
    double rotation[9]; /* both with y down and z ahead */
    gpst_view_rotation(view, rotation);
    json_open(self, "transform_matrix", '[');
    for (int r = 0; r < 4; r++) {
        const double* const row = &rotation[r == 0 ? 0 : r == 1 ? 6 : 3];
        const double sign = r == 2 ? -1.0 : 1.0;
        json_open(self, NULL, '[');
        for (int c = 0; c < 4; c++)
            json_number(self, NULL, r == 3 || c == 3 ? (r == c ? 1.0 : 0.0) : (c == 0 ? sign : -sign) * row[c] + 0.0);
        json_close(self, ']');
    }
    json_close(self, ']');
}

static void transforms_write_camera(json* self, const rig_views* views, uint32_t index) {
    rig_camera camera;
    rig_camera_make(views, index, &camera);
    json_number(self, "fl_x", rig_round(camera.fx));
    json_number(self, "fl_y", rig_round(camera.fy));
}

static bool transforms_differ(const rig_views* self) {
    for (uint32_t i = 1; i < self->n_views; i++)
        if (self->views[i].hfov < self->views[0].hfov || self->views[i].hfov > self->views[0].hfov)
            return true;
    return false;
}

bool transforms_can_name(const outputs* names, const char* stem) {
    char name[OUTPUTS_PATH_BYTES];
    for (int mask = 0; mask < (names->mask_names ? 2 : 1); mask++)
        if (outputs_name(names, stem, 0, mask != 0, name, sizeof name) && !json_can_hold(name))
            return false;
    return true;
}

static bool transforms_write_frame(json* self, const rig_views* views, const outputs* names, const char* stem,
                                   uint32_t index, bool own_camera) {
    char name[OUTPUTS_PATH_BYTES];
    if (!outputs_name(names, stem, index, false, name, sizeof name))
        return false;
    json_open(self, NULL, '{');
    json_string(self, "file_path", name);
    if (names->mask_names && outputs_name(names, stem, index, true, name, sizeof name))
        json_string(self, "mask_path", name);
    if (own_camera)
        transforms_write_camera(self, views, index);
    transforms_write_pose(self, &views->views[index]);
    json_close(self, '}');
    return true;
}

text transforms_make_json(const rig_views* self, const outputs* names, const input_list* inputs) {
    static const char* const distortion[] = {"k1", "k2", "p1", "p2"};
    const bool differ = transforms_differ(self);
    json writer = GPST_ZERO;
    json_open(&writer, NULL, '{');
    json_string(&writer, "camera_model", "OPENCV");
    json_count(&writer, "w", self->width);
    json_count(&writer, "h", self->height);
    json_number(&writer, "cx", 0.5 * self->width);
    json_number(&writer, "cy", 0.5 * self->height);
    for (int i = 0; i < 4; i++)
        json_count(&writer, distortion[i], 0);
    if (!differ)
        transforms_write_camera(&writer, self, 0);
    json_open(&writer, "frames", '[');
    for (size_t i = 0; i < inputs->count; i++) {
        const input* const in = &inputs->items[i];
        const bool is_told = (in->skip || in->done) && transforms_can_name(names, in->stem);
        for (uint32_t v = 0; is_told && v < self->n_views; v++)
            writer.out.failed |= !transforms_write_frame(&writer, self, names, in->stem, v, differ);
    }
    json_close(&writer, ']');
    json_close(&writer, '}');
    return writer.out;
}
