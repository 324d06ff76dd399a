/* SPDX-License-Identifier: MIT */
/* Device strings: what each form and option means, and that a wrong one is refused with what it takes. */
#include "test.h"
#include <errno.h>
#include <string.h>

#include "rig_edge.h"
#include "spec.h"

static struct rig_spec spec;

static void sim_alone_has_the_defaults(void **state)
{
	(void)state;
	assert_int_equal(rig_spec_parse("sim", &spec), 0);
	assert_int_equal(spec.kind, RIG_SPEC_SIM);
	assert_int_equal(spec.memory, 0);
	assert_int_equal(spec.aperture, 0);
	assert_int_equal(spec.hang_ms, 0);
	assert_false(spec.store);
	assert_string_equal(spec.fault, "");
}

static void a_default_hang_bound_is_for_sims_that_say_none(void **state)
{
	static const struct {
		const char *device, *hang;
		int64_t ms;
	} cases[] = {{"sim", "90s", 90000}, {"sim:hang=2s", "90s", 2000}, {"sim", NULL, 0},
	        {"vfio-user:/a", "90s", 0}, {"0000:65:00.0", "90s", 0}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(rig_spec_parse(cases[i].device, &spec), 0);
		assert_int_equal(rig_spec_default(&spec, cases[i].hang), 0);
		assert_int_equal(spec.hang_ms, cases[i].ms);
	}
	assert_int_equal(rig_spec_parse("sim", &spec), 0);
	assert_int_equal(rig_spec_default(&spec, "soon"), -EINVAL);
	assert_non_null(strstr(rig_error(), "RIG_SIM_HANG=soon"));
}

static void every_option_of_sim_is_understood(void **state)
{
	(void)state;
	assert_int_equal(
	        rig_spec_parse(
	                "sim:mem=1G,aperture=16M,completion=store,hang=2s,fault=late=5+die=2,firmware=/tmp",
	                &spec),
	        0);
	assert_int_equal(spec.memory, 1ull << 30);
	assert_int_equal(spec.aperture, 16ull << 20);
	assert_true(spec.store);
	assert_int_equal(spec.hang_ms, 2000);
	assert_string_equal(spec.fault, "late=5,die=2");
	assert_string_equal(spec.firmware, "/tmp");
	assert_int_equal(spec.poller_cpu, -1);
	assert_int_equal(rig_spec_parse("sim:poller=1", &spec), 0);
	assert_int_equal(spec.poller_cpu, 1);
}

static void dma_is_told_by_bus_addresses_or_dma_bufs(void **state)
{
	(void)state;
	assert_int_equal(rig_spec_parse("0000:65:00.0", &spec), 0);
	assert_false(spec.dmabuf);
	assert_int_equal(rig_spec_parse("0000:65:00.0,dma=dmabuf", &spec), 0);
	assert_true(spec.dmabuf);
	assert_int_equal(rig_spec_parse("0000:65:00.0,dma=bus", &spec), 0);
	assert_false(spec.dmabuf);
	assert_int_equal(rig_spec_parse("0000:65:00.0,dma=none", &spec), -EINVAL);
	assert_non_null(strstr(rig_error(), "bus or dmabuf"));
}

static void queues_and_the_clock_of_sim_are_numbers_in_range(void **state)
{
	static const char *const bad[] = {"sim:queues=1", "sim:queues=9", "sim:queues=", "sim:queues=2x",
	        "sim:clock-hz=999999", "sim:clock-hz=4000000001", "sim:clock-drift=101", "sim:clock-drift=x",
	        "sim:clock-step=5", "sim:clock-step=0/5", "sim:clock-step=5/0", "sim:clock-step=5/1000001",
	        "0000:65:00.0,queues=4", "vfio-user:/run/a,clock-hz=1000000"};
	size_t i;

	(void)state;
	assert_int_equal(rig_spec_parse("sim", &spec), 0);
	assert_int_equal(spec.queues, 0);
	assert_false(spec.has_clock_drift);
	assert_int_equal(
	        rig_spec_parse("sim:queues=8,clock-hz=1000000,clock-drift=-100,clock-step=50/7", &spec), 0);
	assert_int_equal(spec.queues, 8);
	assert_int_equal(spec.clock_hz, 1000000);
	assert_true(spec.has_clock_drift);
	assert_int_equal(spec.clock_drift, -100);
	assert_string_equal(spec.clock_step, "50/7");
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(rig_spec_parse(bad[i], &spec), -EINVAL);
}

static void times_are_seconds_or_milliseconds(void **state)
{
	(void)state;
	assert_int_equal(rig_spec_parse("sim:hang=1ms", &spec), 0);
	assert_int_equal(spec.hang_ms, 1);
	assert_int_equal(rig_spec_parse("sim:hang=86400s", &spec), 0);
	assert_int_equal(spec.hang_ms, 86400000);
}

static void a_socket_and_an_address_are_told_apart(void **state)
{
	(void)state;
	assert_int_equal(rig_spec_parse("vfio-user:/run/a:b,completion=store", &spec), 0);
	assert_int_equal(spec.kind, RIG_SPEC_VFIO_USER);
	assert_string_equal(spec.path, "/run/a:b");
	assert_string_equal(spec.base, "vfio-user:/run/a:b");
	assert_true(spec.store);
	assert_int_equal(rig_spec_parse("0000:65:00.0", &spec), 0);
	assert_int_equal(spec.kind, RIG_SPEC_PCI);
	assert_string_equal(spec.path, "0000:65:00.0");
}

static void an_address_has_four_to_eight_digits_of_a_domain_and_one_spelling(void **state)
{
	static const char *const same[][2] = {{"10000:e1:00.0", "10000:e1:00.0"},
	        {"ffffffff:ff:1f.7", "ffffffff:ff:1f.7"}, {"0000:6E:0A.0", "0000:6e:0a.0"},
	        {"0001000A:E1:00.0", "1000a:e1:00.0"}};
	static const char *const none[] = {"65:00.0", "123456789:65:00.0", "0000:65:20.0", "0000:65:00.8"};

	(void)state;
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		assert_int_equal(rig_spec_parse(same[i][0], &spec), 0);
		assert_int_equal(spec.kind, RIG_SPEC_PCI);
		assert_string_equal(spec.path, same[i][1]);
		assert_string_equal(spec.base, same[i][1]);
	}
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_int_equal(rig_spec_parse(none[i], &spec), -EINVAL);
}

static void a_pci_function_takes_its_transport_and_none_means_the_library_chooses(void **state)
{
	(void)state;
	assert_int_equal(rig_spec_parse("0000:65:00.0", &spec), 0);
	assert_int_equal(spec.transport, RIG_PCI_ANY);
	assert_int_equal(rig_spec_parse("0000:65:00.0,transport=type1", &spec), 0);
	assert_int_equal(spec.transport, RIG_PCI_TYPE1);
	assert_int_equal(rig_spec_parse("0000:65:00.0,transport=iommufd,hang=1s", &spec), 0);
	assert_int_equal(spec.transport, RIG_PCI_IOMMUFD);
	assert_int_equal(rig_spec_parse("0000:65:00.0,transport=noiommu", &spec), 0);
	assert_int_equal(spec.transport, RIG_PCI_NOIOMMU);
	assert_int_equal(rig_spec_parse("0000:65:00.0,transport=auto", &spec), 0);
	assert_int_equal(spec.transport, RIG_PCI_ANY);
}

static void a_virtual_function_takes_its_owners_token(void **state)
{
	(void)state;
	assert_int_equal(rig_spec_parse("0000:65:00.0", &spec), 0);
	assert_string_equal(spec.token, "");
	assert_int_equal(
	        rig_spec_parse("0000:65:00.0,vf-token=bd8d9d2b-5a5f-4f5a-a211-f591514ba1f3", &spec), 0);
	assert_string_equal(spec.token, "bd8d9d2b-5a5f-4f5a-a211-f591514ba1f3");
}

static void wrong_strings_are_refused_with_what_they_take(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
	        {"", "sim"},
	        {"simulator", "vfio-user:PATH"},
	        {"vfio-user:", "PCI address"},
	        {"0000:65:00", "PCI address"},
	        {"sim:", "NAME=VALUE"},
	        {"sim:mem", "NAME=VALUE"},
	        {"sim:mem=", "64M to 8G"},
	        {"sim:mem=63M", "64M to 8G"},
	        {"sim:mem=9G", "64M to 8G"},
	        {"sim:mem=65M", "multiple of 2M"},
	        {"sim:mem=-1", "64M to 8G"},
	        {"sim:mem=99999999999G", "64M to 8G"},
	        {"sim:mem=18446744073709551615G", "64M to 8G"},
	        {"sim:aperture=15M", "power of two"},
	        {"sim:aperture=48M", "power of two"},
	        {"sim:aperture=512M", "larger than the memory"},
	        {"sim:mem=64M,aperture=128M", "larger than the memory"},
	        {"sim:completion=later", "poll or store"},
	        {"sim:hang=0s", "1ms to 24h"},
	        {"sim:hang=5", "1ms to 24h"},
	        {"sim:hang=99999999999999999999s", "1ms to 24h"},
	        {"sim:fault=", "characters"},
	        {"sim:fault=nonsense", "refuse-boot"},
	        {"sim:fault=die+", "refuse-boot"},
	        {"sim:fault=late", "late=MS"},
	        {"sim:fault=die=", "die"},
	        {"sim:fault=die=0", "die"},
	        {"sim:fault=die-boot=1", "die-boot"},
	        {"sim:nonsense=1", "takes completion"},
	        {"vfio-user:/x,mem=1G", "takes completion"},
	        {"0000:65:00.0,fault=die", "takes completion"},
	        {"0000:65:00.0,transport=fast", "noiommu"},
	        {"sim:transport=type1", "takes completion"},
	        {"0000:65:00.0,vf-token=1", "a UUID"},
	        {"sim:vf-token=bd8d9d2b-5a5f-4f5a-a211-f591514ba1f3", "takes completion"},
	};
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(rig_spec_parse(cases[i].text, &spec), -EINVAL);
		if (!strstr(rig_error(), cases[i].says))
			fail_msg("%s: \"%s\" does not say \"%s\"", cases[i].text, rig_error(), cases[i].says);
	}
	assert_int_equal(rig_spec_parse(NULL, &spec), -EINVAL);
}

static void strings_longer_than_the_buffers_are_refused(void **state)
{
	char text[4 * RIG_SPEC_TEXT];
	unsigned i;

	(void)state;
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	assert_int_equal(rig_spec_parse(text, &spec), -EINVAL);
	memcpy(text, "vfio-user:", 10);
	assert_int_equal(rig_spec_parse(text, &spec), -EINVAL);
	memcpy(text, "sim:fault=", 10);
	assert_int_equal(rig_spec_parse(text, &spec), -EINVAL);
	text[10 + RIG_SPEC_FAULT] = 0;
	assert_int_equal(rig_spec_parse(text, &spec), -EINVAL);
	for (i = 0; i < RIG_SPEC_FAULT - 4; i++)
		text[10 + i] = "hang+"[i % 5];
	memcpy(text + 10 + i, "die", 4); /* RIG_SPEC_FAULT - 1 characters in all */
	assert_int_equal(rig_spec_parse(text, &spec), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(sim_alone_has_the_defaults),
	        cmocka_unit_test(every_option_of_sim_is_understood),
	        cmocka_unit_test(a_default_hang_bound_is_for_sims_that_say_none),
	        cmocka_unit_test(dma_is_told_by_bus_addresses_or_dma_bufs),
	        cmocka_unit_test(queues_and_the_clock_of_sim_are_numbers_in_range),
	        cmocka_unit_test(times_are_seconds_or_milliseconds),
	        cmocka_unit_test(a_socket_and_an_address_are_told_apart),
	        cmocka_unit_test(an_address_has_four_to_eight_digits_of_a_domain_and_one_spelling),
	        cmocka_unit_test(a_pci_function_takes_its_transport_and_none_means_the_library_chooses),
	        cmocka_unit_test(a_virtual_function_takes_its_owners_token),
	        cmocka_unit_test(wrong_strings_are_refused_with_what_they_take),
	        cmocka_unit_test(strings_longer_than_the_buffers_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
