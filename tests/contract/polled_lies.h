/* SPDX-License-Identifier: MIT */
/*
 * Ways in which the polled driver breaks the contract, one at a time, each with a law that notices and the
 * options under which it does (polled_parse). test_contract_lies.c shows that the law fails.
 */
#ifndef POLLED_LIES_H
#define POLLED_LIES_H

/* X(lie, law, options) */
#define POLLED_LIES(X)                                                                                       \
	/* opening */                                                                                        \
	X(suffix, an_openers_name_has_no_machine_suffix, "")                                                 \
	X(eager_opener, taking_an_opener_opens_nothing, "")                                                  \
	X(counts_from_0, values_start_after_what_the_word_holds, "")                                         \
	X(lowers_word, make_never_lowers_the_word, "")                                                       \
	X(truncates, values_go_on_past_32_bits, "")                                                          \
	X(fresh_word_only, a_word_used_before_serves_the_next_device, "")                                    \
	X(array_only, any_eight_aligned_bytes_serve_as_the_word, "")                                         \
	X(locked_leak, a_make_under_a_runtimes_lock_takes_none_or_opens_nothing, "")                         \
	X(make_leak, a_make_short_of_descriptors_fails_with_a_reason_and_opens_nothing, "")                  \
	X(release_leak, an_unused_handle_leaves_nothing_open, "")                                            \
	X(loss_leak, a_lost_handle_leaves_nothing_open, "")                                                  \
	X(same_names, devices_of_two_names_are_open_side_by_side, "")                                        \
	/* facts */                                                                                          \
	X(any_version, facts_of_another_version_are_refused, "")                                             \
	X(no_arch, the_architecture_is_named, "")                                                            \
	X(same_queues, every_queue_has_a_name_of_its_own, "")                                                \
	X(odd_runs, queues_run_kinds_of_work_that_exist, "")                                                 \
	X(odd_engine, the_copy_engine_is_a_queue_that_copies, "")                                            \
	X(odd_alignment, bounds_in_the_facts_are_bounds, "")                                                 \
	X(counters_alone, counters_and_measures_come_together, "")                                           \
	X(old_table, the_state_starts_with_a_table_of_this_version, "")                                      \
	X(no_grow, cold_functions_that_may_be_called_are_there, "")                                          \
	X(other_word, the_word_is_makes_or_read_through_signaled, "")                                        \
	X(half_capability, the_capability_is_complete_from_the_open_on, "")                                  \
	X(odd_bus, a_bus_address_is_of_a_function_of_this_machine, "")                                       \
	/* memory */                                                                                         \
	X(misaligns, regions_lie_where_the_facts_say, "")                                                    \
	X(moves, a_region_stays_where_it_is, "")                                                             \
	X(overlaps, live_regions_share_no_byte, "")                                                          \
	X(shadows, host_addresses_hold_what_is_written, "")                                                  \
	X(wraps, more_than_there_is_is_refused_and_nothing_is_harmed, "")                                    \
	X(keeps_memory, memory_runs_out_cleanly_and_comes_back_whole, "")                                    \
	X(keeps_pinned, pinned_memory_runs_out_cleanly_and_comes_back_whole, "")                             \
	X(wears_out, memory_given_back_serves_again_and_again, "")                                           \
	X(maps_copies, mapped_host_pages_are_the_devices_to_read_and_write, "")                              \
	X(keeps_maps, mapping_and_unmapping_goes_on_for_ever, "")                                            \
	X(maps_holes, pages_that_are_never_mapped_are_refused_each_time_with_a_reason, "")                   \
	X(odd_bus_range, how_another_function_reaches_a_region_is_told_within_its_form, "")                  \
	X(bus_again, bus_addresses_once_given_are_no_other_memorys, "")                                      \
	X(peer_copies, a_peers_memory_is_mapped_and_seen_from_both, "")                                      \
	/* room */                                                                                           \
	X(idle_later, nothing_fits_an_idle_device, "")                                                       \
	X(takes_any_kind, parts_of_no_kind_never_fit, "")                                                    \
	X(takes_unlisted, work_of_kinds_that_a_queue_does_not_list_never_fits, "")                           \
	X(takes_huge, work_larger_than_any_queue_never_fits_or_grows, "")                                    \
	X(overfull, submit_after_fits_succeeds_up_to_the_last_place, "")                                     \
	X(stays_full, later_turns_into_fits_as_values_are_reached, "")                                       \
	X(first_wait, as_many_waits_as_room_lets_in_are_waited_for, "")                                      \
	X(last_wait, as_many_waits_as_room_lets_in_are_waited_for, "")                                       \
	X(grows_nothing, queues_that_grew_never_ask_for_it_again, "grows")                                   \
	X(takes_empty, an_empty_grid_or_group_never_fits, "")                                                \
	X(takes_wide, a_group_out_of_every_limit_never_fits, "")                                             \
	X(takes_more, a_group_over_the_functions_limit_never_fits, "")                                       \
	X(overstates, a_group_of_as_many_threads_as_stated_runs, "")                                         \
	X(takes_shared, more_shared_memory_than_there_can_be_never_fits, "")                                 \
	/* work */                                                                                           \
	X(copies_short, copies_keep_every_byte, "")                                                          \
	X(copies_short, a_program_writes_and_reads_memory, "")                                               \
	X(copies_short, bytes_go_from_one_device_to_the_other, "")                                           \
	X(copies_short, copies_within_a_buffer_keep_the_bytes_and_never_overlap, "")                         \
	X(no_pitch, rows_are_copied_with_their_pitches_and_nothing_between, "")                              \
	X(fills_long, fills_write_their_byte_and_nothing_beside, "")                                         \
	X(no_slot_offset, copies_name_buffers_of_the_run_by_their_slots, "")                                 \
	X(early_word, the_effects_of_a_value_are_there_once_the_word_shows_it, "")                           \
	X(early_word, a_value_read_of_one_device_carries_its_effects_to_the_other, "")                       \
	X(lazy, the_word_comes_with_no_further_call, "")                                                     \
	X(no_waits, a_value_that_waits_is_not_shown_and_has_no_effect, "")                                   \
	X(no_waits, a_launch_waits_for_its_word, "")                                                         \
	X(no_waits, a_device_waits_for_the_others_word, "")                                                  \
	X(back, the_word_only_grows_and_never_runs_ahead, "")                                                \
	X(ahead, the_word_only_grows_and_never_runs_ahead, "")                                               \
	X(ahead, points_are_reached_in_the_order_of_submission, "")                                          \
	X(defers, a_value_starts_after_all_work_of_the_one_before, "")                                       \
	X(defers, values_on_different_queues_follow_each_other, "")                                          \
	X(parts_reversed, parts_of_one_queue_run_in_their_order, "")                                         \
	X(parts_reversed, parts_start_after_the_parts_of_other_queues_they_name, "")                         \
	X(drops, many_values_under_way_run_in_order, "")                                                     \
	X(defers, many_values_under_way_run_in_order, "")                                                    \
	X(drops, launches_follow_each_other_in_value_order, "")                                              \
	X(drops, an_image_serves_until_it_is_unloaded, "")                                                   \
	X(drops, chains_of_copies_keep_the_bytes_with_nothing_said_of_order, "")                             \
	X(defers, chains_of_copies_keep_the_bytes_with_nothing_said_of_order, "")                            \
	X(room_decides, what_room_saw_may_change_before_submit, "")                                          \
	X(keeps_pointers, what_a_submit_was_given_may_go_when_it_returns, "")                                \
	X(never_commits, values_are_committed_unasked_while_work_is_submitted, "batch")                      \
	X(recommits, committing_what_is_committed_changes_nothing, "batch")                                  \
	X(commits_nothing, an_encoded_value_is_reached_only_once_committed, "batch")                         \
	X(commits_one, a_later_commit_commits_what_came_before, "batch")                                     \
	X(blocks, hot_calls_do_not_block_on_earlier_work, "")                                                \
	X(sleeps_on, sleep_ends_by_its_time_and_when_the_word_differs, "")                                   \
	X(looks_on, sleep_of_no_time_is_a_look, "")                                                          \
	X(misses, sleep_ends_when_the_word_moves, "")                                                        \
	X(deaf, two_devices_wait_for_each_other_in_a_pipeline, "")                                           \
	/* code */                                                                                           \
	X(one_engine, a_copy_engine_of_its_own_copies_beside_a_launch, "")                                   \
	X(skips_thread, every_thread_of_a_grid_runs_once, "")                                                \
	X(skips_thread, a_program_runs_code_on_its_buffers, "")                                              \
	X(no_refs, addresses_of_the_runs_buffers_are_added_to_parameters, "")                                \
	X(takes_noise, what_is_no_binary_is_refused_with_a_reason_and_nothing_is_harmed, "")                 \
	X(reads_behind, a_binary_cut_short_does_no_harm, "")                                                 \
	X(places_long, a_place_writes_its_bytes_and_none_behind, "place")                                    \
	X(wears_loads, a_place_that_is_not_called_leaves_nothing, "place")                                   \
	X(keeps_images, images_come_and_go, "")                                                              \
	X(takes_prefix, an_unknown_function_is_absent_and_the_image_unharmed, "")                            \
	X(new_entry, an_entry_is_the_same_the_second_time, "")                                               \
	/* times */                                                                                          \
	X(half_times, times_are_both_zero_or_a_start_before_an_end, "settle")                                \
	X(half_times, times_are_both_zero_or_a_start_before_an_end, "times")                                 \
	X(settles_nothing, times_are_both_zero_or_a_start_before_an_end, "settle")                           \
	X(overlapping, no_value_starts_before_the_end_of_the_one_before, "settle")                           \
	X(settles_nothing, no_value_starts_before_the_end_of_the_one_before, "settle")                       \
	X(far_times, times_lie_between_submit_and_the_word, "settle")                                        \
	X(settles_nothing, times_lie_between_submit_and_the_word, "settle")                                  \
	X(resettles, settling_twice_changes_nothing, "settle")                                               \
	X(as_asked, settling_the_latest_first_keeps_the_order, "settle")                                     \
	X(settle_waits, settle_does_not_wait_for_later_work, "settle")                                       \
	X(beside_times, times_of_one_value_are_its_own, "settle")                                            \
	X(long_row, measures_are_a_row_a_launch_within_the_values_times, "settle")                           \
	X(half_row, measures_are_a_row_a_launch_within_the_values_times, "settle")                           \
	X(measures_nothing, measures_are_a_row_a_launch_within_the_values_times, "settle")                   \
	X(reads_once, measures_are_read_again_until_they_are_freed, "settle")                                \
	/* ending */                                                                                         \
	X(scribbles, stop_leaves_what_was_done, "")                                                          \
	X(stop_waits, stop_does_not_wait_for_work, "")                                                       \
	X(stop_short, after_stop_the_word_comes_to_the_last_submitted_value, "")                             \
	X(runs_on, no_work_runs_once_stop_has_raised_the_word, "")                                           \
	X(moves_at_stop, regions_are_located_and_freed_after_stop, "")                                       \
	X(opens_once, a_stopped_device_opens_again_and_works, "")                                            \
	X(opens_once, a_device_that_faulted_opens_again_and_works, "")                                       \
	X(opens_once, a_name_opens_once_and_again_after_its_close, "")                                       \
	X(endless_ends, endless_work_is_ended_by_stop, "")                                                   \
	X(endless_ends, endless_work_loses_the_device_at_the_bound_and_the_name_opens_again, "")             \
	X(swallows, a_fault_is_told_by_sleep_and_the_word_stays, "")                                         \
	X(swallows, a_fault_loses_the_device_with_its_text_and_the_name_opens_again, "")                     \
	X(swallows, a_wait_is_told_of_a_fault_of_the_device_that_the_work_waits_for, "")                     \
	X(mute, a_submit_after_a_fault_fails_with_its_text_or_leaves_the_word, "")                           \
	X(short_text, a_faults_text_lives_until_release, "")                                                 \
	/* threads and the runtime */                                                                        \
	X(one_thread, hot_calls_come_from_any_thread, "")                                                    \
	X(one_thread, threads_share_a_device, "")                                                            \
	X(one_device, devices_work_side_by_side_in_their_threads, "")                                        \
	X(alloc_races, memory_is_made_and_freed_beside_work, "")                                             \
	X(sleep_races, many_sleep_beside_hot_calls, "")                                                      \
	X(misaligns, memory_is_used_again_and_comes_back_at_the_end, "")                                     \
	X(fails, a_closed_device_answers_lost_and_its_reached_points_stay_reached, "")

#define POLLED_LIE_LIST(X)                                                                                   \
	X(never_commits)                                                                                     \
	X(grows_nothing)                                                                                     \
	X(one_engine)                                                                                        \
	X(suffix)                                                                                            \
	X(eager_opener)                                                                                      \
	X(counts_from_0)                                                                                     \
	X(lowers_word)                                                                                       \
	X(truncates)                                                                                         \
	X(fresh_word_only)                                                                                   \
	X(array_only)                                                                                        \
	X(locked_leak)                                                                                       \
	X(make_leak)                                                                                         \
	X(release_leak)                                                                                      \
	X(loss_leak)                                                                                         \
	X(same_names)                                                                                        \
	X(any_version)                                                                                       \
	X(no_arch)                                                                                           \
	X(same_queues)                                                                                       \
	X(odd_runs)                                                                                          \
	X(odd_engine)                                                                                        \
	X(odd_alignment)                                                                                     \
	X(counters_alone)                                                                                    \
	X(old_table)                                                                                         \
	X(no_grow)                                                                                           \
	X(other_word)                                                                                        \
	X(half_capability)                                                                                   \
	X(odd_bus)                                                                                           \
	X(misaligns)                                                                                         \
	X(moves)                                                                                             \
	X(overlaps)                                                                                          \
	X(shadows)                                                                                           \
	X(wraps)                                                                                             \
	X(keeps_memory)                                                                                      \
	X(wears_out)                                                                                         \
	X(maps_copies)                                                                                       \
	X(keeps_maps)                                                                                        \
	X(maps_holes)                                                                                        \
	X(odd_bus_range)                                                                                     \
	X(bus_again)                                                                                         \
	X(peer_copies)                                                                                       \
	X(idle_later)                                                                                        \
	X(takes_any_kind)                                                                                    \
	X(takes_unlisted)                                                                                    \
	X(takes_huge)                                                                                        \
	X(overfull)                                                                                          \
	X(stays_full)                                                                                        \
	X(first_wait)                                                                                        \
	X(takes_empty)                                                                                       \
	X(takes_wide)                                                                                        \
	X(takes_more)                                                                                        \
	X(overstates)                                                                                        \
	X(takes_shared)                                                                                      \
	X(copies_short)                                                                                      \
	X(no_pitch)                                                                                          \
	X(fills_long)                                                                                        \
	X(no_slot_offset)                                                                                    \
	X(early_word)                                                                                        \
	X(lazy)                                                                                              \
	X(no_waits)                                                                                          \
	X(back)                                                                                              \
	X(ahead)                                                                                             \
	X(defers)                                                                                            \
	X(parts_reversed)                                                                                    \
	X(drops)                                                                                             \
	X(room_decides)                                                                                      \
	X(keeps_pointers)                                                                                    \
	X(recommits)                                                                                         \
	X(commits_nothing)                                                                                   \
	X(commits_one)                                                                                       \
	X(blocks)                                                                                            \
	X(sleeps_on)                                                                                         \
	X(looks_on)                                                                                          \
	X(misses)                                                                                            \
	X(deaf)                                                                                              \
	X(skips_thread)                                                                                      \
	X(no_refs)                                                                                           \
	X(takes_noise)                                                                                       \
	X(reads_behind)                                                                                      \
	X(places_long)                                                                                       \
	X(wears_loads)                                                                                       \
	X(keeps_images)                                                                                      \
	X(takes_prefix)                                                                                      \
	X(new_entry)                                                                                         \
	X(measures_nothing)                                                                                  \
	X(half_row)                                                                                          \
	X(settles_nothing)                                                                                   \
	X(keeps_pinned)                                                                                      \
	X(last_wait)                                                                                         \
	X(half_times)                                                                                        \
	X(overlapping)                                                                                       \
	X(far_times)                                                                                         \
	X(resettles)                                                                                         \
	X(as_asked)                                                                                          \
	X(settle_waits)                                                                                      \
	X(beside_times)                                                                                      \
	X(long_row)                                                                                          \
	X(reads_once)                                                                                        \
	X(scribbles)                                                                                         \
	X(stop_waits)                                                                                        \
	X(stop_short)                                                                                        \
	X(runs_on)                                                                                           \
	X(moves_at_stop)                                                                                     \
	X(opens_once)                                                                                        \
	X(endless_ends)                                                                                      \
	X(swallows)                                                                                          \
	X(mute)                                                                                              \
	X(short_text)                                                                                        \
	X(one_thread)                                                                                        \
	X(one_device)                                                                                        \
	X(alloc_races)                                                                                       \
	X(sleep_races)                                                                                       \
	X(fails)

#define POLLED_LIE_ENUM(name) POLLED_LIE_##name,
enum polled_lie {
	POLLED_HONEST,
	POLLED_LIE_LIST(POLLED_LIE_ENUM) /* each once */
	POLLED_LIES_END
};

#endif
