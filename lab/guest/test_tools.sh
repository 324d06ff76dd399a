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
	status 1 rigctl doctor "$(place a)"
	said 'without an IOMMU'
	status 0 rigctl doctor "$(device a)"
	said 'it reaches all memory'
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
	status 0 rigctl unbind --group --dry-run "$(place nvme)"
	same "nvme's driver after a dry run of unbind" "$(driver_of nvme)" vfio-pci
	status 0 rigctl unbind --group "$(place nvme)"
	same "nvme's driver when given back" "$(driver_of nvme)" nvme
}

unbind_is_refused_while_a_process_holds_the_function() {
	start_endless "$(device a)"
	status 1 rigctl unbind "$(place a)"
	same "a's driver" "$(driver_of a)" vfio-pci
	end_endless
}

disk_of() {
	for disk in "/sys/bus/pci/devices/$(place "$1")"/nvme/nvme*/nvme*n1; do
		echo "/dev/${disk##*/}"
	done
}

# A kernel without a file system for disks knows them as in use all the same: whoever mounts one claims it, as this does.
bind_is_refused_for_a_function_that_holds_a_mounted_disk() {
	disk=$(disk_of nvme)
	if grep -qw ext2 /proc/filesystems; then
		mke2fs "$disk"
		mkdir -p /tmp/disk
		mount -t ext2 "$disk" /tmp/disk
		status 1 rigctl bind "$(place nvme)"
		umount /tmp/disk
	else
		lab_device claim "$disk" >/tmp/claim &
		await grep -q claimed /tmp/claim
		status 1 rigctl bind "$(place nvme)"
		kill %1
		wait %1 || :
	fi
	said mounted
	same "nvme's driver" "$(driver_of nvme)" nvme
	status 0 rigctl bind --dry-run "$(place nvme)"
}

bench_tells_an_open_by_phase() {
	status 0 rigctl bench "$(device a)" --open
	said 'boot stage firmware'
	said 'open to first completed work'
}

reset_and_regs_work_on_a_function() {
	status 0 rigctl reset "$(device a)"
	status 0 rigctl regs "$(device a)"
	said 0x31585652
	hello_says "$(device a)"
}
