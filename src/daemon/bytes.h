/* bytes.h - moved to the ground floor, where receipts use it too. */
#pragma once

#include "base/bytes.h"
