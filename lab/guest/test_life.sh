# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# Opens, closes, losses, and what is left of them.

# Four processes at once: most of an open is the wait for a reset, and those overlap. Each counts what it
# holds; descriptors of the machine, mappings of IOVAs and the models' sessions would run out.
opening_again_and_again_leaves_nothing() {
	for name in a b c d; do
		lab_device cycle "$(device $name)" $((OPENS / 4)) >/tmp/cycle-$name 2>&1 || echo "failed" >>/tmp/cycle-$name &
	done
	wait
	for name in a b c d; do
		tail -n 3 /tmp/cycle-$name
	done
	for name in a b c d; do
		grep -q "^$((OPENS / 4)) cycles" /tmp/cycle-$name || fail "$name: $(tail -n 2 /tmp/cycle-$name)"
	done
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
	status 0 lab_device lost "$(device a)" again "$(flr a)" 'reset from outside'
	status 0 lab_device lost "$(device a ,completion=store)" again "$(flr a)" 'reset from outside'
}

a_reset_of_one_function_leaves_the_other() {
	status 0 lab_device pair "$(device a)" "$(device b)" "$(flr a)"
	said 'reset from outside'
}

of_two_functions_in_one_container_one_resets() {
	status 0 lab_device group "$(device e)" "$(device f)" "$(flr e)"
	said 'reset from outside'
}

a_reset_of_the_bus_needs_every_function_on_it() {
	status 0 lab_device hot "$(place g)" "$(place h)" "$TRANSPORT" \
		"echo $(place h) >/sys/bus/pci/drivers/vfio-pci/unbind" "echo $(place h) >/sys/bus/pci/drivers/vfio-pci/bind"
}

opening_a_function_leaves_those_that_its_reset_would_hit() {
	status 0 lab_device spares "$(device g)" "$(device h)"
	status 0 lab_device spares "$(device h)" "$(device g)"
}

two_functions_of_a_group_are_opened_and_closed_by_two_threads() {
	status 0 lab_device churn "$(device e)" "$(device f)" 20
	status 0 lab_device churn "$(device g)" "$(device h)" 20
}

a_dma_of_the_device_outside_the_maps_is_refused_and_reported() {
	status 0 lab_device astray "$(device i)"
}

an_interrupt_line_is_masked_until_it_is_unmasked() {
	status 0 lab_device intx "$(place edu)" "$TRANSPORT"
}

an_uncorrectable_error_is_a_loss() {
	soon status 0 lab_device signalled "$(device a)" error
}

a_release_request_is_a_loss() {
	soon status 0 lab_device signalled "$(device a)" request
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
	# shellcheck disable=SC2064 # as it is now
	trap "echo $was >$limit" EXIT
	echo 16 >$limit
	status 0 lab_device many "$(device a)" 16 dma_entry_limit
	echo 0 >$limit
	status 3 rigctl info "$(device a)"
	said dma_entry_limit
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
	status 0 lab_device lost "$(device d)" gone 'ask kill d' 'all ones'
	hello_says "$(device a)"
}

removing_the_function_is_a_loss_until_it_comes_back() {
	soon remove_and_rescan
}

remove_and_rescan() {
	folder=/sys/bus/pci/devices/$(place c)
	# The removal waits until the function is given back, which the program must not wait for.
	status 0 lab_device lost "$(device c)" gone "echo 1 >$folder/remove &" 'asks for it back'
	cp /tmp/said /tmp/kept
	await [ ! -e "$folder" ]
	echo 1 >/sys/bus/pci/rescan
	await [ -e "$folder" ]
	bind "$(place c)"
	hello_says "$(device c)"
	cp /tmp/kept /tmp/said
}

# power_of NAME: the file that switches its slot off.
power_of() {
	for slot in /sys/bus/pci/slots/*; do
		case $(place "$1") in
		"$(cat "$slot/address")".*) echo "$slot/power" ;;
		esac
	done
}

# QEMU's device_del presses the port's button, and the kernel gives whoever pressed it 5 s to think again. Writing 0 to the
# slot's power file ends those: from then on counts the second in which polling must end. The program keeps the function
# until its verdict is out: QEMU 11.1 ends by an assertion of its own once the kernel has switched the slot off, so this
# test is a machine's last.
unplugging_the_function_is_a_loss_within_a_second() {
	: >/tmp/said
	power=$(power_of c)
	[ -e "$power" ] || fail "no slot of $(place c): $(ls /sys/bus/pci/slots)"
	lab_device leaves "$(device c)" "ask unplug c; sleep 1; echo 0 >$power &" 'asks for it back' >/tmp/said 2>&1 &
	await grep -q '^lost\|^not so\|answered\|does not say' /tmp/said
	cat /tmp/said
	grep -q '^lost' /tmp/said || fail "no loss"
	ms=$(sed -n 's/^noticed after \([0-9]*\) ms$/\1/p' /tmp/said)
	[ "$ms" -le 1000 ] || fail "noticed after $ms ms"
	echo 'LAB TEST unplugging_the_function_is_a_loss_within_a_second ok' >/dev/console
}
