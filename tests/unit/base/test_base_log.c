/* SPDX-License-Identifier: MIT */
#include "test.h"
#include <stdio.h>
#include <string.h>

#include "log.h"

enum { MOST = RIG_LOG_LATE + 2 };

static struct said {
	unsigned lines;
	int level[MOST];
	char text[MOST][32];
} said;

static void hear(void *arg, int level, const char *text)
{
	(void)arg;
	assert_true(said.lines < MOST);
	said.level[said.lines] = level;
	snprintf(said.text[said.lines++], sizeof(said.text[0]), "%s", text);
}

static void say(struct rig_log_late *late, unsigned lines)
{
	struct rig_log later = rig_log_later(late);

	for (unsigned i = 0; i < lines; i++)
		rig_logf(&later, i % 2 ? RIG_LOG_ERROR : RIG_LOG_INFO, "line %u", i);
}

/* As many as fit, none more; then three more, the worst of which was an error. */
static void lines_kept_for_later_come_in_order_and_the_rest_as_a_number(void **state)
{
	static const struct rig_log log = {.fn = hear};
	struct rig_log_late late = {0};
	char want[32];

	(void)state;
	for (unsigned more = 0; more <= 3; more += 3) {
		memset(&said, 0, sizeof(said));
		say(&late, RIG_LOG_LATE + more);
		assert_int_equal(said.lines, 0);
		rig_log_say(&late, &log);
		assert_int_equal(said.lines, RIG_LOG_LATE + (more > 0));
		for (unsigned i = 0; i < RIG_LOG_LATE; i++) {
			snprintf(want, sizeof(want), "line %u", i);
			assert_string_equal(said.text[i], want);
			assert_int_equal(said.level[i], i % 2 ? RIG_LOG_ERROR : RIG_LOG_INFO);
		}
	}
	assert_string_equal(said.text[RIG_LOG_LATE], "3 more lines");
	assert_int_equal(said.level[RIG_LOG_LATE], RIG_LOG_ERROR);
	rig_log_say(&late, &log);
	assert_int_equal(said.lines, RIG_LOG_LATE + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(lines_kept_for_later_come_in_order_and_the_rest_as_a_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
