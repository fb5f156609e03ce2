#define GPUSTAGE_IMPLEMENTATION
#include "gpustage.h"
