#define GPUSTAGE_GPU_IMPLEMENTATION
#include "gpustage.h"
