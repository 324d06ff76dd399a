# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# Memory of one function that others reach: peers, and dma-bufs.

# Whether the kernel has dma-bufs of BARs (CONFIG_VFIO_PCI_DMABUF).
exports_bars() {
	grep -q ' vfio_pci_core_feature_dma_buf$' /proc/kallsyms
}

copies_both_ways() {
	status 0 lab_device peer "$(device a)" "$(device b)"
	status 0 lab_device peer "$(device b)" "$(device a)"
}

two_functions_copy_into_each_others_memory() {
	copies_both_ways
}

two_functions_behind_iommufd_do_or_are_told_what_the_kernel_lacks() {
	if exports_bars; then
		copies_both_ways
		a_lender_that_is_lost_takes_no_borrower_along
	else
		status 0 lab_device no_peer "$(device b)" "$(device a)"
	fi
}

a_lender_that_is_lost_takes_no_borrower_along() {
	status 0 lab_device lender "$(device b ,hang=3s)" "$(device a)"
	said 'no progress'
	# Behind iommufd the lender's reset ends what the kernel mapped; it is mapped again.
	! grep -qF 'is not reached any more' /tmp/said || fail "what was borrowed was not mapped again"
}

the_dma_buf_answer_is_accepted_by_iommufd_or_refused_with_what_the_kernel_lacks() {
	if exports_bars; then
		status 0 lab_device dmabuf "$(device b ,dma=dmabuf)"
	else
		status 0 lab_device no_dmabuf "$(device b ,dma=dmabuf)"
	fi
}
