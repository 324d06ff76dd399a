# SPDX-License-Identifier: MIT
rig_fuzz(doctor_tree_fuzz SOURCES doctor_tree_fuzz.c LINKS folder_doctor CORPUS corpus/doctor_tree_fuzz)
