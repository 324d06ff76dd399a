# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# Work through the library: the examples, both completions, apertures, interrupts, two functions.

hello_says() {
	status 0 /lab/hello "$1" /lab/hello.elf
	said '2 4 6 8 10 12 14 16'
}

matmul_says() {
	status 0 /lab/matmul "$1" /lab/matmul.elf
	said '0 of 9000 elements differ'
}

rigctl_says_what_the_function_is() {
	status 0 rigctl info "$(device a)"
	said rvx1
	said "$TRANSPORT"
}

example_hello_runs() {
	hello_says "$(device a)"
}

example_matmul_runs() {
	matmul_says "$(device a)"
}

examples_run_with_store_completion() {
	hello_says "$(device a ,completion=store)"
	matmul_says "$(device a ,completion=store)"
}

an_aperture_of_16_mib_on_256_mib_works() {
	status 0 rigctl info --json "$(device b)"
	hello_says "$(device b)"
	matmul_says "$(device b)"
}

a_function_behind_a_port_works() {
	hello_says "$(device c)"
}

an_interrupt_wakes_a_sleeper() {
	status 0 lab_device sleeper "$(device a)"
	status 0 lab_device sleeper "$(device a ,completion=store)"
}

submit_and_poll_make_no_call() {
	status 0 without_calls lab_device quiet "$(device a)"
	status 0 without_calls lab_device quiet "$(device a ,completion=store)"
}

a_function_is_driven_with_no_driver() {
	status 0 function "$(device edu)"
	said '10! is 3628800, and byte 4095 came back as 0x5a'
}

edu_copies_under_its_mask_beside_a_board_with_high_addresses() {
	status 0 lab_device beside "$(device a)" "$(device edu)"
}

# Large pages, as for a device of its own: the emulated IOMMU tells QEMU of every page that it maps.
a_gibibyte_of_arena_takes_few_calls() {
	was=$(cat /proc/sys/vm/nr_hugepages)
	echo 640 >/proc/sys/vm/nr_hugepages
	case $TRANSPORT in
	noiommu) status 0 lab_device arena "$(device a)" 2 ;;
	*) status 0 lab_device arena "$(device a)" 1024 ;;
	esac
	echo "$was" >/proc/sys/vm/nr_hugepages
}

# Its 28 bits reach 256 MiB, and which large pages are handed out first is the kernel's affair: more of them until they
# lie there.
edu_works_without_an_iommu() {
	was=$(cat /proc/sys/vm/nr_hugepages)
	for pages in 64 480 500 520 540 560 580 600; do
		echo $pages >/proc/sys/vm/nr_hugepages
		if lab_device edu "$(device edu)" >/tmp/said 2>&1; then
			pages=enough
			break
		fi
		grep 'DMA mask' /tmp/said || break
	done
	echo "$was" >/proc/sys/vm/nr_hugepages
	cat /tmp/said
	same "edu's large pages" "$pages" enough
}

work_of_two_functions_waits_on_each_other() {
	status 0 lab_device pair "$(device a)" "$(device b)"
	status 0 lab_device pair "$(device b)" "$(device a ,completion=store)"
}

# The nodes are root's alone; the program finds no XDG_RUNTIME_DIR, and needs none.
a_worker_without_rights_works_by_given_descriptors() {
	status 0 lab_worker "$(place a)" "$TRANSPORT"
	said 'may not open'
	hello_says "$(device a)"
}
