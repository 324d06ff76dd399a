# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# What rigctl does to functions of a real kernel.

driver_of() {
	link=$(readlink "/sys/bus/pci/devices/$(place "$1")/driver") || link=none
	echo "${link##*/}"
}

doctor_finds_a_bound_function_usable() {
	status 0 rigctl doctor "$(device a)"
	status 0 rigctl doctor --json "$(device a)"
}

doctor_says_that_there_is_no_iommu() {
	status 1 rigctl doctor "$(device a)"
	said 'without an IOMMU'
}

doctor_says_how_a_foreign_function_becomes_usable() {
	status 1 rigctl doctor "$(place nvme)"
	said 'rigctl bind'
}

bind_and_unbind_move_a_function_to_and_fro() {
	same "nvme's driver before" "$(driver_of nvme)" nvme
	status 0 rigctl bind --dry-run "$(place nvme)"
	same "nvme's driver after a dry run" "$(driver_of nvme)" nvme
	status 0 rigctl bind "$(place nvme)"
	same "nvme's driver when bound" "$(driver_of nvme)" vfio-pci
	status 0 rigctl unbind "$(place nvme)"
	same "nvme's driver when given back" "$(driver_of nvme)" nvme
}

unbind_is_refused_while_a_process_holds_the_function() {
	start_endless "$(device a)"
	status 1 rigctl unbind "$(place a)"
	same "a's driver" "$(driver_of a)" vfio-pci
	end_endless
}


reset_and_regs_work_on_a_function() {
	status 0 rigctl reset "$(device a)"
	status 0 rigctl regs "$(device a)"
	said 0x31585652
	hello_says "$(device a)"
}
