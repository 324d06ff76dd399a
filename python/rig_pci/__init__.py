# SPDX-License-Identifier: MIT
"""PCI functions from a prompt, through Linux VFIO or vfio-user, by librig_pci (rig_pci.h, which is the specification).

    >>> import rig_pci
    >>> f = rig_pci.open("0000:65:00.0")        # or "vfio-user:/run/board.sock"
    >>> f
    <1234:11e8 at 0000:65:00.0 over iommufd>
    >>> hex(f.bar[0].load32(0))
    '0x10000ed'
    >>> m = f.dma(4096)
    >>> m.memory[:4] = b"\\x01\\x02\\x03\\x04"
    >>> f.bus_master(True)
    >>> f.bar[0].store64(0x80, m.iova)
    >>> f.close()

A call that fails raises RigError, an OSError with the errno and the library's text. Nothing here is compiled:
librig_pci.so.0 and librig_edge.so.0 are found as the system finds libraries, or in the folder that RIG_LIB_DIR names.
"""
import ctypes as _c
import os as _os

__all__ = ["open", "list", "doctor", "Function", "Window", "Dma", "RigError", "INTX", "MSI", "MSIX", "ERR", "REQ"]

INTX, MSI, MSIX, ERR, REQ = range(5)  # kinds of interrupts
_VERSION, _BARS, _WIDTHS = 1, 6, (8, 16, 32, 64)  # _VERSION: of the layouts below, which the library checks


class RigError(OSError):
    """What the library answered: errno, and in strerror its text."""


class _Bar(_c.Structure):
    _fields_ = [("bytes", _c.c_uint64), ("readable", _c.c_bool), ("writable", _c.c_bool), ("mappable", _c.c_bool),
                ("wide", _c.c_bool), ("prefetchable", _c.c_bool), ("bus", _c.c_uint64)]

    def __repr__(self):
        return f"<{self.bytes:#x} bytes{', mappable' if self.mappable else ''}{', 64-bit' if self.wide else ''}>"


class _Info(_c.Structure):
    _fields_ = [("vendor", _c.c_uint16), ("device", _c.c_uint16), ("subsystem_vendor", _c.c_uint16),
                ("subsystem", _c.c_uint16), ("class_code", _c.c_uint32), ("revision", _c.c_uint8), ("_bdf", _c.c_char_p),
                ("_transport", _c.c_char_p), ("bar", _Bar * _BARS), ("physical", _c.c_bool), ("resets", _c.c_bool),
                ("tells", _c.c_bool), ("dma_page", _c.c_uint64), ("dma_maps", _c.c_uint64)]

    @property
    def bdf(self):
        """The PCI address, None where the function has none on this machine."""
        return self._bdf.decode() if self._bdf else None

    @property
    def transport(self):
        return self._transport.decode()


class _Win(_c.Structure):
    _fields_ = [("at", _c.c_void_p), ("ops", _c.c_void_p), ("far_side", _c.c_void_p), ("start", _c.c_uint64),
                ("len", _c.c_uint64), ("bar", _c.c_uint), ("flags", _c.c_uint)]


class _DmaStruct(_c.Structure):
    _fields_ = [("host", _c.c_void_p), ("iova", _c.c_uint64), ("bytes", _c.c_uint64), ("fd", _c.c_int),
                ("fd_offset", _c.c_uint64), ("handle", _c.c_void_p), ("arena_iova", _c.c_uint64),
                ("arena_bytes", _c.c_uint64)]


class _Options(_c.Structure):
    _fields_ = [("version", _c.c_uint32), ("guard", _c.c_bool), ("reset_ms", _c.c_uint), ("iova_base", _c.c_uint64),
                ("arena_limit", _c.c_uint64), ("log", _c.c_void_p), ("log_arg", _c.c_void_p), ("fds", _c.c_void_p),
                ("vf_token", _c.c_char_p)]


class _Listed(_c.Structure):
    _fields_ = [("address", _c.c_char * 24), ("vendor", _c.c_uint16), ("device", _c.c_uint16), ("class_code", _c.c_uint32),
                ("driver", _c.c_char * 64), ("group", _c.c_int)]


class _Finding(_c.Structure):
    _fields_ = [(n, _c.c_char_p if n != "severity" else _c.c_int)
                for n in ("id", "severity", "text", "file", "content", "command")]


def _load(name):
    folder = _os.environ.get("RIG_LIB_DIR")
    return _c.CDLL(_os.path.join(folder, name) if folder else name, mode=_c.RTLD_GLOBAL)


_edge, _lib = _load("librig_edge.so.0"), _load("librig_pci.so.0")
_edge.rig_error.restype = _c.c_char_p
_u, _u64, _p = _c.c_uint, _c.c_uint64, _c.c_void_p
_EACH_LISTED, _EACH_FINDING = _c.CFUNCTYPE(_c.c_int, _p, _c.POINTER(_Listed)), _c.CFUNCTYPE(_c.c_int, _p, _c.POINTER(_Finding))
for _name, _result, *_arguments in (
        ("open", _c.c_int, _c.c_char_p, _p, _c.POINTER(_p)), ("close", None, _p), ("info", _c.POINTER(_Info), _p),
        ("config_read", _c.c_int, _p, _u, _u, _c.POINTER(_c.c_uint32)), ("config_write", _c.c_int, _p, _u, _u, _c.c_uint32),
        ("capability", _u, _p, _c.c_uint8, _u), ("extended_capability", _u, _p, _c.c_uint16, _u),
        ("bus_master", _c.c_int, _p, _c.c_bool), ("reset", _c.c_int, _p), ("gone", _c.c_bool, _p, _c.POINTER(_c.c_char_p)),
        ("window", _c.c_int, _p, _u, _u64, _u64, _u, _c.POINTER(_Win)), ("set_dma_mask", _c.c_int, _p, _u),
        ("irq_count", _u, _p, _c.c_int), ("irq_enable", _c.c_int, _p, _c.c_int, _u, _u, _c.POINTER(_c.c_int)),
        ("irq_disable", _c.c_int, _p, _c.c_int), ("irq_unmask", _c.c_int, _p, _c.c_int), ("list", _c.c_int, _EACH_LISTED, _p),
        ("doctor", _c.c_int, _c.c_char_p, _EACH_FINDING, _p)):
    _f = getattr(_lib, "rig_pci_" + _name)
    _f.restype, _f.argtypes = _result, _arguments
_lib.rig_win_load.argtypes = [_c.POINTER(_Win), _u64, _u, _c.POINTER(_u64)]
_lib.rig_win_store.argtypes = [_c.POINTER(_Win), _u64, _u, _u64]
_lib.rig_dma_alloc.argtypes = [_p, _u64, _u64, _c.POINTER(_DmaStruct)]
_lib.rig_dma_free.argtypes, _lib.rig_dma_free.restype = [_p, _c.POINTER(_DmaStruct)], None


def _check(answer):
    if answer < 0:
        raise RigError(-answer, _edge.rig_error().decode(errors="replace"))
    return answer


class Window:
    """Part of a BAR. load8 to load64 and store8 to store64 are one access of that width; read and write move bytes."""

    def __init__(self, function, bar, offset=0, length=0):
        self._function, self._win = function, _Win()
        _check(_lib.rig_pci_window(function._at(), bar, offset, length, 0, self._win))

    def __len__(self):
        return self._win.len

    def __repr__(self):
        return f"<{len(self):#x} bytes at {self._win.start:#x} of BAR {self._win.bar}>"

    def load(self, offset, width):
        """One access of width bits: 8, 16, 32 or 64."""
        value = _u64()
        self._function._at()
        _check(_lib.rig_win_load(self._win, offset, width // 8, value))
        return value.value

    def store(self, offset, width, value):
        """One access of width bits: 8, 16, 32 or 64."""
        if not 0 <= value < 1 << width:
            raise ValueError(f"{value:#x} does not fit {width} bits")
        self._function._at()
        _check(_lib.rig_win_store(self._win, offset, width // 8, value))

    def read(self, offset, count):
        """count bytes of memory, by accesses of 32 bits where they are aligned, else of 8: for registers use load."""
        out = bytearray()
        while len(out) < count:
            width = 32 if (offset + len(out)) % 4 == 0 and count - len(out) >= 4 else 8
            out += self.load(offset + len(out), width).to_bytes(width // 8, "little")
        return bytes(out)

    def write(self, offset, data):
        """The same the other way."""
        done = 0
        while done < len(data):
            n = 4 if (offset + done) % 4 == 0 and len(data) - done >= 4 else 1
            self.store(offset + done, n * 8, int.from_bytes(data[done:done + n], "little"))
            done += n


def _accessors():
    for width in _WIDTHS:
        def load(self, offset, width=width):
            return self.load(offset, width)

        def store(self, offset, value, width=width):
            self.store(offset, width, value)
        load.__doc__ = store.__doc__ = f"One access of {width} bits at a multiple of {width // 8}."
        setattr(Window, f"load{width}", load)
        setattr(Window, f"store{width}", store)


_accessors()


class _Bars:
    def __init__(self, function):
        self._function, self._windows = function, {}

    def __getitem__(self, bar):
        if bar not in self._windows:
            self._windows[bar] = Window(self._function, bar)
        return self._windows[bar]


class Dma:
    """Memory that the function reaches: memory is a memoryview here, iova its address there."""

    def __init__(self, function, count, align):
        self._function, self._dma = function, _DmaStruct()
        _check(_lib.rig_dma_alloc(function._at(), count, align, self._dma))
        self.iova = self._dma.iova
        self.memory = memoryview((_c.c_ubyte * count).from_address(self._dma.host)).cast("B")

    def __len__(self):
        return len(self.memory)

    def __repr__(self):
        return f"<{len(self):#x} bytes at IOVA {self.iova:#x}>" if self.memory is not None else "<freed>"

    def free(self):
        """Gives it back, before the function is closed. The device must be done with it, and so must views of it."""
        if self.memory is None:
            return
        self.memory.release()
        self.memory = None
        _lib.rig_dma_free(self._function._at(), self._dma)
        self._function._memory.discard(self)


class Function:
    """A taken function; close gives it back. Also a context manager."""

    def __init__(self, device, guard=True, reset_ms=0, iova_base=0, arena_limit=0, vf_token=None):
        self._f, self._memory = _p(), set()
        options = _Options(version=_VERSION, guard=guard, reset_ms=reset_ms, iova_base=iova_base, arena_limit=arena_limit,
                           vf_token=vf_token.encode() if vf_token else None)
        _check(_lib.rig_pci_open(device.encode(), _c.byref(options), self._f))
        self.info = _lib.rig_pci_info(self._f).contents
        self.bar = _Bars(self)

    def _at(self):
        if not self._f:
            raise ValueError("the function was closed")
        return self._f

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __repr__(self):
        if not self._f:
            return "<closed>"
        where = f" at {self.info.bdf}" if self.info.bdf else ""
        return f"<{self.info.vendor:04x}:{self.info.device:04x}{where} over {self.info.transport}>"

    def close(self):
        """Frees its memory and gives the function back. Views of the memory must be gone."""
        if self._f:
            for memory in tuple(self._memory):
                memory.free()
            _lib.rig_pci_close(self._f)
            self._f, self.info = _p(), None

    def window(self, bar, offset=0, length=0):
        """A Window of length bytes (0: to its end) of a BAR; bar[N] is the whole of one."""
        return Window(self, bar, offset, length)

    def dma(self, count, align=0):
        """Memory of count bytes that the function can reach, at a multiple of align here and there: a Dma."""
        memory = Dma(self, count, align)
        self._memory.add(memory)
        return memory

    def dma_mask(self, bits):
        """How many bits of address the function has, before its first memory."""
        _check(_lib.rig_pci_set_dma_mask(self._at(), bits))

    def config_load(self, offset, width=32):
        """Configuration space, one access of 8, 16 or 32 bits."""
        value = _c.c_uint32()
        _check(_lib.rig_pci_config_read(self._at(), offset, width // 8, value))
        return value.value

    def config_store(self, offset, value, width=32):
        _check(_lib.rig_pci_config_write(self._at(), offset, width // 8, value))

    def capability(self, id, after=0):
        """The offset of the first capability with that id, or of the next behind one; 0: there is none."""
        return _lib.rig_pci_capability(self._at(), id, after)

    def extended_capability(self, id, after=0):
        return _lib.rig_pci_extended_capability(self._at(), id, after)

    def bus_master(self, on):
        """Allows DMA and message interrupts, or forbids them."""
        _check(_lib.rig_pci_bus_master(self._at(), on))

    def reset(self):
        """Resets the function and waits until it is ready again."""
        _check(_lib.rig_pci_reset(self._at()))

    @property
    def gone(self):
        """Why the function has left, or None while it is there."""
        why = _c.c_char_p()
        return why.value.decode() if _lib.rig_pci_gone(self._at(), why) else None

    def irq_count(self, kind):
        """Vectors of a kind: INTX, MSI, MSIX, ERR or REQ."""
        return _lib.rig_pci_irq_count(self._at(), kind)

    def irq(self, kind, first, *eventfds):
        """From now on each vector from first on adds 1 to its eventfd (os.eventfd); none switches the kind off."""
        if eventfds:
            _check(_lib.rig_pci_irq_enable(self._at(), kind, first, len(eventfds), (_c.c_int * len(eventfds))(*eventfds)))
        else:
            _check(_lib.rig_pci_irq_disable(self._at(), kind))

    def irq_unmask(self, kind):
        """INTX fires again."""
        _check(_lib.rig_pci_irq_unmask(self._at(), kind))


def open(device, **options):
    """Takes the function that a device string names; options are those of struct rig_pci_options."""
    return Function(device, **options)


def list():
    """The machine's functions, as dicts: address, vendor, device, class_code, driver, group."""
    found = []

    def each(_, listed):
        one = listed.contents
        found.append({"address": one.address.decode(), "vendor": one.vendor, "device": one.device,
                      "class_code": one.class_code, "driver": one.driver.decode() or None,
                      "group": one.group if one.group >= 0 else None})
        return 0
    _check(_lib.rig_pci_list(_EACH_LISTED(each), None))
    return found


def doctor(address=None):
    """What stands between a function (or, with None, any) and VFIO, as dicts: id, severity, text, file, content, command."""
    found = []

    def each(_, finding):
        one = finding.contents
        found.append({n: getattr(one, n).decode(errors="replace") for n in ("id", "text", "file", "content", "command")})
        found[-1]["severity"] = ("note", "fix", "stop")[one.severity]
        return 0
    _check(_lib.rig_pci_doctor(address.encode() if address else None, _EACH_FINDING(each), None))
    return found
