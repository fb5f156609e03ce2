/* tools/scene.h -- a 360-degree scene whose colour is a function of direction and time, known everywhere
   in double precision: for the demo, and as the truth that the warp is compared with. Reads and writes no
   files.

   Directions are unit vectors: x right, y down, z forward. Edges are softened over SCENE_SOFTNESS, so that
   a picture of 4096x2048 pixels can hold the scene. */
#ifndef GPST_TOOL_SCENE_H
#define GPST_TOOL_SCENE_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SCENE_PI 3.14159265358979323846
#define SCENE_RADIANS(degrees) ((degrees) * (SCENE_PI / 180.0))
#define SCENE_SOFTNESS 0.0045 /* radians on either side of an edge: three pixels of 4096 */

typedef struct scene_vec {
    double x, y, z;
} scene_vec;

#define SCENE_N_DISCS 18
#define SCENE_N_SPHERES 6

/* What is looked at: all of it, or white discs on black for measuring where they are. */
typedef enum scene_look { SCENE_ALL = 0, SCENE_DISCS = 1 } scene_look;

/* A sphere of unit distance where it is at some frame. */
typedef struct scene_ball {
    scene_vec centre;
    double angle, radius; /* as seen, radians; of the ball */
    double reach;         /* cosine of the angle beyond which nothing of it is seen */
    const double* rgb;
} scene_ball;

/* The scene at one moment: made by scene_prepare, then only read. */
typedef struct scene {
    scene_look look;
    scene_vec sun;
    scene_vec discs[SCENE_N_DISCS];
    scene_ball balls[SCENE_N_SPHERES];
} scene;

static inline scene_vec scene_make(double x, double y, double z) {
    scene_vec v;
    v.x = x;
    v.y = y;
    v.z = z;
    return v;
}

static inline double scene_dot(scene_vec a, scene_vec b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

static inline scene_vec scene_add(scene_vec a, scene_vec b, double times) {
    return scene_make(a.x + b.x * times, a.y + b.y * times, a.z + b.z * times);
}

static inline scene_vec scene_unit(scene_vec v) {
    const double scale = 1.0 / sqrt(scene_dot(v, v));
    return scene_make(v.x * scale, v.y * scale, v.z * scale);
}

/* Yaw to the right and pitch upwards, in degrees. */
static inline scene_vec scene_direction(double yaw, double pitch) {
    const double level = cos(SCENE_RADIANS(pitch));
    return scene_make(level * sin(SCENE_RADIANS(yaw)), -sin(SCENE_RADIANS(pitch)),
                      level * cos(SCENE_RADIANS(yaw)));
}

static inline double scene_ramp(double from, double to, double value) {
    const double t = (value - from) / (to - from), c = t < 0 ? 0 : t > 1 ? 1 : t;
    return c * c * (3 - 2 * c);
}

/* How much of an edge lies inside: distance in radians, positive inside. */
static inline double scene_edge(double distance) {
    return scene_ramp(-SCENE_SOFTNESS, SCENE_SOFTNESS, distance);
}

static inline void scene_mix(double rgb[3], double r, double g, double b, double share) {
    rgb[0] += (r - rgb[0]) * share;
    rgb[1] += (g - rgb[1]) * share;
    rgb[2] += (b - rgb[2]) * share;
}

/* ---- discs at known directions -------------------------------------------------------- */

typedef struct scene_disc {
    double yaw, pitch, radius; /* degrees */
    uint8_t rgb[3];
} scene_disc;

static inline const scene_disc* scene_discs(void) {
    static const scene_disc discs[SCENE_N_DISCS] = {
        {0, 0, 3, {230, 40, 50}},        {45, 0, 3, {240, 140, 30}},       {90, 0, 3, {240, 215, 50}},
        {135, 0, 3, {120, 200, 60}},     {180, 0, 3, {40, 180, 130}},      {-135, 0, 3, {40, 150, 220}},
        {-90, 0, 3, {80, 80, 220}},      {-45, 0, 3, {180, 70, 200}},      {22.5, 45, 4, {250, 120, 140}},
        {112.5, 45, 4, {250, 220, 120}}, {-157.5, 45, 4, {120, 230, 190}}, {-67.5, 45, 4, {150, 150, 250}},
        {22.5, -45, 4, {200, 50, 80}},   {112.5, -45, 4, {200, 160, 30}},  {-157.5, -45, 4, {30, 150, 100}},
        {-67.5, -45, 4, {80, 80, 190}},  {0, 90, 6, {255, 250, 235}},      {0, -90, 6, {60, 55, 70}},
    };
    return discs;
}

/* Angle between two directions; precise for small angles, too. */
static inline double scene_angle(scene_vec a, scene_vec b) {
    const scene_vec d = scene_add(a, b, -1);
    return 2 * asin(fmin(1.0, 0.5 * sqrt(scene_dot(d, d))));
}

/* Each disc is a coloured one in a white one, with a white dot in the middle. */
static inline void scene_paint_discs(const scene* self, scene_vec d, double rgb[3]) {
    for (int i = 0; i < SCENE_N_DISCS; i++) {
        const scene_disc* disc = &scene_discs()[i];
        if (scene_dot(d, self->discs[i]) < 0.98)
            continue;
        const double angle = scene_angle(d, self->discs[i]), radius = SCENE_RADIANS(disc->radius);
        scene_mix(rgb, 255, 255, 255, scene_edge(radius - angle));
        if (self->look == SCENE_DISCS)
            continue;
        scene_mix(rgb, disc->rgb[0], disc->rgb[1], disc->rgb[2], scene_edge(0.78 * radius - angle));
        scene_mix(rgb, 255, 255, 255, scene_edge(0.2 * radius - angle));
    }
}

/* ---- the landscape ---------------------------------------------------------------------- */

/* Each quarter of the horizon has a hue; x*x + y*y + z*z = 1 makes the weights. */
static inline void scene_hue(scene_vec d, double rgb[3]) {
    static const double hues[4][3] = {{255, 150, 90}, {250, 205, 110}, {120, 170, 250}, {225, 120, 200}};
    const double up = d.y * d.y, level = 1 - up + 1e-12;
    const double weights[4] = {d.z > 0 ? d.z * d.z : 0, d.x > 0 ? d.x * d.x : 0, d.z < 0 ? d.z * d.z : 0,
                               d.x < 0 ? d.x * d.x : 0};
    for (int c = 0; c < 3; c++) {
        rgb[c] = 190 * up;
        for (int q = 0; q < 4; q++)
            rgb[c] += (1 - up) * weights[q] / level * hues[q][c];
    }
}

/* Sky without clouds: what spheres reflect, too. */
static inline void scene_sky(const scene* self, scene_vec d, double rgb[3]) {
    const double height = -d.y, toward = scene_dot(d, self->sun);
    const double glow = exp(-14 * (1 - toward)), halo = exp(-160 * (1 - toward));
    scene_hue(d, rgb);
    scene_mix(rgb, 62, 118, 200, scene_ramp(-0.05, 0.55, height) * 0.85);
    scene_mix(rgb, 22, 52, 130, scene_ramp(0.35, 1.0, height) * 0.8);
    scene_mix(rgb, 255, 225, 170, 0.55 * glow);
    scene_mix(rgb, 255, 250, 225, halo);
}

static inline void scene_clouds(scene_vec d, double rgb[3]) {
    const double height = -d.y;
    if (height < 0.02)
        return;
    const double u = 1.7 * d.x / (height + 0.25), v = 1.7 * d.z / (height + 0.25);
    const double a = sin(1.3 * u + 1.1 * sin(1.9 * v + 0.4)) + sin(1.7 * v + 1.3 * sin(1.2 * u - 1.0));
    const double b = sin(4.1 * u + 2.0 * a) * sin(3.7 * v - 1.6 * a) + 0.5 * sin(7.3 * v + 2.2 * u + 3.0 * a);
    scene_mix(rgb, 255, 250, 245, 0.75 * scene_ramp(0.3, 2.3, a + 0.5 * b) * scene_ramp(0.03, 0.3, height));
}

static inline void scene_hills(double yaw, double pitch, const double hue[3], double rgb[3]) {
    const double far_edge = 0.085 + 0.035 * sin(2 * yaw + 1.0) + 0.022 * sin(5 * yaw) +
                            0.012 * sin(11 * yaw + 2.0) + 0.005 * sin(29 * yaw + 0.7);
    const double near_edge = 0.022 + 0.026 * sin(3 * yaw + 3.5) + 0.013 * sin(8 * yaw + 4.0) +
                             0.006 * sin(19 * yaw + 1.0) + 0.003 * sin(41 * yaw);
    const double far_share = scene_edge(far_edge - pitch), near_share = scene_edge(near_edge - pitch);
    const double depth = scene_ramp(-0.02, 0.16, pitch);
    scene_mix(rgb, 0.42 * hue[0] + 30 * depth, 0.44 * hue[1] + 34 * depth, 0.5 * hue[2] + 60 * depth,
              far_share);
    scene_mix(rgb, 0.22 * hue[0] + 8, 0.30 * hue[1] + 22, 0.26 * hue[2] + 18, near_share);
}

/* A square wave of period 2 from -1 to 1 whose edges take `soft`; where that is too much it fades to its
   mean. */
static inline double scene_wave(double at, double soft) {
    const double phase = at - 2 * floor(at / 2), inside = phase < 1 ? phase : phase - 1;
    const double distance = (inside < 0.5 ? inside : 1 - inside) / soft;
    const double level =
        soft < 0.5 ? scene_ramp(-1, 1, distance) * 2 - 1 : distance * scene_ramp(2.0, 0.5, soft) * 0.7;
    return phase < 1 ? level : -level;
}

/* Tiles on a plane below, going into haze. */
static inline void scene_floor(scene_vec d, const double hue[3], double rgb[3]) {
    const double share = scene_edge(d.y);
    if (share <= 0)
        return;
    const double y = d.y > 0.02 ? d.y : 0.02, scale = 1.4;
    const double soft = scale * SCENE_SOFTNESS / (y * y);
    const double tile = scene_wave(scale * d.x / y, soft) * scene_wave(scale * d.z / y, soft);
    const double light = 0.5 + 0.5 * tile * scene_ramp(1.2, 0.2, soft), haze = exp(-7 * y);
    double tiles[3] = {38, 44, 58};
    scene_mix(tiles, 0.75 * hue[0] + 50, 0.75 * hue[1] + 50, 0.75 * hue[2] + 50, light);
    scene_mix(tiles, 0.55 * hue[0] + 40, 0.55 * hue[1] + 40, 0.55 * hue[2] + 55, haze);
    scene_mix(rgb, tiles[0], tiles[1], tiles[2], share);
}

/* Lines of yaw and pitch every 15 degrees, of one width everywhere; those of yaw end before the poles. */
static inline void scene_lines(scene_vec d, double yaw, double pitch, double rgb[3]) {
    const double step = SCENE_RADIANS(15), half = SCENE_RADIANS(0.06);
    const double level = cos(pitch), around = yaw - step * floor(yaw / step + 0.5);
    const double meridian = half - fabs(asin(level * sin(around)));
    const double parallel = half - fabs(pitch - step * floor(pitch / step + 0.5));
    const double strength = d.y > 0 ? 0.35 : 0.5;
    scene_mix(rgb, 255, 255, 255, strength * scene_edge(meridian) * scene_ramp(0.1, 0.3, level));
    scene_mix(rgb, 255, 255, 255, strength * scene_edge(parallel) * scene_ramp(0.05, 0.2, level));
}

/* Everything that does not move, in 0..255. */
static inline void scene_background(const scene* self, scene_vec d, double rgb[3]) {
    rgb[0] = rgb[1] = rgb[2] = 0;
    if (self->look == SCENE_ALL) {
        const double yaw = atan2(d.x, d.z), pitch = atan2(-d.y, sqrt(d.x * d.x + d.z * d.z));
        double hue[3];
        scene_hue(d, hue);
        scene_sky(self, d, rgb);
        scene_clouds(d, rgb);
        scene_hills(yaw, pitch, hue, rgb);
        scene_floor(d, hue, rgb);
        scene_lines(d, yaw, pitch, rgb);
    }
    scene_paint_discs(self, d, rgb);
}

/* ---- spheres that go round ---------------------------------------------------------------- */

typedef struct scene_sphere {
    double yaw, pitch, radius, yaw_a_frame; /* degrees */
    double rgb[3];
} scene_sphere;

static inline const scene_sphere* scene_spheres(void) {
    static const scene_sphere spheres[SCENE_N_SPHERES] = {
        {-20, 17, 9, 3.0, {215, 60, 60}},    {70, -20, 11, -2.0, {240, 190, 60}},
        {150, 22, 8, 2.5, {70, 190, 120}},   {-110, -14, 10, 1.5, {60, 120, 230}},
        {-160, 33, 7, -3.5, {200, 90, 220}}, {20, -24, 8, 4.0, {240, 240, 240}},
    };
    return spheres;
}

/* The scene at a frame; fractions are fine. */
static inline void scene_prepare(scene* self, scene_look look, double frame) {
    self->look = look;
    self->sun = scene_direction(38, 24);
    for (int i = 0; i < SCENE_N_DISCS; i++)
        self->discs[i] = scene_direction(scene_discs()[i].yaw, scene_discs()[i].pitch);
    for (int i = 0; i < SCENE_N_SPHERES; i++) {
        const scene_sphere* sphere = &scene_spheres()[i];
        scene_ball* ball = &self->balls[i];
        ball->centre = scene_direction(sphere->yaw + sphere->yaw_a_frame * frame, sphere->pitch);
        ball->angle = SCENE_RADIANS(sphere->radius);
        ball->radius = sin(ball->angle);
        ball->reach = cos(ball->angle + SCENE_SOFTNESS);
        ball->rgb = sphere->rgb;
    }
}

static inline void scene_paint_ball(const scene* self, const scene_ball* ball, scene_vec d, double rgb[3]) {
    const double along = scene_dot(d, ball->centre);
    if (along <= ball->reach)
        return;
    const double under = along * along - 1 + ball->radius * ball->radius;
    const double distance = along - sqrt(under > 0 ? under : 0);
    const scene_vec hit = scene_make(d.x * distance, d.y * distance, d.z * distance);
    const scene_vec normal = scene_unit(scene_add(hit, ball->centre, -1));
    const double facing = -scene_dot(normal, d);
    const scene_vec mirror = scene_add(d, normal, 2 * facing);
    const double lit = 0.5 + 0.5 * scene_dot(normal, self->sun), shine = scene_dot(mirror, self->sun);
    double color[3], sky[3];
    for (int c = 0; c < 3; c++)
        color[c] = ball->rgb[c] * (0.34 + 0.8 * lit * lit);
    scene_sky(self, mirror, sky);
    scene_mix(color, sky[0], sky[1], sky[2], 0.12 + 0.35 * pow(1 - (facing > 0 ? facing : 0), 3));
    scene_mix(color, 255, 252, 240, 0.9 * scene_ramp(0.955, 0.995, shine));
    scene_mix(rgb, color[0], color[1], color[2], scene_edge(ball->angle - scene_angle(d, ball->centre)));
}

/* ---- pictures -------------------------------------------------------------------------------- */

static inline uint8_t scene_byte(double value) {
    return (uint8_t)(value <= 0 ? 0 : value >= 255 ? 255 : value + 0.5);
}

static inline void scene_store(const double rgb[3], uint8_t* out) {
    for (int c = 0; c < 3; c++)
        out[c] = scene_byte(rgb[c]);
}

/* Colour in a direction, as it would be without rounding. */
static inline void scene_color(const scene* self, scene_vec d, double rgb[3]) {
    scene_background(self, d, rgb);
    for (int i = 0; self->look == SCENE_ALL && i < SCENE_N_SPHERES; i++)
        scene_paint_ball(self, &self->balls[i], d, rgb);
}

#if defined(_OPENMP)
#define SCENE_ROWS_IN_PARALLEL _Pragma("omp parallel for schedule(dynamic, 8)")
#else
#define SCENE_ROWS_IN_PARALLEL
#endif

/* Sine and cosine of the yaw of every column; NULL when out of memory. */
static inline double* scene_columns(int width) {
    double* table = (double*)malloc(2 * (size_t)width * sizeof *table);
    for (int x = 0; table && x < width; x++) {
        const double yaw = SCENE_PI * ((2.0 * x + 1.0) / width - 1.0);
        table[2 * x] = sin(yaw);
        table[2 * x + 1] = cos(yaw);
    }
    return table;
}

static inline double scene_row_pitch(int y, int height) { return SCENE_PI * (0.5 - (y + 0.5) / height); }

/* The equirectangular picture of all that does not move: RGB, rows without gaps, pixel centres at half
   pixels, forward in the middle. False: out of memory. */
static inline bool scene_render_background(const scene* self, int width, int height, uint8_t* out) {
    double* columns = scene_columns(width);
    if (!columns)
        return false;
    SCENE_ROWS_IN_PARALLEL
    for (int y = 0; y < height; y++) {
        const double pitch = scene_row_pitch(y, height), level = cos(pitch), down = -sin(pitch);
        for (int x = 0; x < width; x++) {
            double rgb[3];
            scene_background(self, scene_make(level * columns[2 * x], down, level * columns[2 * x + 1]), rgb);
            scene_store(rgb, out + 3 * ((size_t)y * (size_t)width + (size_t)x));
        }
    }
    free(columns);
    return true;
}

/* The columns of one row where a ball may be seen, computed anew. */
static inline void scene_render_ball_row(const scene* self, const scene_ball* ball, const double* columns,
                                         int width, double pitch, uint8_t* row) {
    const double level = cos(pitch), down = -sin(pitch);
    const double reach = ball->reach - down * ball->centre.y; /* what the level part must add */
    if (level <= reach)
        return;
    for (int x = 0; x < width; x++) {
        const double dx = level * columns[2 * x], dz = level * columns[2 * x + 1];
        double rgb[3];
        if (dx * ball->centre.x + dz * ball->centre.z <= reach)
            continue;
        scene_color(self, scene_make(dx, down, dz), rgb);
        scene_store(rgb, row + 3 * x);
    }
}

/* The whole picture from the background. */
static inline bool scene_render_frame(const scene* self, int width, int height, const uint8_t* background,
                                      uint8_t* out) {
    double* columns = scene_columns(width);
    if (!columns)
        return false;
    SCENE_ROWS_IN_PARALLEL
    for (int y = 0; y < height; y++) {
        uint8_t* row = out + 3 * (size_t)y * (size_t)width;
        memcpy(row, background + (row - out), 3 * (size_t)width);
        for (int i = 0; i < SCENE_N_SPHERES; i++)
            scene_render_ball_row(self, &self->balls[i], columns, width, scene_row_pitch(y, height), row);
    }
    free(columns);
    return true;
}

/* The direction of an output pixel of a perspective view with square pixels: roll clockwise first, then
   pitch upwards, then yaw to the right, in degrees. */
static inline scene_vec scene_view_direction(double yaw, double pitch, double roll, double hfov, int width,
                                             int height, double x, double y) {
    const double scale = tan(SCENE_RADIANS(hfov) / 2) / width;
    const double a = scale * (2 * x + 1 - width), b = scale * (2 * y + 1 - height);
    const double sr = sin(SCENE_RADIANS(roll)), cr = cos(SCENE_RADIANS(roll));
    const double sp = sin(SCENE_RADIANS(pitch)), cp = cos(SCENE_RADIANS(pitch));
    const double sy = sin(SCENE_RADIANS(yaw)), cy = cos(SCENE_RADIANS(yaw));
    const double x1 = cr * a - sr * b, y1 = sr * a + cr * b;
    const double y2 = cp * y1 - sp, z2 = sp * y1 + cp;
    return scene_unit(scene_make(cy * x1 + sy * z2, y2, cy * z2 - sy * x1));
}

/* A perspective view straight from the scene. */
static inline void scene_render_view(const scene* self, double yaw, double pitch, double roll, double hfov,
                                     int width, int height, uint8_t* out) {
    SCENE_ROWS_IN_PARALLEL
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            double rgb[3];
            scene_color(self, scene_view_direction(yaw, pitch, roll, hfov, width, height, x, y), rgb);
            scene_store(rgb, out + 3 * ((size_t)y * (size_t)width + (size_t)x));
        }
}

#endif
