/* SPDX-License-Identifier: MIT */
/* Machines of which a doctor that knows one kind alone says something untrue: a row each. */
#include "machine_tree.h"

#include <stdio.h>
#include <string.h>

#define PARENT "pci0000:64"
#define BEHIND "10000:e1:00.0"
#define VMD    "0000:64:05.5"
#define VF     "0000:65:10.0"

/* -- Groups -- */

static void mate(struct tree *t, const char *bdf, const char *driver, const char *class_code)
{
	tree_function(t, PARENT, bdf, driver, 12);
	tree_attribute(t, bdf, "class", class_code);
}

static void release(struct tree *t, const char *text)
{
	tree_file(t, "/proc/sys/kernel/osrelease", text);
}

static void event_collector(struct tree *t)
{
	mate(t, "0000:64:00.4", "pcieport", "0x080700\n");
}

static void event_collector_before_519(struct tree *t)
{
	event_collector(t);
	release(t, "5.15.0-91-generic\n");
}

static void hotplug_bridge_before_519(struct tree *t)
{
	mate(t, "0000:64:05.0", "shpchp", "0x060400\n");
	release(t, "5.18.19\n");
}

static void hotplug_bridge(struct tree *t)
{
	mate(t, "0000:64:05.0", "shpchp", "0x060400\n");
	release(t, "5.19.0\n");
}

/* The header says what it is, and not the class. */
static void bridge_by_header_before_519(struct tree *t)
{
	static const unsigned char config[64] = {0x86, 0x80, [0x0e] = 0x81};

	mate(t, "0000:64:05.0", "pci-any", "0x068000\n");
	tree_bytes(t, TREE_DEVICES "0000:64:05.0/config", config, sizeof(config));
	release(t, "5.10.0\n");
}

/* One function of several is no bridge. */
static void function_of_several_before_519(struct tree *t)
{
	static const unsigned char config[64] = {0x86, 0x80, [0x0e] = 0x80};

	mate(t, "0000:64:05.0", "ahci", "0x010601\n");
	tree_bytes(t, TREE_DEVICES "0000:64:05.0/config", config, sizeof(config));
	release(t, "5.10.0\n");
}

static void name_like_vfio(struct tree *t)
{
	mate(t, "0000:64:05.0", "my_vfio_pci_helper", "0x120000\n");
}

static void variant_before_61(struct tree *t)
{
	mate(t, "0000:64:05.0", "special", "0x120000\n");
	release(t, "5.19.0\n");
	tree_link(t, TREE_DRIVERS "special/module", "/sys/module/special_core");
	tree_file(t, "/sys/module/vfio_pci_core/holders/special_core/x", "");
}

static void variant(struct tree *t)
{
	mate(t, "0000:64:05.0", "special", "0x120000\n");
	tree_attribute(t, "0000:64:05.0", "vfio-dev/vfio3/dev", "511:3\n");
}

static void other_bus(struct tree *t, const char *folder)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/driver", folder);
	tree_link(t, path, "/sys/bus/platform/drivers/some-dma");
	snprintf(path, sizeof(path), "%s/subsystem", folder);
	tree_link(t, path, "/sys/bus/platform");
	tree_link(t, TREE_GROUP "/devices/1416.dma", folder);
}

static void device_of_another_bus(struct tree *t)
{
	other_bus(t, "/sys/devices/platform/1416.dma");
}

/* -- Domains -- */

static void behind_vmd(struct tree *t)
{
	tree_function(t, PARENT, VMD, "vmd", 13);
	tree_function(t, PARENT "/" VMD "/pci10000:e0/10000:e0:06.0", BEHIND, "nvme", 13);
}

static void mate_of_a_long_domain(struct tree *t)
{
	tree_function(t, PARENT "/10000:e0:06.0", BEHIND, "nvme", 12);
	tree_disk(t, BEHIND, "nvme0n1", "8:1\n");
}

static void long_domain(struct tree *t)
{
	tree_function(t, PARENT, "1000a:e1:00.0", "vfio-pci", 12);
	tree_attribute(t, "1000a:e1:00.0", "driver_override", "vfio-pci\n");
}

/* -- Evidence -- */

static void virtual_function(struct tree *t)
{
	static const unsigned char config[64] = {0xff, 0xff, 0xff, 0xff, [6] = 0x10, [0x0b] = 2};

	tree_function(t, PARENT "/" TREE_BRIDGE, VF, "vfio-pci", 12);
	tree_link(t, "/sys/devices/" PARENT "/" TREE_BRIDGE "/" VF "/physfn", "../0000:65:00.9");
	tree_bytes(t, TREE_DEVICES VF "/config", config, sizeof(config));
}

static void virtual_function_off_the_bus(struct tree *t)
{
	unsigned char config[64];

	virtual_function(t);
	memset(config, 0xff, sizeof(config));
	tree_bytes(t, TREE_DEVICES VF "/config", config, sizeof(config));
}

static void arm(struct tree *t, const char *interrupts)
{
	tree_file(t, "/proc/interrupts", interrupts);
	tree_file(t, "/proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\n");
	tree_file(t, "/sys/firmware/acpi/tables", NULL);
}

static void its(struct tree *t)
{
	arm(t, " 11: 3 GICv3 27 Level arch_timer\n 206: 0 ITS-PCI-MSIX-0002:01:00.0 0 Edge nvme0q0\n");
}

static void gicv2m(struct tree *t)
{
	arm(t, " 11: 3 GICv2 27 Level arch_timer\n 206: 0 GICv2m-PCI-MSIX-0002:01:00.0 0 Edge nvme0q0\n");
}

static void unknown_controller(struct tree *t)
{
	arm(t, " 206: 0 PCI-MSIX-0002:01:00.0 0 Edge nvme0q0\n");
}

static void no_groups(struct tree *t)
{
	tree_file(t, "/sys/kernel/iommu_groups", NULL);
	tree_attribute(t, TREE_BDF, "iommu_group", NULL);
	tree_attribute(t, TREE_BRIDGE, "iommu_group", NULL);
}

static void board_without_iommu(struct tree *t)
{
	its(t);
	no_groups(t);
	tree_file(t, "/sys/firmware/devicetree/base/soc/uart@1/status", "okay");
}

static void board_with_iommu(struct tree *t)
{
	its(t);
	no_groups(t);
	tree_file(t, "/sys/firmware/devicetree/base/soc/iommu@5/#iommu-cells", "1");
	tree_file(t, "/sys/firmware/devicetree/base/soc/iommu@5/status", "disabled");
}

static void memlock(struct tree *t, const char *map)
{
	tree_file(t, "/proc/self/limits", "Max locked memory         8388608   8388608   bytes\n");
	tree_file(t, "/proc/self/status", "Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n");
	tree_file(t, "/proc/self/uid_map", map);
}

static void root_of_a_user_namespace(struct tree *t)
{
	memlock(t, "         0       1000          1\n");
	tree_file(t, "/dev/vfio", NULL);
	tree_file(t, "/dev/vfio", "600 65534 65534 /dev/vfio/12\n666 0 0 /dev/vfio/vfio\n");
}

/* Whose root is the machine's, but not all of its other users. */
static void root_of_a_part(struct tree *t)
{
	memlock(t, "         0          0      65536\n");
	tree_file(t, "/dev/vfio", NULL);
	tree_file(t, "/dev/vfio", "666 0 0 /dev/vfio/12\n666 0 0 /dev/vfio/vfio\n");
}

static void root_of_the_machine(struct tree *t)
{
	memlock(t, "         0          0 4294967295\n");
}

static void many_groups(struct tree *t)
{
	char status[1024] = "Uid:\t1000\t1000\nGid:\t100\t100\nGroups:\t";

	for (unsigned i = 0; i < 65; i++)
		snprintf(status + strlen(status), sizeof(status) - strlen(status), "%u ", 2000 + i);
	tree_file(t, "/dev/vfio", NULL);
	tree_file(t, "/dev/vfio", "666 0 0 /dev/vfio/vfio\n660 0 2064 /dev/vfio/12\n"); /* the last of them */
	tree_file(t, "/proc/self/status", status);
}

/* -- Nodes -- */

static void nodes(struct tree *t, const char *lines)
{
	tree_file(t, "/dev/vfio", NULL);
	tree_file(t, "/dev/vfio", lines);
	tree_file(t, "/proc/self/status", "Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\n");
}

static void no_group_node(struct tree *t)
{
	nodes(t, "666 0 0 /dev/vfio/vfio\n");
}

static void closed_container_node(struct tree *t)
{
	nodes(t, "600 0 0 /dev/vfio/vfio\n660 1000 1000 /dev/vfio/12\n");
}

static void stale_node(struct tree *t)
{
	nodes(t, "666 0 0 /dev/vfio/vfio a:c4\n660 1000 1000 /dev/vfio/12 f3:1\n");
	tree_file(t, "/sys/class/vfio/12/dev", "243:0\n");
}

static void node_outside_the_control_group(struct tree *t)
{
	nodes(t, "666 0 0 /dev/vfio/vfio a:c4\n660 1000 1000 /dev/vfio/12 f3:0\n");
	tree_file(t, "/proc/self/cgroup", "5:cpu:/x\n4:devices:/docker/4a\n");
	tree_file(
	        t, "/sys/fs/cgroup/devices/docker/4a/devices.list", "c 1:3 rwm\nc 10:196 rwm\nc 243:1 rwm\n");
}

/* -- What has it -- */

static void boot_screen(struct tree *t)
{
	tree_file(t, "/proc/iomem",
	        "4000000000-400fffffff : " TREE_BDF "\n  4000000000-40007fffff : BOOTFB\n"
	        "    4000000000-40007fffff : simpledrm\n");
}

static void boot_screen_of_another(struct tree *t)
{
	tree_file(t, "/proc/iomem", "4000000000-400fffffff : " TREE_BDF "\n5000000000-50007fffff : BOOTFB\n");
	tree_attribute(t, TREE_BDF, "boot_vga", "1\n");
	tree_file(t, "/proc/fb", "0 EFI VGA\n");
}

static void boot_screen_by_boot_vga(struct tree *t)
{
	tree_attribute(t, TREE_BDF, "boot_vga", "1\n");
	tree_file(t, "/proc/fb", "0 EFI VGA\n");
}

static void drivers_node(struct tree *t, const char *driver, const char *node)
{
	tree_bind(t, TREE_BDF, driver);
	tree_file(t, "/proc/4711/comm", "python3\n");
	tree_node(t, "/proc/4711/fd/5", node);
}

static void own_node_by_name(struct tree *t)
{
	drivers_node(t, "nvidia", "/dev/nvidia0");
}

static void own_node_of_another_function(struct tree *t)
{
	drivers_node(t, "nvidia", "/dev/nvidia0");
	tree_file(t, "/proc/driver/nvidia/gpus/" TREE_BDF "/information", "Model: x\nDevice Minor: \t 1\n");
}

static void own_node_by_device(struct tree *t)
{
	drivers_node(t, "amdgpu", "/dev/dri/renderD128");
	tree_attribute(t, TREE_BDF, "drm/renderD128/dev", "226:128\n");
}

static void denied(struct tree *t)
{
	tree_bind(t, TREE_BDF, "idxd");
	tree_attribute(t, TREE_BDF, "vendor", "0x8086\n");
	tree_attribute(t, TREE_BDF, "device", "0x0b25\n");
	release(t, "6.9.1\n");
}

static void denied_with_the_list_off(struct tree *t)
{
	denied(t);
	tree_file(t, "/sys/module/vfio_pci/parameters/disable_denylist", "Y\n");
}

/* A stranger's tree. */
static void links_lead_out(struct tree *t)
{
	tree_file(t, "/proc/interrupts", NULL);
	tree_node(t, "/proc/interrupts", "/proc/interrupts");
	tree_node(t, "/proc/cmdline", "cmdline");
	tree_node(t, "/sys/class/net", "../../../../../../../../sys/class/net");
}

static const struct {
	const char *name;
	void (*fall_ill)(struct tree *t);
	const char *bdf;                     /* NULL: the card's */
	const char *ids;                     /* that are in the way */
	const char *id, *evidence, *command; /* one of them; NULL: none */
} cases[] = {
        {"event collector", event_collector, NULL, "", NULL, NULL, NULL},
        {"event collector, 5.15", event_collector_before_519, NULL, "group-mate", "group-mate", "pcieport",
                ""},
        {"shpchp, 5.18", hotplug_bridge_before_519, NULL, "", NULL, NULL, NULL},
        {"shpchp, 5.19", hotplug_bridge, NULL, "group-mate", "group-mate", "shpchp", "shpchp/unbind"},
        {"bridge by header, 5.10", bridge_by_header_before_519, NULL, "", NULL, NULL, NULL},
        {"a function of several, 5.10", function_of_several_before_519, NULL, "group-mate", "group-mate",
                "ahci", "rigctl bind"},
        {"a name like VFIO's", name_like_vfio, NULL, "group-mate", "group-mate", "helper", "rigctl bind"},
        {"variant, 5.19", variant_before_61, NULL, "", NULL, NULL, NULL},
        {"variant", variant, NULL, "", NULL, NULL, NULL},
        {"another bus", device_of_another_bus, NULL, "group-mate", "group-mate", "1416.dma (bus platform)",
                "echo 1416.dma > /sys/bus/platform/drivers/some-dma/unbind"},
        {"behind VMD", behind_vmd, BEHIND, "vmd mate-in-use", "vmd", BEHIND " is behind " VMD, "VMD off"},
        {"mate of a long domain", mate_of_a_long_domain, NULL, "mate-in-use", "mate-in-use", BEHIND, ""},
        {"long domain, capital letters", long_domain, "1000A:E1:00.0", "", NULL, NULL, NULL},
        {"virtual function", virtual_function, VF, "", NULL, NULL, NULL},
        {"virtual function, gone", virtual_function_off_the_bus, VF, "link", "link", "ffff", ""},
        {"ITS", its, NULL, "", NULL, NULL, NULL},
        {"GICv2m", gicv2m, NULL, "no-remapping", "no-remapping", "no ITS", "unsafe"},
        {"unknown controller", unknown_controller, NULL, "", NULL, NULL, NULL},
        {"board without IOMMU", board_without_iommu, NULL, "iommu-absent", "iommu-absent", "#iommu-cells",
                ""},
        {"board with IOMMU", board_with_iommu, NULL, "iommu-off", "iommu-off", "disabled", "iommu-map"},
        {"user namespace", root_of_a_user_namespace, NULL, "permission memlock", "memlock", "8192", "ulimit"},
        {"user namespace with root", root_of_a_part, NULL, "memlock", "memlock", "8192", "ulimit"},
        {"root", root_of_the_machine, NULL, "", NULL, NULL, NULL},
        {"65 groups", many_groups, NULL, "", NULL, NULL, NULL},
        {"no node of the group", no_group_node, NULL, "node-missing", "node-missing", "no such",
                "/dev/vfio/12"},
        {"closed container node", closed_container_node, NULL, "permission", "permission", "mode 600",
                "chmod 666 /dev/vfio/vfio"},
        {"stale node", stale_node, NULL, "node-stale", "node-stale", "243:1, while", "c 243 0"},
        {"control group", node_outside_the_control_group, NULL, "device-cgroup", "device-cgroup",
                "/dev/vfio/12, 243:0", "--device /dev/vfio/12"},
        {"boot screen", boot_screen, NULL, "framebuffer", "framebuffer", "BOOTFB", "sysfb_init"},
        {"boot screen of another", boot_screen_of_another, NULL, "", NULL, NULL, NULL},
        {"boot screen by boot_vga", boot_screen_by_boot_vga, NULL, "framebuffer", "framebuffer", "EFI VGA",
                ""},
        {"driver's node by name", own_node_by_name, NULL, "driver-held driver", "driver-held",
                "4711 (python3) has /dev/nvidia0, of nvidia", "kill 4711"},
        {"driver's node of another", own_node_of_another_function, NULL, "driver", "driver", "nvidia", ""},
        {"driver's node by device", own_node_by_device, NULL, "driver-held driver", "driver-held",
                "renderD128", ""},
        {"denied", denied, NULL, "driver denylist", "denylist", "8086:0b25",
                "trusted with the whole machine"},
        {"denylist off", denied_with_the_list_off, NULL, "driver", "driver", "idxd", ""},
        {"links that lead out", links_lead_out, NULL, "", NULL, NULL, NULL},
};

static void each_machine_is_judged_as_it_is(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *bdf = cases[i].bdf ? cases[i].bdf : TREE_BDF;
		struct tree t;

		print_message("%s\n", cases[i].name);
		tree_init(&t);
		cases[i].fall_ill(&t);
		tree_assert(&t, bdf, cases[i].ids);
		if (cases[i].id)
			tree_finding(&t, cases[i].id, cases[i].evidence, cases[i].command);
		tree_fini(&t);
	}
}

/* The root's name is the beginning of the other's. */
static void a_link_to_a_folder_beside_the_root_is_not_followed(void **state)
{
	struct tree *t = *state;
	char target[128];

	tree_file(t, "-2/interrupts", "  9:   3  IO-APIC    9-fasteoi   acpi\n");
	snprintf(target, sizeof(target), "%s-2/interrupts", t->root);
	tree_node(t, "/proc/interrupts", target);
	tree_assert(t, TREE_BDF, "");
	tree_file(t, "-2", NULL);
}

static void disks_that_stand_on_each_other_without_an_end_count_as_in_use(void **state)
{
	struct tree *t = *state;
	char path[128], name[16];

	tree_bind(t, TREE_BDF, "nvme");
	for (char a = 'a'; a < 'k'; a++) {
		snprintf(name, sizeof(name), "sd%c", a);
		tree_disk(t, TREE_BDF, name, "9:1\n");
		for (char b = 'a'; b < 'k'; b++) {
			snprintf(path, sizeof(path), "/sys/class/block/sd%c/holders/sd%c", a, b);
			tree_file(t, path, "");
		}
	}
	tree_assert(t, TREE_BDF, "in-use");
	tree_finding(t, "in-use", "more stands on the disk", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(each_machine_is_judged_as_it_is),
	        TREE_TEST(a_link_to_a_folder_beside_the_root_is_not_followed),
	        TREE_TEST(disks_that_stand_on_each_other_without_an_end_count_as_in_use),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
