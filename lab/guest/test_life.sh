# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# Opens, closes, losses, and what is left of them.

opening_100_times_leaves_nothing() {
	status 0 lab_device cycle "$(device a)" 100
}

opening_1000_times_leaves_nothing() {
	status 0 lab_device cycle "$(device a)" 1000
}

# start_endless DEVICE: a process, $endless, whose launch never ends.
start_endless() {
	: >/tmp/endless
	lab_device endless "$1" >/tmp/endless 2>&1 &
	endless=$!
	await grep -q '^running\|answered\|^not so' /tmp/endless
	grep -qx running /tmp/endless || fail "$(cat /tmp/endless)"
}

end_endless() {
	kill -KILL "$endless"
	wait "$endless" || :
}

after_sigkill_in_mid_run_the_next_process_works() {
	for _ in 1 2 3; do
		start_endless "$(device a)"
		end_endless
		status 0 lab_device works "$(device a)"
	done
}

a_second_process_is_told_who_holds_the_function() {
	start_endless "$(device a)"
	status 3 rigctl info "$(device a)"
	said "$endless"
	end_endless
}

a_reset_while_work_runs_is_a_loss_whose_memory_comes_back() {
	status 0 lab_device lost "$(device a)" again "$(flr a)"
}

a_reset_of_one_function_leaves_the_other() {
	status 0 lab_device pair "$(device a)" "$(device b)" "$(flr a)"
}

a_fault_of_the_iommu_is_reported() {
	status 0 lab_device outside "$(device a)" "$TRANSPORT"
}

memlock_too_low_is_named() {
	status 3 without_memlock 64 rigctl info "$(device a)"
	said RLIMIT_MEMLOCK
}

an_entry_limit_of_16_is_named() {
	limit=/sys/module/vfio_iommu_type1/parameters/dma_entry_limit
	was=$(cat $limit)
	echo 16 >$limit
	status 0 lab_device many "$(device a)" 16 dma_entry_limit
	echo "$was" >$limit
}

a_foreign_driver_is_named() {
	status 3 rigctl info "$(device nvme)"
	said nvme
}

a_function_without_driver_is_told_how_to_bind() {
	place a >/sys/bus/pci/drivers/vfio-pci/unbind
	status 3 rigctl info "$(device a)"
	said 'rigctl bind'
	bind "$(place a)"
	hello_says "$(device a)"
}

a_device_process_that_dies_is_a_loss() {
	status 0 lab_device lost "$(device d)" gone 'ask kill d'
	hello_says "$(device a)"
}

removing_the_function_is_a_loss_until_it_comes_back() {
	folder=/sys/bus/pci/devices/$(place c)
	# The removal waits until the function is given back, which the program must not wait for.
	status 0 lab_device lost "$(device c)" gone "echo 1 >$folder/remove &"
	await [ ! -e "$folder" ]
	echo 1 >/sys/bus/pci/rescan
	await [ -e "$folder" ]
	bind "$(place c)"
	hello_says "$(device c)"
}

# The program keeps the function until its verdict is out: QEMU 11.1 ends by an assertion of its own once the kernel has
# switched the slot off, so this test is a machine's last.
unplugging_the_function_is_a_loss() {
	: >/tmp/leaves
	lab_device leaves "$(device c)" 'ask unplug c' >/tmp/leaves 2>&1 &
	await grep -q '^lost\|^not so\|answered' /tmp/leaves
	cat /tmp/leaves
	grep -q '^lost' /tmp/leaves || fail "no loss"
	echo 'LAB TEST unplugging_the_function_is_a_loss ok' >/dev/console
}
