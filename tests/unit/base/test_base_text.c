/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <errno.h>
#include <string.h>

#include "log.h"
#include "text.h"

static void pieces_are_appended_in_order(void **state)
{
	char buffer[64];
	struct rig_text text;

	(void)state;
	rig_text_init(&text, buffer, sizeof(buffer));
	assert_string_equal(buffer, "");
	rig_text_addf(&text, "BAR%d", 2);
	rig_text_addf(&text, " is %s", "small");
	assert_string_equal(buffer, "BAR2 is small");
	assert_false(text.cut);
}

static void a_text_of_exactly_the_room_is_not_cut_and_one_more_is(void **state)
{
	char buffer[8];
	struct rig_text text;

	(void)state;
	rig_text_init(&text, buffer, sizeof(buffer));
	rig_text_addf(&text, "%s", "1234567");
	assert_string_equal(buffer, "1234567");
	assert_false(text.cut);
	rig_text_addf(&text, "%s", "");
	assert_false(text.cut);
	rig_text_addf(&text, "%s", "8");
	assert_true(text.cut);
	assert_string_equal(buffer, "1234567");
	rig_text_init(&text, buffer, sizeof(buffer));
	rig_text_addf(&text, "%s", "12345678");
	assert_true(text.cut);
	assert_string_equal(buffer, "1234567");
}

static void no_buffer_takes_everything_and_keeps_nothing(void **state)
{
	struct rig_text text;

	(void)state;
	rig_text_init(&text, NULL, 100);
	rig_text_addf(&text, "%s", "lost");
	rig_text_addf(NULL, "%s", "lost");
}

static void an_error_is_named_by_either_sign(void **state)
{
	char buffer[128];
	struct rig_text text;

	(void)state;
	rig_text_init(&text, buffer, sizeof(buffer));
	rig_text_addf(&text, "open");
	rig_text_add_errno(&text, -ENOENT);
	assert_string_equal(buffer, "open: ENOENT (No such file or directory)");
	rig_text_init(&text, buffer, sizeof(buffer));
	rig_text_add_errno(&text, EBUSY);
	assert_non_null(strstr(buffer, "EBUSY"));
	rig_text_init(&text, buffer, sizeof(buffer));
	rig_text_add_errno(&text, 99999);
	assert_non_null(strstr(buffer, "99999"));
}

struct heard {
	int level;
	unsigned times;
	size_t length;
	char text[RIG_LOG_BYTES];
};

static void hear(void *arg, int level, const char *text)
{
	struct heard *heard = arg;

	heard->level = level;
	heard->times++;
	heard->length = strlen(text);
	memcpy(heard->text, text, heard->length + 1);
}

static void a_key_has_small_letters_digits_and_underscores_alone(void **state)
{
	struct rig_text text;
	char buffer[32], small[4];

	(void)state;
	rig_text_init(&text, buffer, sizeof(buffer));
	rig_text_add_key(&text, "L2 hits, % of\t\"all\"\xc3\xa9Z9");
	assert_string_equal(buffer, "l2_hits____of__all___z9");
	rig_text_init(&text, small, sizeof(small));
	rig_text_add_key(&text, "a bc");
	assert_string_equal(small, "a_b");
	assert_true(text.cut);
}

static void a_message_reaches_the_callback_once_and_bounded(void **state)
{
	struct heard heard = {0};
	struct rig_log log = {hear, &heard};

	(void)state;
	rig_logf(&log, RIG_LOG_WARN, "%d of %d", 3, 4);
	assert_int_equal(heard.times, 1);
	assert_int_equal(heard.level, RIG_LOG_WARN);
	assert_string_equal(heard.text, "3 of 4");
	rig_logf(&log, RIG_LOG_WARN, "%2000d", 1);
	assert_int_equal(heard.length, RIG_LOG_BYTES - 1);
}

static void no_log_drops_the_message(void **state)
{
	struct rig_log silent = {0};

	(void)state;
	rig_logf(NULL, RIG_LOG_ERROR, "nobody");
	rig_logf(&silent, RIG_LOG_ERROR, "nobody");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(pieces_are_appended_in_order),
	        cmocka_unit_test(a_text_of_exactly_the_room_is_not_cut_and_one_more_is),
	        cmocka_unit_test(no_buffer_takes_everything_and_keeps_nothing),
	        cmocka_unit_test(an_error_is_named_by_either_sign),
	        cmocka_unit_test(a_key_has_small_letters_digits_and_underscores_alone),
	        cmocka_unit_test(a_message_reaches_the_callback_once_and_bounded),
	        cmocka_unit_test(no_log_drops_the_message),
	};

	return cmocka_run_group_tests_name("base text", tests, NULL, NULL);
}
