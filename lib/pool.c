// SPDX-License-Identifier: MIT
/*
 * The pool: opening the device, memory, and segments.
 *
 * A struct rmpool is a descriptor and, once it is set up, the ring. The kernel
 * does its own locking for everything behind the descriptor; the only lock here
 * guards the set-up of the ring (request.c), so that no call ever waits for
 * another one.
 */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Size of the first version. */
#define REGION_ADD_MIN offsetof(struct rmpool_region_add, dmabuf_offset)

#define NOT_LOADED "the module is not loaded; load it with 'modprobe rmpool'"

int rmpl_ioctl(struct rmpool *pool, unsigned long command, void *argument)
{
	int saved = errno;
	int err = ioctl(pool->fd, command, argument) < 0 ? errno : 0;

	errno = saved;
	return -err;
}

const char *rmpl_ioctl_why(int err)
{
	switch (err) {
	case EPERM:
		return "only the process that opened the pool may use it";
	case ENOTTY:
		return "the loaded module does not know this call; it is older than the library";
	case E2BIG:
		return "the loaded module does not know a field of this call; it is older than the library";
	case EINTR:
		return "interrupted by a signal";
	default:
		return NULL;
	}
}

int64_t rmpl_timeout(int ms)
{
	return ms < 0 ? -1 : (int64_t)ms * 1000000;
}

const char *rmpool_version(void)
{
	return RMPOOL_VERSION;
}

/* Say which group may open the device. */
static int fail_access(const char *path)
{
	char why[192];
	char buffer[1024];
	struct group entry, *group = NULL;
	struct stat st;

	if (stat(path, &st) < 0)
		return rmpl_fail(EACCES, NULL, NULL, "cannot open %s", path);
	if (!st.st_gid || (st.st_mode & 060) != 060)
		snprintf(why, sizeof(why),
			 "permission denied; it is for root, mode %04o: install the udev rule of rmpool, or use udevadm trigger after it was installed",
			 (unsigned int)st.st_mode & 07777);
	else if (getgrgid_r(st.st_gid, &entry, buffer, sizeof(buffer), &group) ||
	    !group)
		snprintf(why, sizeof(why),
			 "permission denied; it is for group %u, mode %04o",
			 (unsigned int)st.st_gid,
			 (unsigned int)st.st_mode & 07777);
	else
		snprintf(why, sizeof(why),
			 "permission denied; it is for group %s, mode %04o: add the user to the group and log in again",
			 group->gr_name, (unsigned int)st.st_mode & 07777);
	return rmpl_fail(EACCES, NULL, why, "cannot open %s", path);
}

/* Is the other side of the descriptor a module that we understand? */
static int check_module(struct rmpool *pool, const char *path)
{
	struct rmpool_info info = { .abi_version = 0 };
	char why[96];
	int ret;

	ret = rmpl_ioctl(pool, RMPOOL_IOC_INFO, &info);
	if (ret == -ENOTTY)
		return rmpl_fail(ENOTTY, NULL, "it is not the device of rmpool",
				 "cannot use %s", path);
	if (ret)
		return rmpl_fail(-ret, NULL, NULL, "cannot use %s", path);
	if (info.abi_version != RMPOOL_ABI_VERSION) {
		snprintf(why, sizeof(why),
			 "the module has interface version %" PRIu32 ", this library needs %d",
			 info.abi_version, RMPOOL_ABI_VERSION);
		return rmpl_fail(EPROTONOSUPPORT, NULL, why, "cannot use %s",
				 path);
	}
	return 0;
}

int rmpool_open(struct rmpool **poolp, const char *path, unsigned int flags)
{
	struct rmpool *pool;
	int saved = errno;
	int err, ret;

	*poolp = NULL;
	if (!path)
		path = RMPOOL_DEVICE_PATH;
	if (flags)
		return rmpl_fail(EINVAL, NULL, "unknown flags", "cannot open %s",
				 path);
	pool = calloc(1, sizeof(*pool));
	if (!pool)
		return rmpl_fail(ENOMEM, NULL, NULL, "cannot open %s", path);

	pool->fd = open(path, O_RDWR | O_CLOEXEC);
	if (pool->fd < 0) {
		err = errno;
		errno = saved;
		free(pool);
		switch (err) {
		case EACCES:
			return fail_access(path);
		case ENOENT:
		case ENXIO:	/* a node that was left behind */
		case ENODEV:
			return rmpl_fail(err, NULL, NOT_LOADED, "cannot open %s",
					 path);
		default:
			return rmpl_fail(err, NULL, NULL, "cannot open %s",
					 path);
		}
	}
	ret = check_module(pool, path);
	if (ret) {
		close(pool->fd);
		free(pool);
		return ret;
	}
	pthread_mutex_init(&pool->lock, NULL);
	*poolp = pool;
	return 0;
}

void rmpool_close(struct rmpool *pool)
{
	if (!pool)
		return;
	if (atomic_load_explicit(&pool->has_ring, memory_order_acquire)) {
		rmpl_ring_destroy(&pool->ring);
		munmap(pool->map, pool->map_size);
	}
	close(pool->fd);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

int rmpool_fd(const struct rmpool *pool)
{
	return pool->fd;
}

int rmpool_info(struct rmpool *pool, struct rmpool_info *info, size_t size)
{
	struct rmpool_info full = { .abi_version = 0 };
	int ret;

	ret = rmpl_ioctl(pool, RMPOOL_IOC_INFO, &full);
	if (ret)
		return rmpl_fail(-ret, NULL, rmpl_ioctl_why(-ret),
				 "cannot ask the module about itself");
	/* A program may have been built with an older or a newer structure. */
	memset(info, 0, size);
	memcpy(info, &full, size < sizeof(full) ? size : sizeof(full));
	return 0;
}

/* Only the length is checked here; the kernel knows which characters it takes. */
static int fail_name(const char *what, const char *name)
{
	const struct rmpool_error detail = {
		.reason = RMPOOL_REASON_NAME_BAD,
		.limit = RMPOOL_NAME_MAX - 1,
		.need = strlen(name),
	};

	return rmpl_fail(EINVAL, &detail, NULL, "%s '%.80s'", what, name);
}

int rmpool_publish(struct rmpool *pool, const char *name, uint32_t *segment)
{
	struct rmpool_segment_create arg = { .flags = 0 };
	int ret;

	if (!rmpl_name_copy(arg.name, name))
		return fail_name("cannot publish segment", name);
	ret = rmpl_ioctl(pool, RMPOOL_IOC_SEGMENT_CREATE, &arg);
	if (ret)
		return rmpl_fail(-ret, &arg.error, rmpl_ioctl_why(-ret),
				 "cannot publish segment '%s'", name);
	*segment = arg.handle;
	return 0;
}

int rmpool_segment_allow(struct rmpool *pool, uint32_t segment,
			 const struct rmpool_allow_entry *entries, uint32_t nr)
{
	struct rmpool_segment_allow arg = {
		.entries = (uintptr_t)entries,
		.handle = segment,
		.nr = entries ? nr : 0,
		.size = sizeof(*entries),
		.flags = entries ? RMPOOL_ALLOW_LIST : 0,
	};
	char why[RMPL_WHY_MAX];
	int ret;

	ret = rmpl_ioctl(pool, RMPOOL_IOC_SEGMENT_ALLOW, &arg);
	if (!ret)
		return (int)arg.rekeyed;
	switch (ret) {
	case -ENOENT:
		snprintf(why, sizeof(why), "no published segment has that handle");
		break;
	case -EEXIST:
	case -EINVAL:
		snprintf(why, sizeof(why), "entry %" PRIu64 " of the list %s",
			 (uint64_t)arg.error.need,
			 ret == -EEXIST ? "names a peer that an earlier one has" :
					  "is malformed");
		break;
	case -ENOSPC:
		snprintf(why, sizeof(why),
			 "the list holds, but %" PRIu32 " of %" PRIu32
			 " regions found no room for other keys on all their devices",
			 arg.lost, arg.rekeyed);
		break;
	default:
		return rmpl_fail(-ret, &arg.error, rmpl_ioctl_why(-ret),
				 "cannot say who may open segment %" PRIu32, segment);
	}
	return rmpl_fail(-ret, NULL, why, "cannot say who may open segment %" PRIu32,
			 segment);
}

/* The calls that give back one object by its handle. */
static int drop(struct rmpool *pool, unsigned long command, uint32_t handle,
		const char *what)
{
	struct rmpool_handle arg = { .handle = handle };
	const char *why;
	int ret;

	ret = rmpl_ioctl(pool, command, &arg);
	if (!ret)
		return 0;
	why = ret == -ENOENT ? "there is none with that handle" :
			       rmpl_ioctl_why(-ret);
	return rmpl_fail(-ret, NULL, why, "cannot %s %" PRIu32, what, handle);
}

int rmpool_unpublish(struct rmpool *pool, uint32_t segment)
{
	return drop(pool, RMPOOL_IOC_SEGMENT_DELETE, segment,
		    "unpublish segment");
}

/* Why memory could not be registered, of one range, which may be of the first version. */
static int fail_register(int err, const struct rmpool_region_add *range)
{
	char bytes[RMPL_QUANTITY_MAX], of[32] = "";
	const char *why;

	if (range->flags & RMPOOL_REGION_DMABUF)
		snprintf(of, sizeof(of), " of dma-buf %" PRId32, range->dmabuf_fd);
	why = err == ENOENT ? "no published segment has that handle" :
			      rmpl_ioctl_why(err);
	return rmpl_fail(err, &range->error, why, "cannot register %s%s at 0x%" PRIx64,
			 rmpl_bytes(range->length, bytes), of, (uint64_t)range->addr);
}

/* One range; tells its handle and place. */
static int add_region(struct rmpool *pool, struct rmpool_region_add *range,
		      uint32_t *region, uint64_t *placed)
{
	int ret = rmpl_ioctl(pool, RMPOOL_IOC_REGION_ADD, range);

	if (ret)
		return fail_register(-ret, range);
	*region = range->handle;
	if (placed)
		*placed = range->offset;
	return 0;
}

int rmpool_register_flags(struct rmpool *pool, void *addr, size_t length,
			  uint32_t access, uint32_t flags, uint32_t segment,
			  uint64_t offset, uint32_t *region, uint64_t *placed)
{
	struct rmpool_region_add arg = {
		.addr = (uintptr_t)addr,
		.length = length,
		.offset = offset,
		.segment = segment,
		.access = access,
		.flags = flags,
	};

	return add_region(pool, &arg, region, placed);
}

int rmpool_register_dmabuf(struct rmpool *pool, int fd, uint64_t start, void *addr,
			   size_t length, uint32_t access, uint32_t flags,
			   uint32_t segment, uint64_t offset, uint32_t *region,
			   uint64_t *placed)
{
	struct rmpool_region_add arg = {
		.addr = (uintptr_t)addr,
		.length = length,
		.offset = offset,
		.segment = segment,
		.access = access,
		.flags = flags | RMPOOL_REGION_DMABUF,
		.dmabuf_fd = fd,
		.dmabuf_offset = start,
	};

	return add_region(pool, &arg, region, placed);
}

int rmpool_register(struct rmpool *pool, void *addr, size_t length,
		    uint32_t access, uint32_t segment, uint64_t offset,
		    uint32_t *region, uint64_t *placed)
{
	return rmpool_register_flags(pool, addr, length, access, 0, segment,
				     offset, region, placed);
}

int rmpool_unregister(struct rmpool *pool, uint32_t region)
{
	return drop(pool, RMPOOL_IOC_REGION_DEL, region, "unregister region");
}

static const char *many_why(int err, uint32_t nr)
{
	switch (err) {
	case EINVAL:
		return nr ? NULL : "there is no region";
	case EFAULT:
		return "the array is not in accessible memory";
	default:
		return rmpl_ioctl_why(err);
	}
}

/* About the first that failed. */
static void explain_first(const struct rmpool_region_add *regions, uint32_t nr,
			  size_t size)
{
	const char *at = (const char *)regions;

	for (; nr; nr--, at += size) {
		const struct rmpool_region_add *r = (const void *)at;

		if (r->status) {
			fail_register(-r->status, r);
			return;
		}
	}
}

int rmpool_register_many(struct rmpool *pool, struct rmpool_region_add *regions,
			 uint32_t nr, size_t size)
{
	struct rmpool_region_add_many arg = {
		.regions = (uintptr_t)regions,
		.nr = nr,
		.size = (uint32_t)size,
	};
	int ret;

	/* A program may have been built with an older or a newer structure. */
	if (size < REGION_ADD_MIN || size > UINT32_MAX ||
	    size % _Alignof(struct rmpool_region_add))
		return rmpl_fail(EINVAL, NULL, "the size of an entry is not valid",
				 "cannot register %" PRIu32 " regions", nr);
	ret = rmpl_ioctl(pool, RMPOOL_IOC_REGION_ADD_MANY, &arg);
	if (ret)
		return rmpl_fail(-ret, &arg.error, many_why(-ret, nr),
				 "cannot register %" PRIu32 " regions", nr);
	if (arg.tried > nr)
		return rmpl_fail(EPROTO, NULL, "the module tells of more",
				 "cannot register %" PRIu32 " regions", nr);
	if (arg.failed)
		explain_first(regions, arg.tried, size);
	return (int)arg.tried;
}

int rmpool_unregister_many(struct rmpool *pool, const uint32_t *regions, uint32_t nr,
			   /* NOLINTNEXTLINE(readability-non-const-parameter): the module writes it */
			   int32_t *status)
{
	struct rmpool_region_del_many arg = {
		.handles = (uintptr_t)regions,
		.status = (uintptr_t)status,
		.nr = nr,
	};
	int ret;

	ret = rmpl_ioctl(pool, RMPOOL_IOC_REGION_DEL_MANY, &arg);
	if (ret)
		return rmpl_fail(-ret, &arg.error, many_why(-ret, nr),
				 "cannot unregister %" PRIu32 " regions", nr);
	return (int)arg.failed;
}

int rmpool_segment_open(struct rmpool *pool, const char *node, const char *name,
			int timeout_ms, uint32_t *segment,
			struct rmpool_segment_info *info)
{
	struct rmpool_segment_open arg = {
		.timeout_ns = rmpl_timeout(timeout_ms),
	};
	struct rmpool_address address;
	int ret;

	if (!name) {
		ret = rmpool_address_parse(node, &address);
		if (ret)
			return ret;
		if (strchr(node, '+'))
			return rmpl_fail(EINVAL, NULL,
					 "an offset has no place here",
					 "cannot open segment '%s'", node);
		node = address.node;
		name = address.segment;
	}
	if (!rmpl_name_copy(arg.node, node))
		return fail_name("cannot open a segment of peer", node);
	if (!rmpl_name_copy(arg.name, name))
		return fail_name("cannot open segment", name);

	ret = rmpl_ioctl(pool, RMPOOL_IOC_SEGMENT_OPEN, &arg);
	if (ret == -ETIMEDOUT && timeout_ms >= 0)
		return rmpl_fail(ETIMEDOUT, &arg.error, NULL,
				 "cannot open segment '%s/%s' within %d ms",
				 node, name, timeout_ms);
	if (ret)
		return rmpl_fail(-ret, &arg.error, rmpl_ioctl_why(-ret),
				 "cannot open segment '%s/%s'", node, name);
	*segment = arg.handle;
	if (info) {
		memset(info, 0, sizeof(*info));
		info->size = arg.size;
		info->generation = arg.generation;
		info->nr_regions = arg.nr_regions;
	}
	return 0;
}

int rmpool_segment_close(struct rmpool *pool, uint32_t segment)
{
	return drop(pool, RMPOOL_IOC_SEGMENT_CLOSE, segment, "close segment");
}

/*
 * Read all regions into an array of @room entries. Returns 0, -EAGAIN when the
 * array is too small (then *total says how large it must be) or the segment
 * changed between two calls, or another negative errno.
 */
static int list_regions(struct rmpool *pool, struct rmpool_segment_list *arg,
			struct rmpool_region_desc *array, uint32_t room)
{
	uint64_t generation = 0;
	uint32_t got = 0;
	int ret;

	do {
		arg->regions = (uintptr_t)(array + got);
		arg->first = got;
		arg->nr = room - got;
		ret = rmpl_ioctl(pool, RMPOOL_IOC_SEGMENT_LIST, arg);
		if (ret)
			return ret;
		if (got && arg->generation != generation)
			return -EAGAIN;
		generation = arg->generation;
		if (arg->total > room)
			return -EAGAIN;
		if (arg->nr > room - got || (!arg->nr && got < arg->total))
			return -EPROTO;
		got += arg->nr;
	} while (got < arg->total);
	return 0;
}

int rmpool_segment_regions(struct rmpool *pool, uint32_t segment,
			   struct rmpool_region_desc **regions, uint32_t *nr,
			   uint64_t *generation)
{
	struct rmpool_segment_list arg = { .handle = segment };
	struct rmpool_region_desc *array = NULL, *larger;
	const char *why;
	uint32_t room = 64;
	int ret = -EAGAIN;

	/* A segment that changes all the time must not keep us for ever. */
	for (int tries = 0; ret == -EAGAIN && tries < 32; tries++) {
		larger = reallocarray(array, room, sizeof(*array));
		if (!larger) {
			ret = -ENOMEM;
			break;
		}
		array = larger;
		ret = list_regions(pool, &arg, array, room);
		if (arg.total > room)
			room = arg.total;
	}
	if (ret) {
		free(array);
		why = ret == -ENOENT ? "no opened segment has that handle" :
		      ret == -EAGAIN ? "its regions keep changing" :
				       rmpl_ioctl_why(-ret);
		return rmpl_fail(-ret, NULL, why,
				 "cannot list the regions of segment %" PRIu32,
				 segment);
	}
	if (!arg.total) {
		free(array);
		array = NULL;
	}
	*regions = array;
	*nr = arg.total;
	if (generation)
		*generation = arg.generation;
	return 0;
}
