/* tools/gpustage/rig.h -- the views as a camera rig in COLMAP's conventions. */
#ifndef GPST_TOOL_RIG_H
#define GPST_TOOL_RIG_H

#include "text.h"

/* One view as a pinhole camera. World: x right, y down, z forward, as the panorama's middle is seen. Pixel
   centres are at half pixels: (0.5, 0.5) is the middle of the first pixel. */
typedef struct rig_camera {
    double fx, fy, cx, cy;
    double cam_from_rig[4]; /* quaternion w, x, y, z; the rig is the first view */
    double cam_from_panorama[4];
} rig_camera;

void rig_camera_make(const gpst_view* first, const gpst_view* view, uint32_t width, uint32_t height,
                     rig_camera* out);
/* rig_config.json; extension: of the views' files. */
text rig_make_json(const gpst_view* views, uint32_t n_views, uint32_t width, uint32_t height,
                   const char* extension);

#endif
