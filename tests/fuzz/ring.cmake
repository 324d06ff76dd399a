# SPDX-License-Identifier: MIT
rig_fuzz(ring_fuzz SOURCES ring_fuzz.c LINKS folder_ring CORPUS corpus/ring_fuzz)
