"""The most memory that a process has held: code for an interpreter of its own.

`getrusage(...).ru_maxrss` will not do on Linux: a child begins with the peak of the process that forked it, 413 MB
where the parent held 400 MB, and growth below that goes unseen. The kernel's high-water mark begins anew with the
program.
"""

PEAK_MB = """
def peak_mb():
    from pathlib import Path
    import re, resource, sys
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.search(r"VmHWM:\\s+(\\d+)", status.read_text())[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 1024)
"""
"""Defines `peak_mb()`, in MiB."""
