# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# The machine and its kernel, without the library: what the other tests stand on.

functions_appear_with_their_ids() {
	for name in $BOARDS; do
		same "$name's vendor" "$(attribute "$name" vendor)" 0x1234
		same "$name's device" "$(attribute "$name" device)" 0x5258
		same "$name's subsystem" "$(attribute "$name" subsystem_vendor) $(attribute "$name" subsystem_device)" \
			'0x1234 0x0001'
		same "$name's class" "$(attribute "$name" class)" 0x120000
		same "$name's revision" "$(attribute "$name" revision)" 0x10
	done
	same "edu's device" "$(attribute edu vendor) $(attribute edu device)" '0x1234 0x11e8'
	same "nvme's class" "$(attribute nvme class)" 0x010802
}

every_function_has_a_group_of_its_own() {
	for name in $BOARDS edu; do
		group=/sys/bus/pci/devices/$(place "$name")/iommu_group
		[ -e "$group" ] || fail "$name has no group"
		case $name in
		# The port is not isolated by access control, and may be of the group.
		c) [ -e "$group/devices/$(place c)" ] || fail "c is not in its group" ;;
		*) same "the functions of $name's group" "$(ls "$group/devices")" "$(place "$name")" ;;
		esac
	done
}

vfio_pci_drives_the_functions() {
	for name in $BOARDS edu; do
		driver=$(readlink "/sys/bus/pci/devices/$(place "$name")/driver") || fail "$name has no driver"
		same "$name's driver" "${driver##*/}" vfio-pci
	done
}

the_nodes_of_the_transport_exist() {
	group=$(readlink "/sys/bus/pci/devices/$(place a)/iommu_group")
	case $TRANSPORT in
	type1) [ -c /dev/vfio/vfio ] && [ -c "/dev/vfio/${group##*/}" ] ;;
	noiommu) [ -c /dev/vfio/vfio ] && [ -c "/dev/vfio/noiommu-${group##*/}" ] ;;
	iommufd)
		cdev=$(ls "/sys/bus/pci/devices/$(place a)/vfio-dev")
		[ -c /dev/iommu ] && [ -c "/dev/vfio/devices/$cdev" ]
		;;
	esac || fail "nodes are missing: $(ls -R /dev/vfio /dev/iommu)"
}

raw_identity_is_that_of_the_manual() {
	for name in $BOARDS; do
		raw_vfio identity "$(place "$name")" "$TRANSPORT"
	done
}

raw_board_memory_is_the_same_both_ways() {
	raw_vfio memory "$(place a)" "$TRANSPORT"
	raw_vfio memory "$(place b)" "$TRANSPORT"
}

raw_dma_reaches_what_is_mapped() {
	raw_vfio dma "$(place a)" "$TRANSPORT"
}

raw_dma_outside_the_maps_is_refused() {
	raw_vfio outside "$(place a)" "$TRANSPORT"
}

raw_interrupt_signals_an_eventfd() {
	raw_vfio interrupt "$(place a)" "$TRANSPORT"
}

# From one function to another without a processor between them, by the kernel's interface alone.
raw_nvme_writes_into_board_memory() {
	bind "$(place nvme)"
	raw_peer "$(place a)" "$(place nvme)"
	echo >"/sys/bus/pci/devices/$(place nvme)/driver_override"
	place nvme >/sys/bus/pci/drivers/vfio-pci/unbind
	place nvme >/sys/bus/pci/drivers_probe
}

raw_reset_is_complete() {
	raw_vfio reset "$(place a)" "$TRANSPORT"
}
