# SPDX-License-Identifier: MIT
"""The binding on edu-model: what DEVICE (a device string in the environment) answers from Python."""
import errno
import os
import select
import unittest

import rig_pci

DEVICE = os.environ["DEVICE"]
ID, LIVENESS, FACTORIAL, IRQ_RAISE, SOURCE, TARGET, COUNT, COMMAND = 0x00, 0x04, 0x08, 0x60, 0x80, 0x88, 0x90, 0x98
BUFFER, RUN, TO_MEMORY, WHEN_MOVED, WAIT_MS = 0x40000, 1, 2, 4, 120000


class Edu(unittest.TestCase):
    def setUp(self):
        self.f = rig_pci.open(DEVICE)
        self.addCleanup(self.f.close)

    def test_it_says_what_it_is(self):
        info = self.f.info
        self.assertEqual((info.vendor, info.device, info.class_code), (0x1234, 0x11e8, 0x00ff00))
        self.assertEqual((info.transport, info.bdf), ("vfio-user", None))
        self.assertEqual([bar.bytes for bar in info.bar], [1 << 20, 0, 0, 0, 0, 0])
        self.assertEqual(repr(self.f), "<1234:11e8 over vfio-user>")
        self.assertEqual(self.f.config_load(0), 0x11e81234)
        self.assertEqual(self.f.config_load(self.f.capability(5), 8), 5)
        self.assertIsNone(self.f.gone)

    def test_registers_are_accessed_by_width(self):
        regs = self.f.bar[0]
        self.assertEqual(regs.load32(ID), 0x010000ed)
        regs.store32(LIVENESS, 0x12345678)
        self.assertEqual(regs.load32(LIVENESS), ~0x12345678 & 0xffffffff)
        regs.store64(SOURCE, 0x123456789)
        self.assertEqual(regs.load64(SOURCE), 0x123456789)
        regs.store32(FACTORIAL, 5)
        self.assertEqual(regs.load32(FACTORIAL), 120)
        self.assertEqual(regs.read(ID, 4), (0x010000ed).to_bytes(4, "little"))
        with self.assertRaises(ValueError):
            regs.store32(LIVENESS, 1 << 32)

    def test_a_page_goes_there_and_back_and_an_interrupt_says_so(self):
        event = os.eventfd(0) if hasattr(os, "eventfd") else self.skipTest("os.eventfd is of Python 3.10")
        self.addCleanup(os.close, event)
        regs = self.f.bar[0]
        self.f.dma_mask(28)
        m = self.f.dma(4096, align=4096)
        self.assertLess(m.iova + len(m), 1 << 28)
        self.f.irq(rig_pci.MSI, 0, event)
        self.f.bus_master(True)
        m.memory[:4] = b"edu!"
        for direction, source, target in (0, m.iova, BUFFER), (TO_MEMORY, BUFFER, m.iova):
            for offset, value in (SOURCE, source), (TARGET, target), (COUNT, 4096):
                regs.store64(offset, value)
            regs.store32(COMMAND, RUN | WHEN_MOVED | direction)
            self.assertTrue(select.select([event], [], [], WAIT_MS / 1000)[0])
            os.eventfd_read(event)
            if not direction:
                m.memory[:4] = bytes(4)
        self.assertEqual(bytes(m.memory[:4]), b"edu!")
        m.free()
        self.assertEqual(repr(m), "<freed>")

    def test_errors_carry_the_librarys_text(self):
        for call, code, text in ((lambda: self.f.bar[3], errno.EINVAL, "BAR 3"),
                                 (lambda: self.f.bar[0].load32(2), errno.EINVAL, "4 bytes at 0x2"),
                                 (lambda: self.f.dma_mask(5), errno.EINVAL, "12 to 64"),
                                 (lambda: rig_pci.open("nothing"), errno.EINVAL, "PCI address"),
                                 (lambda: rig_pci.open(DEVICE + ",hang=2s"), errno.EINVAL, "option hang"),
                                 (lambda: rig_pci.doctor("65:00"), errno.EINVAL, "65:00")):
            with self.assertRaises(rig_pci.RigError) as caught:
                call()
            self.assertEqual(caught.exception.errno, code)
            self.assertIn(text, caught.exception.strerror)

    def test_after_the_close_nothing_is_reached(self):
        regs, m = self.f.bar[0], self.f.dma(64)
        self.f.close()
        self.f.close()
        self.assertIsNone(m.memory)
        for call in (lambda: regs.load32(ID), lambda: self.f.dma(64), self.f.reset):
            with self.assertRaises(ValueError):
                call()

    def test_every_public_name_has_a_help_text(self):
        for name in ("open", "list", "doctor"):
            self.assertTrue(getattr(rig_pci, name).__doc__)
        for kind in rig_pci.Function, rig_pci.Window, rig_pci.Dma:
            self.assertTrue(kind.__doc__)
        self.assertIn("32 bits", rig_pci.Window.load32.__doc__)


class Machine(unittest.TestCase):
    def test_the_doctor_speaks_of_a_function_that_is_not_there(self):
        found = rig_pci.doctor("fffe:ff:1f.7")
        self.assertIn("absent", [finding["id"] for finding in found])

    def test_the_list_has_addresses_or_there_is_no_bus(self):
        try:
            self.assertTrue(all(len(one["address"]) >= 12 for one in rig_pci.list()))
        except rig_pci.RigError as error:
            self.assertEqual(error.errno, errno.ENOENT)


if __name__ == "__main__":
    unittest.main()
