/* tools/gpustage/rig.h -- the views as cameras: as a rig in COLMAP's conventions, as frames in nerfstudio's. */
#ifndef GPST_TOOL_RIG_H
#define GPST_TOOL_RIG_H

#include "inputs.h"
#include "outputs.h"

/* Views as they were asked for. */
typedef struct rig_views {
    const gpst_view* views;
    uint32_t n_views, width, height;
    const gpst_warp* warp; /* which makes them */
} rig_views;

/* One view as a pinhole camera. World: x right, y down, z forward, as the panorama's middle is seen. Pixel
   centres are at half pixels: (0.5, 0.5) is the middle of the first pixel. */
typedef struct rig_camera {
    double fx, fy, cx, cy;
    double cam_from_rig[4]; /* quaternion w, x, y, z; the rig is the first view */
    double cam_from_panorama[4];
} rig_camera;

void rig_camera_make(const rig_views* self, uint32_t index, rig_camera* out);
double rig_round(double pixels); /* to a billionth: 960, not 960.00000000000011 */
/* rig_config.json. suffixes: in one folder the views of a camera are told by how they end, which COLMAP does not do. */
text rig_make_json(const rig_views* self, const char* extension, bool suffixes);

/* transforms.c: transforms.json with a frame for each view of the inputs that are whole, but for those whose files it
   cannot name: JSON is UTF-8. */
bool transforms_can_name(const outputs* names, const char* stem);
text transforms_make_json(const rig_views* self, const outputs* names, const input_list* inputs);

#endif
