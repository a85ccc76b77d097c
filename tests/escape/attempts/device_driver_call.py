"""An ioctl on /dev/zero must not reach its driver."""

import fcntl

from escape import attempt


@attempt
def device_driver_call():
    with open("/dev/zero", "rb") as file:
        try:
            fcntl.ioctl(file, 0x5401, b"\0" * 64)
        except OSError as error:
            if error.errno == 25:
                return "reached the driver of a device"
            raise
    return "the driver answered"
