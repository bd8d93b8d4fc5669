# SPDX-License-Identifier: MIT
#
# Builds the module, the library and the tool, all below build/, and runs the
# tests. "make help" lists the targets.

# The one place of the version is dkms.conf.
VERSION	:= $(shell sed -n 's/^PACKAGE_VERSION="\(.*\)"$$/\1/p' dkms.conf)
SOMAJOR	:= 0

B	:= build
PREFIX	?= /usr/local
BINDIR	?= $(PREFIX)/bin
LIBDIR	?= $(PREFIX)/lib
INCDIR	?= $(PREFIX)/include
MANDIR	?= $(PREFIX)/share/man
# udev, sysusers and DKMS look in these places only.
UDEVDIR	?= /usr/lib/udev/rules.d
SYSUSERSDIR ?= /usr/lib/sysusers.d
SRCDIR	?= /usr/src

CFLAGS	?= -O2 -g
WARN	:= -Wall -Wextra -Wshadow -Wconversion $(if $(WERROR),-Werror)
OURS	:= -std=gnu11 -D_GNU_SOURCE -DRMPOOL_VERSION='"$(VERSION)"' -Ilib/include -Iuapi
DEPGEN	= -MMD -MP
LIBS	= -lmnl -lpthread
TOOL_LIBS = -ljansson

LIB_SRC	:= $(wildcard lib/*.c)
TOOL_SRC := $(wildcard tools/*.c)
UNIT_SRC := $(wildcard tests/unit/test_*.c)
UNIT	:= $(UNIT_SRC:%.c=$B/%)

.PHONY: all help module kunit lib tools deps demo check check-all check-long vm test-kernel vmctl \
	unit coverage fuzz lint clean \
	install install-user uninstall uninstall-user install-access dkms-install dkms-remove

all: lib tools module-if-possible

help:
	@echo 'Targets (all output goes to $B/):'
	@echo '  all            module for the running kernel (or KDIR=...), library, tool'
	@echo '  module         the module; KDIR=/lib/modules/VERSION/build for another kernel'
	@echo '  kunit          the module and its KUnit suites, for a kernel with CONFIG_KUNIT'
	@echo '  lib tools      librmpool (static, shared, pkg-config file); the rmpool tool'
	@echo '  unit programs vmctl'
	@echo '                 what "check" runs on the host and in VMs, without running it'
	@echo '  deps           install the Debian packages that building and testing need'
	@echo '  demo           two virtual machines share memory, with a real file'
	@echo '  check          unit tests, then all tests in VMs on 6.1 and 6.12;'
	@echo '                 T=name selects suites, K=6.1 or K=test a kernel'
	@echo '  check-all      more of each test, and on the test kernel as well: an hour'
	@echo '                 (MINUTES=N: what would begin later is skipped)'
	@echo '  check-long     most of each test: hours'
	@echo '  vm             a shell in a VM with rmpool loaded (KERNEL=6.1|6.12|test, PAIR=1)'
	@echo '  test-kernel    build a Linux 6.12 that looks for mistakes into ~/.cache/rmpool'
	@echo '                 (VARIANT=kmemleak|kcsan|kcov)'
	@echo '  coverage       how much of the pure files of kmod/ their suites run'
	@echo '  fuzz           libFuzzer on messages and endpoints (SECONDS=60 in all)'
	@echo '  lint           all static checks, of the module for both kernels too'
	@echo '  install        library, tool, udev rule and group (PREFIX=, DESTDIR=), and the'
	@echo '                 module if it was built for the running kernel or KDIR'
	@echo '  install-user   the same without the module'
	@echo '  install-access'
	@echo '                 udev rule and group only'
	@echo '  uninstall uninstall-user'
	@echo '                 remove what install or install-user installed'
	@echo '  dkms-install   module by DKMS for each kernel with headers (or KVER=...)'
	@echo '  dkms-remove    remove it from DKMS and from all kernels'
	@echo '  clean          remove $B/'

# ---- module -----------------------------------------------------------------
# Kbuild writes beside its sources, so each kernel gets a directory of links to
# them: modules for several kernels can be built side by side.

RUNNING_KDIR := $(wildcard /lib/modules/$(shell uname -r)/build)
KDIR	?= $(RUNNING_KDIR)
NO_KDIR	= no kernel headers for the running kernel $(shell uname -r): \
	module not built (give KDIR=/lib/modules/VERSION/build)

ifneq ($(KDIR),)
KVER	:= $(shell sed -n 's/^.define UTS_RELEASE "\(.*\)"/\1/p' \
		$(KDIR)/include/generated/utsrelease.h 2>/dev/null)
KBUILD_TREE := $B/kmod-$(KVER)

.PHONY: module-if-possible
module-if-possible: module

module kunit: | $B
	@test -n '$(KVER)' || { echo '$(KDIR): no configured kernel tree' >&2; exit 1; }
	@mkdir -p $(KBUILD_TREE)
	@find $(KBUILD_TREE) -xtype l -delete
	@cp -rsf $(CURDIR)/Kbuild $(CURDIR)/dkms.conf $(CURDIR)/kmod $(CURDIR)/kunit $(CURDIR)/uapi \
		$(KBUILD_TREE)/
	+$(MAKE) -C $(KDIR) M=$(CURDIR)/$(KBUILD_TREE) $(if $(filter kunit,$@),RMPOOL_KUNIT=y) modules
else
.PHONY: module-if-possible
module-if-possible:
	@echo '$(NO_KDIR)'
module kunit:
	@echo '$(NO_KDIR)' >&2; exit 1
endif

# ---- library and tool -------------------------------------------------------

LIB_OBJ	:= $(LIB_SRC:%.c=$B/obj/%.o)
TOOL_OBJ := $(TOOL_SRC:%.c=$B/obj/%.o)
SONAME	:= librmpool.so.$(SOMAJOR)
SHARED	:= $B/lib/librmpool.so.$(VERSION)

lib: $B/lib/librmpool.a $B/lib/librmpool.so $B/lib/pkgconfig/rmpool.pc
tools: $B/bin/rmpool

$B:
	@mkdir -p $B

$B/obj/lib/%.o: lib/%.c | $B
	@mkdir -p $(@D)
	$(CC) $(OURS) -Ilib $(WARN) $(CFLAGS) $(CPPFLAGS) $(DEPGEN) -fPIC -fvisibility=hidden -c -o $@ $<

$B/obj/tools/%.o: tools/%.c | $B
	@mkdir -p $(@D)
	$(CC) $(OURS) -Itools $(WARN) $(CFLAGS) $(CPPFLAGS) $(DEPGEN) -c -o $@ $<

$B/lib/librmpool.a: $(LIB_OBJ)
	@mkdir -p $(@D)
	@rm -f $@
	$(AR) rcs $@ $^

$(SHARED): $(LIB_OBJ) lib/librmpool.map
	@mkdir -p $(@D)
	$(CC) -shared -Wl,-soname,$(SONAME) -Wl,--version-script=lib/librmpool.map -Wl,-z,defs \
		$(CFLAGS) $(LDFLAGS) -o $@ $(LIB_OBJ) $(LIBS)

$B/lib/librmpool.so: $(SHARED)
	ln -sf $(<F) $B/lib/$(SONAME)
	ln -sf $(SONAME) $@

# Holds the directories, so it is made again whenever they may have changed.
.PHONY: $B/lib/pkgconfig/rmpool.pc
$B/lib/pkgconfig/rmpool.pc: lib/rmpool.pc.in
	@mkdir -p $(@D)
	@sed -e 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@INCDIR@|$(INCDIR)|' \
		-e 's|@VERSION@|$(VERSION)|' $< >$@

# The library is found beside the tool, in the build tree as well as installed.
$B/bin/rmpool: $(TOOL_OBJ) $B/lib/librmpool.so
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -Wl,-rpath,'$$ORIGIN/../lib' -o $@ $(TOOL_OBJ) \
		-L$B/lib -lrmpool $(LIBS) $(TOOL_LIBS)

# ---- unit tests -------------------------------------------------------------
# Each tests/unit/test_*.c is one program, with sanitizers, linked with the
# library. Those of the tool, test_cli*.c, get tests/unit/cli_*.c and the tool, whose
# main() has another name for them.

UNIT_FLAGS := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all \
	-fno-omit-frame-pointer
U := $B/unit

# Files of the module that need nothing of a kernel: their KUnit suites, kunit/NAME_test.c,
# are programs here as well. Headers that the kernel has and the host does not
# are tests/unit/kernel/kernel.h, by each of their names.
PURE := slice sched fit rights wire private endpoint keycache
KUNIT_HOST := $(PURE:%=$B/tests/unit/kunit_%)
FUZZ := wire private endpoint
CORPUS := $(FUZZ:%=$B/tests/unit/corpus_%)

unit: $(UNIT) $(KUNIT_HOST) $(CORPUS) $B/tests/unit/header $B/tests/unit/hello

KERNEL_HEADERS := $(addprefix $U/include/linux/,bitops.h err.h maple_tree.h minmax.h overflow.h \
	rcupdate.h refcount.h sched.h slab.h uuid.h workqueue.h xarray.h)
KUNIT_FLAGS = $(OURS) -Wall -Wextra -Wno-sign-compare -Wno-unused-parameter \
	$(if $(WERROR),-Werror) -iquote kmod -Ikunit -Itests/unit/kernel -I$U/include

$(KERNEL_HEADERS): | $B
	@mkdir -p $(@D)
	@echo '#include "kernel.h"' >$@

$(KUNIT_HOST): $B/tests/unit/kunit_%: kunit/%_test.c $(KERNEL_HEADERS)
	@mkdir -p $(@D) $U/kunit
	$(CC) $(KUNIT_FLAGS) $(UNIT_FLAGS) -MMD -MP -MF $U/kunit/$*.d -o $@ $<

COVERAGE := $(PURE:%=$B/coverage/%)
$(COVERAGE): $B/coverage/%: kunit/%_test.c $(KERNEL_HEADERS) $(wildcard kmod/*.[ch] kunit/*.h) \
		$(wildcard tests/unit/kernel/*.h tests/unit/kernel/*/*.h)
	@mkdir -p $(@D)
	@rm -f $@.gcda
	$(CC) $(KUNIT_FLAGS) -O0 --coverage -c -o $@.o $<
	$(CC) --coverage -o $@ $@.o

coverage: $(COVERAGE)
	@tests/coverage.py --least 90 $(COVERAGE)

$U/%.o: %.c | $B
	@mkdir -p $(@D)
	$(CC) $(OURS) -iquote lib -iquote tools $(WARN) $(UNIT_FLAGS) $(DEPGEN) -c -o $@ $<

$U/tools/main.o: OURS += -Dmain=rmpool_tool_main

# An archive: a test may have functions of its own in place of the library's.
$U/librmpool.a: $(LIB_SRC:%.c=$U/%.o)
	@rm -f $@
	$(AR) rcs $@ $^

CLI_UNIT := $(patsubst %.c,$U/%.o,$(wildcard tests/unit/cli_*.c) $(TOOL_SRC))

define unit_program
$B/$(1:.c=): $U/$(1:.c=.o) $(if $(findstring /test_cli,$(1)),$(CLI_UNIT)) $U/librmpool.a
	@mkdir -p $$(@D)
	$$(CC) $$(UNIT_FLAGS) -o $$@ $$^ -lcmocka $$(LIBS) $$(TOOL_LIBS)
endef
$(foreach test,$(UNIT_SRC),$(eval $(call unit_program,$(test))))

# Fuzz targets, tests/fuzz/fuzz_NAME.c: with libFuzzer, and as programs that take in
# the corpus once.
FUZZ_FLAGS = $(OURS) -Wall -Wextra $(if $(WERROR),-Werror) -iquote kmod $(UNIT_FLAGS)

FUZZ_DEPS := tests/fuzz/fuzz.h $(wildcard kmod/*.[ch] lib/*.h lib/include/*.h uapi/linux/*.h)

$(CORPUS): $B/tests/unit/corpus_%: tests/fuzz/fuzz_%.c tests/fuzz/replay.c $U/librmpool.a $(FUZZ_DEPS)
	@mkdir -p $(@D)
	$(CC) $(FUZZ_FLAGS) -o $@ $< tests/fuzz/replay.c $U/librmpool.a $(LIBS)

$(FUZZ:%=$B/fuzz/%): $B/fuzz/%: tests/fuzz/fuzz_%.c $(LIB_SRC) $(FUZZ_DEPS)
	@mkdir -p $(@D)
	clang $(FUZZ_FLAGS) -fsanitize=fuzzer -o $@ $< $(LIB_SRC) $(LIBS)

fuzz: $(FUZZ:%=$B/fuzz/%)
	@tests/fuzz/run $(or $(SECONDS),60) $(FUZZ)

# The header from C++, and the example of the documentation.
$B/tests/unit/header: tests/unit/header.cc lib/include/rmpool.h $B/lib/librmpool.so
	@mkdir -p $(@D)
	$(CXX) -Wall -Wextra -Werror -pedantic -Ilib/include -Iuapi -o $@ $< \
		-Wl,-rpath,'$$ORIGIN/../../lib' -L$B/lib -lrmpool

$B/tests/unit/hello: docs/examples/hello.c lib/include/rmpool.h $B/lib/librmpool.so
	@mkdir -p $(@D)
	$(CC) $(OURS) $(WARN) $(CFLAGS) -o $@ $< -Wl,-rpath,'$$ORIGIN/../../lib' -L$B/lib -lrmpool

# Programs that suites run in the VMs: tests/programs/NAME.c, linked with the library
# and with what a line in it names:
#	// LIBS: -lrdmacm
PROGRAMS := $(patsubst tests/programs/%.c,$B/bin/%,$(wildcard tests/programs/*.c))
.PHONY: programs
programs: $(PROGRAMS)
$B/bin/%: tests/programs/%.c $B/lib/librmpool.so
	@mkdir -p $(@D)
	$(CC) $(OURS) $(WARN) $(CFLAGS) -MMD -MP -MF $B/obj/$*.program.d \
		-Wl,-rpath,'$$ORIGIN/../lib' -o $@ $< -L$B/lib -lrmpool $(LIBS) -lrt \
		$(shell sed -n 's|^// LIBS:||p' $<)

# ---- tests in VMs -----------------------------------------------------------

vmctl: $B/vm/vmctl
$B/vm/vmctl: tests/vm/guest/vmctl.c | $B
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -D_GNU_SOURCE $(WARN) -O2 -static -o $@.$$$$ $< && mv $@.$$$$ $@

deps:
	tests/deps.sh

# A kernel for the VMs with KASAN, lockdep and the like; kept outside the tree.
test-kernel:
	@tests/deps.sh --if-missing --test-kernel
	@tests/kernel/build $(VARIANT)

# Of K or KERNEL "test" or "test-VARIANT": the kernel must be there first.
built-kernel = $(if $(filter test test-%,$(1)),@tests/deps.sh --if-missing --test-kernel && \
	tests/kernel/build $(patsubst test-%,%,$(filter test-%,$(1))))

RUN_OPTIONS = $(if $(T),-T '$(T)') $(if $(K),-K '$(K)') $(if $(MINUTES),--minutes '$(MINUTES)')

check:
	@tests/deps.sh --if-missing
	$(call built-kernel,$(K))
	@tests/run.py $(RUN_OPTIONS)

# More of it, and on the test kernel as well: up to an hour, and hours.
check-all check-long:
	@tests/deps.sh --if-missing --test-kernel
	@tests/kernel/build
	@tests/run.py --level $(@:check-%=%) $(RUN_OPTIONS)

demo:
	@tests/deps.sh --if-missing
	@tests/demo/run

vm:
	@tests/deps.sh --if-missing
	$(call built-kernel,$(KERNEL))
	@echo 'building ...'
	@tests/run.py --build-only -K '$(or $(KERNEL),6.12)'
	@tests/vm/vm shell -k '$(or $(KERNEL),6.12)' $(if $(PAIR),--pair)

lint:
	@tests/deps.sh --if-missing --lint
	@tests/lint.py

# ---- installation -----------------------------------------------------------

MANSECTIONS := 1 3 4 7
COMPLETIONDIR ?= $(PREFIX)/share/bash-completion/completions
D	= $(DESTDIR)

install: install-user
ifneq ($(KDIR),)
	@if [ -f '$(KBUILD_TREE)/rmpool.ko' ]; then \
		set -x; \
		install -D -m 644 $(KBUILD_TREE)/rmpool.ko $(D)/lib/modules/$(KVER)/updates/rmpool.ko; \
		[ -n '$(D)' ] || depmod $(KVER); \
	else \
		echo 'module for $(KVER) is not built: not installed (see also dkms-install)'; \
	fi
else
	@echo '$(NO_KDIR)'
endif

install-user: lib tools install-access
	install -d $(D)$(BINDIR) $(D)$(LIBDIR)/pkgconfig $(D)$(INCDIR)/linux
	install -m 755 $B/bin/rmpool $(D)$(BINDIR)/
	install -m 755 $(SHARED) $(D)$(LIBDIR)/
	ln -sf $(notdir $(SHARED)) $(D)$(LIBDIR)/$(SONAME)
	ln -sf $(SONAME) $(D)$(LIBDIR)/librmpool.so
	install -m 644 $B/lib/librmpool.a $(D)$(LIBDIR)/
	install -m 644 $B/lib/pkgconfig/rmpool.pc $(D)$(LIBDIR)/pkgconfig/
	install -m 644 lib/include/rmpool.h $(D)$(INCDIR)/
	install -m 644 uapi/linux/rmpool.h uapi/linux/rmpool_netlink.h $(D)$(INCDIR)/linux/
	install -D -m 644 tools/completion/rmpool.bash $(D)$(COMPLETIONDIR)/rmpool
	for s in $(MANSECTIONS); do for page in docs/man/*.$$s; do \
		[ ! -f "$$page" ] || install -D -m 644 -t $(D)$(MANDIR)/man$$s "$$page"; done; done
	$(if $(D),,ldconfig)

# Who may open /dev/rmpool.
install-access:
	install -D -m 644 packaging/60-rmpool.rules $(D)$(UDEVDIR)/60-rmpool.rules
	install -D -m 644 packaging/rmpool.sysusers $(D)$(SYSUSERSDIR)/rmpool.conf
ifeq ($(DESTDIR),)
	getent group rmpool >/dev/null || groupadd --system rmpool
	! udevadm control --reload 2>/dev/null || udevadm trigger --sysname-match=rmpool
endif

uninstall-user:
	rm -f $(D)$(BINDIR)/rmpool $(D)$(LIBDIR)/librmpool.a $(D)$(LIBDIR)/librmpool.so*
	rm -f $(D)$(LIBDIR)/pkgconfig/rmpool.pc $(D)$(INCDIR)/rmpool.h
	rm -f $(D)$(INCDIR)/linux/rmpool.h $(D)$(INCDIR)/linux/rmpool_netlink.h
	rm -f $(D)$(COMPLETIONDIR)/rmpool
	for s in $(MANSECTIONS); do for page in docs/man/*.$$s; do \
		rm -f "$(D)$(MANDIR)/man$$s/$${page##*/}"; done; done
	rm -f $(D)$(UDEVDIR)/60-rmpool.rules $(D)$(SYSUSERSDIR)/rmpool.conf
	$(if $(D),,ldconfig)
	$(if $(D),,! getent group rmpool >/dev/null || groupdel rmpool)

uninstall: uninstall-user
	rm -f $(D)/lib/modules/*/updates/rmpool.ko
	$(if $(D),,for k in /lib/modules/*/modules.dep; do depmod $$(basename $$(dirname $$k)); done)

# KVER on the command line restricts to one kernel.
dkms-install: install-access
	packaging/dkms.sh install '$(VERSION)' '$(SRCDIR)' '$(if $(filter command,$(subst command line,command,$(origin KVER))),$(KVER))'

dkms-remove:
	packaging/dkms.sh remove '$(VERSION)' '$(SRCDIR)'
	rm -f $(UDEVDIR)/60-rmpool.rules $(SYSUSERSDIR)/rmpool.conf
	! getent group rmpool >/dev/null || groupdel rmpool

clean:
	rm -rf $B

-include $(wildcard $B/obj/*/*.d $B/obj/*.d $U/*/*.d $U/*/*/*.d)
