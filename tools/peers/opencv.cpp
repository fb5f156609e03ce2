/* tools/peers/opencv.cpp -- our kernels against OpenCV's, interleaved in one process: remap with fixed-point maps;
   blobFromImage, after cvtColor for NV12; resize, cvtColor, convertTo, split and arithmetic. Prints lines of JSON. */
#include "peer.h"

#include <opencv2/core.hpp>
#include <opencv2/dnn.hpp>
#include <opencv2/imgproc.hpp>

#include <vector>

/* ---- remap ------------------------------------------------------------------------- */

struct remap_peer {
    workload_run* ours;
    std::vector<cv::Mat> xy, fraction; /* a view each */
};

/* The maps from our own positions, so that both look at the same places. */
static void remap_plan(remap_peer* self) {
    gpst_image output;
    gpst_warp_query_output(self->ours->warp, &output);
    for (uint32_t view = 0; view < self->ours->n_outputs; view++) {
        cv::Mat x((int)output.height, (int)output.width, CV_32F), y = x.clone(), xy, fraction;
        for (uint32_t j = 0; j < output.height; j++)
            for (uint32_t i = 0; i < output.width; i++) {
                double u = 0, v = 0;
                gpst_warp_position(self->ours->warp, view, i, j, self->ours->work->width,
                                   self->ours->work->height, &u, &v);
                x.at<float>((int)j, (int)i) = (float)u;
                y.at<float>((int)j, (int)i) = (float)v;
            }
        cv::convertMaps(x, y, xy, fraction, CV_16SC2);
        self->xy.push_back(xy);
        self->fraction.push_back(fraction);
    }
}

static cv::Mat mat_of(const gpst_image* image, int type) {
    return cv::Mat((int)image->height, (int)image->width, type, image->data, (size_t)image->pitch_bytes);
}

static bool remap_run(void* user_data, uint32_t turn) {
    remap_peer* const self = (remap_peer*)user_data;
    const workload_set* const set = workload_turn(self->ours, turn);
    const cv::Mat source = mat_of(&set->source, CV_8UC3);
    for (uint32_t view = 0; view < self->ours->n_outputs; view++) {
        cv::Mat output = mat_of(&set->outputs[view], CV_8UC3);
        cv::remap(source, output, self->xy[view], self->fraction[view], cv::INTER_LINEAR, cv::BORDER_WRAP);
    }
    return true;
}

/* ---- tensors ------------------------------------------------------------------------- */

struct tensor_peer {
    workload_run* ours;
    std::vector<cv::Mat> blobs; /* a set each */
};

/* It takes one scale for all channels: the division by std, which ours does, is left out. */
static void blob_of(const cv::Mat& bgr, cv::Mat& blob) {
    const cv::Scalar mean(255 * workload_mean[0], 255 * workload_mean[1], 255 * workload_mean[2]);
    cv::dnn::blobFromImage(bgr, blob, 1 / 255.0, cv::Size(512, 512), mean, true, false, CV_32F);
}

static bool blob_run(void* user_data, uint32_t turn) {
    tensor_peer* const self = (tensor_peer*)user_data;
    const workload_set* const set = workload_turn(self->ours, turn);
    blob_of(mat_of(&set->source, CV_8UC3), self->blobs[turn % self->ours->n_sets]);
    return true;
}

static bool nv12_run(void* user_data, uint32_t turn) {
    tensor_peer* const self = (tensor_peer*)user_data;
    const gpst_image* const source = &workload_turn(self->ours, turn)->source;
    const cv::Mat yuv((int)source->height * 3 / 2, (int)source->width, CV_8UC1, source->data);
    cv::Mat bgr;
    cv::cvtColor(yuv, bgr, cv::COLOR_YUV2BGR_NV12);
    blob_of(bgr, self->blobs[turn % self->ours->n_sets]);
    return true;
}

/* The chain as it is written everywhere; the planes land in the tensor. */
static bool chain_run(void* user_data, uint32_t turn) {
    tensor_peer* const self = (tensor_peer*)user_data;
    const workload_set* const set = workload_turn(self->ours, turn);
    cv::Mat small, rgb, wide, planes[3];
    cv::resize(mat_of(&set->source, CV_8UC3), small, cv::Size(512, 512), 0, 0, cv::INTER_LINEAR);
    cv::cvtColor(small, rgb, cv::COLOR_BGR2RGB);
    rgb.convertTo(wide, CV_32F, 1 / 255.0);
    for (int c = 0; c < 3; c++)
        planes[c] = cv::Mat(512, 512, CV_32F, (float*)set->outputs[0].data + c * 512 * 512);
    cv::split(wide, planes);
    for (int c = 0; c < 3; c++) {
        cv::subtract(planes[c], cv::Scalar(workload_mean[c]), planes[c]);
        cv::divide(planes[c], cv::Scalar(workload_std[c]), planes[c]);
    }
    return true;
}

/* ---- the comparisons ------------------------------------------------------------------ */

static bool compare_remap(workload_run* ours) {
    remap_peer peer;
    peer.ours = ours;
    remap_plan(&peer);
    measured all[3] = {peer_measured("gpustage", ours->work->run, ours),
                       peer_measured("OpenCV " CV_VERSION " remap, fixed-point maps", remap_run, &peer)};
    const double decibels = peer_agreement(ours, remap_run, &peer);
    return peer_compare(ours, all, 3, &decibels);
}

static bool compare_tensor(workload_run* ours) {
    tensor_peer peer;
    peer.ours = ours;
    peer.blobs.resize(ours->n_sets);
    measured all[4] = {
        peer_measured("gpustage", ours->work->run, ours),
        peer_measured("OpenCV " CV_VERSION " dnn::blobFromImage (one scale)", blob_run, &peer),
        peer_measured("OpenCV " CV_VERSION " resize cvtColor convertTo split subtract divide", chain_run, &peer)};
    const double decibels[2] = {-1.0, peer_agreement(ours, chain_run, &peer)};
    return peer_compare(ours, all, 4, decibels);
}

static bool compare_nv12(workload_run* ours) {
    tensor_peer peer;
    peer.ours = ours;
    peer.blobs.resize(ours->n_sets);
    measured all[3] = {
        peer_measured("gpustage", ours->work->run, ours),
        peer_measured("OpenCV " CV_VERSION " cvtColor, dnn::blobFromImage (one scale)", nv12_run, &peer)};
    const double decibels = -1.0;
    return peer_compare(ours, all, 3, &decibels);
}

/* On 1 thread, then on all cores. */
static bool compare(const char* work, bool (*run)(workload_run*)) {
    static workload_run ours;
    const uint32_t cores = peer_cores();
    bool ok = workload_open(&ours, workload_find(work));
    for (uint32_t threads = 1; ok && threads <= cores; threads = threads < cores ? cores : cores + 1) {
        cv::setNumThreads((int)threads);
        ours.n_threads = threads;
        ok = run(&ours);
    }
    if (!ok)
        fprintf(stderr, "%s: %s\n", work, gpst_last_reason());
    workload_close(&ours);
    return ok;
}

int main() {
    return compare("equirect", compare_remap) && compare("tensor", compare_tensor) &&
                   compare("tensor-nv12", compare_nv12)
               ? 0
               : 1;
}
