//! The native methods of `mpjdev.core.Native`, and the calls about the library itself.

use mpjdev_profile::Call;

use crate::boundary::{self, Env, natives};
use crate::direct::{bounced, exchange, packing_unit, typed};
use crate::error::{self, Failure};
use crate::{buffer, collective, comm, direct, handle, job, requests, stats, topology, types, view};

/// Raised together with `Native.ABI` when a method is removed or its signature changes.
const ABI: i32 = 11;

natives! {
    "abi" Java_mpjdev_core_Native_abi = abi, () -> int;
    "table" Java_mpjdev_core_Native_table = table, () -> text;
    "newWriter" Java_mpjdev_core_Native_newWriter = buffer::new_writer, (capacity: int, order: int) -> long;
    "newReader" Java_mpjdev_core_Native_newReader = buffer::new_reader, (capacity: int) -> long;
    "close" Java_mpjdev_core_Native_close = buffer::close, (handle: long) -> void;
    "capacity" Java_mpjdev_core_Native_capacity = buffer::capacity, (handle: long) -> int;
    "ensureCapacity" Java_mpjdev_core_Native_ensureCapacity = buffer::ensure_capacity, (handle: long, capacity: int) -> void;
    "restoreCapacity" Java_mpjdev_core_Native_restoreCapacity = buffer::restore_capacity, (handle: long) -> void;
    "sectionCapacity" Java_mpjdev_core_Native_sectionCapacity = buffer::section_capacity, (element: int, count: int) -> long;
    "gather" Java_mpjdev_core_Native_gather = buffer::gather,
        (handle: long, array/length/element: array, base: int, count: int, offs: int, indexes/ints: ints, flags: int) -> void;
    "scatter" Java_mpjdev_core_Native_scatter = buffer::scatter,
        (handle: long, array/length/element: array, base: int, count: int, offs: int, indexes/ints: ints, flags: int) -> void;
    "strGather" Java_mpjdev_core_Native_strGather = buffer::str_gather,
        (handle: long, array/length/element: array, off: int, rank: int, exts: int, strs: int, indexes/ints: ints, flags: int) -> void;
    "strScatter" Java_mpjdev_core_Native_strScatter = buffer::str_scatter,
        (handle: long, array/length/element: array, off: int, rank: int, exts: int, strs: int, indexes/ints: ints, flags: int) -> void;
    "writeDirect" Java_mpjdev_core_Native_writeDirect = buffer::write_direct,
        (handle: long, source: direct, off: long, element: int, count: int, flags: int) -> void;
    "readDirect" Java_mpjdev_core_Native_readDirect = buffer::read_direct,
        (handle: long, dest: direct, off: long, element: int, count: int, flags: int) -> void;
    "writeView" Java_mpjdev_core_Native_writeView = view::write,
        (handle: long, element: int, count: int, out/length: longs, flags: int) -> view;
    "readView" Java_mpjdev_core_Native_readView = view::read,
        (handle: long, element: int, count: int, out/length: longs, flags: int) -> view;
    "freeView" Java_mpjdev_core_Native_freeView = view::free, (view: long) -> void;
    "beginObjects" Java_mpjdev_core_Native_beginObjects = buffer::begin_objects, (handle: long, flags: int) -> long;
    "writeObjects" Java_mpjdev_core_Native_writeObjects = buffer::write_objects, (handle: long, count: int, flags: int) -> void;
    "readObjects" Java_mpjdev_core_Native_readObjects = buffer::read_objects, (handle: long, count: int, flags: int) -> void;
    "checkObjects" Java_mpjdev_core_Native_checkObjects = buffer::check_objects, (handle: long, count: int, flags: int) -> void;
    "appendSecondary" Java_mpjdev_core_Native_appendSecondary = buffer::append_secondary,
        (handle: long, chunk/length: bytes, off: int, count: int) -> void;
    "truncateSecondary" Java_mpjdev_core_Native_truncateSecondary = buffer::truncate_secondary, (handle: long, len: long) -> void;
    "readSecondary" Java_mpjdev_core_Native_readSecondary = buffer::read_secondary,
        (handle: long, at: long, chunk/length: bytes, off: int, count: int) -> int;
    "secondaryLength" Java_mpjdev_core_Native_secondaryLength = buffer::secondary_len, (handle: long, flags: int) -> long;
    "logicalLength" Java_mpjdev_core_Native_logicalLength = buffer::logical_len, (handle: long, flags: int) -> long;
    "copyLogical" Java_mpjdev_core_Native_copyLogical = buffer::copy_logical, (handle: long, dest/length: bytes, flags: int) -> void;
    "load" Java_mpjdev_core_Native_load = buffer::load, (handle: long, source/length: bytes) -> void;
    "peek" Java_mpjdev_core_Native_peek = buffer::peek, (handle: long, flags: int) -> long;
    "sectionCount" Java_mpjdev_core_Native_sectionCount = buffer::section_count, (handle: long, flags: int) -> int;
    "openBuffers" Java_mpjdev_core_Native_openBuffers = open_buffers, () -> int;
    "usedMemory" Java_mpjdev_core_Native_usedMemory = used_memory, () -> long;
    "setMemoryLimit" Java_mpjdev_core_Native_setMemoryLimit = set_memory_limit, (limit: long) -> void;
    "firstSection" Java_mpjdev_core_Native_firstSection = buffer::first_section, (handle: long) -> long;
    "isUnit" Java_mpjdev_core_Native_isUnit = buffer::is_unit, (handle: long) -> bool;
    "patchCount" Java_mpjdev_core_Native_patchCount = buffer::patch_count,
        (length: int, off: int, rank: int, exts: int, strs: int, indexes/ints: ints) -> int;
    "patchElements" Java_mpjdev_core_Native_patchElements = buffer::patch_elements,
        (length: int, off: int, rank: int, exts: int, strs: int, indexes/ints: ints, elements/room: ints) -> void;
    "openRequests" Java_mpjdev_core_Native_openRequests = open_requests, () -> int;
    "worldOfOne" Java_mpjdev_core_Native_worldOfOne = job::world_of_one, () -> long;
    "processWorld" Java_mpjdev_core_Native_processWorld = job::process_world, () -> long;
    "selfComm" Java_mpjdev_core_Native_selfComm = comm::alone, (comm: long) -> long;
    "localJob" Java_mpjdev_core_Native_localJob = job::local_job, (worlds/length: longs, message_oriented: bool) -> void;
    "rank" Java_mpjdev_core_Native_rank = comm::rank, (comm: long) -> int;
    "size" Java_mpjdev_core_Native_size = comm::size, (comm: long) -> int;
    "freeComm" Java_mpjdev_core_Native_freeComm = comm::free, (comm: long) -> void;
    "finish" Java_mpjdev_core_Native_finish = job::finish, (comm: long) -> void;
    "usesMpi" Java_mpjdev_core_Native_usesMpi = job::uses_mpi, () -> bool;
    "endProcess" Java_mpjdev_core_Native_endProcess = job::end_process, (why: string) -> void;
    "endJob" Java_mpjdev_core_Native_endJob = job::end_job, (status: int, why: string) -> void;
    "abort" Java_mpjdev_core_Native_abort = job::abort, (comm: long, why: string) -> void;
    "send" Java_mpjdev_core_Native_send = comm::send as Call::Send, (comm: long, buffer: long, dest: int, tag: int, synchronous: bool, flags: int) -> void;
    "isend" Java_mpjdev_core_Native_isend = comm::isend as Call::Isend, (comm: long, buffer: long, dest: int, tag: int, synchronous: bool, flags: int) -> long;
    "recv" Java_mpjdev_core_Native_recv = comm::recv as Call::Recv, (comm: long, buffer: long, source: int, tag: int, out: status) -> long;
    "recvFrom" Java_mpjdev_core_Native_recvFrom = comm::recv_from as Call::Recv, (comm: long, buffer: long, source: int, tag: int) -> long;
    "irecv" Java_mpjdev_core_Native_irecv = comm::irecv as Call::Irecv, (comm: long, buffer: long, source: int, tag: int) -> long;
    "probe" Java_mpjdev_core_Native_probe = comm::probe as Call::Probe, (comm: long, source: int, tag: int, out: status) -> long;
    "iprobe" Java_mpjdev_core_Native_iprobe = comm::iprobe as Call::Iprobe, (comm: long, source: int, tag: int, out: status) -> long;
    "probedCount" Java_mpjdev_core_Native_probedCount = comm::probed_count, (comm: long, source: int, tag: int) -> long;
    "await" Java_mpjdev_core_Native_await = comm::wait as Call::Wait, (request: long, nanos: long, out: status) -> long;
    "test" Java_mpjdev_core_Native_test = comm::test as Call::Test, (request: long, out: status) -> long;
    "awaitAny" Java_mpjdev_core_Native_awaitAny = comm::wait_any as Call::Waitany, (requests/length: longs, count: int, nanos: long) -> int;
    "completeRequests" Java_mpjdev_core_Native_completeRequests = requests::complete as requests::call(how, blocking),
        (requests/length: longs, arrays/array_count: objects, results/room: longs, how: int, blocking: bool) -> int;
    "cancel" Java_mpjdev_core_Native_cancel = comm::cancel, (request: long) -> bool;
    "incompleteRequests" Java_mpjdev_core_Native_incompleteRequests = requests::incomplete, (comm: long) -> long;
    "freeRequest" Java_mpjdev_core_Native_freeRequest = comm::free_request, (request: long) -> void;
    "sendArray" Java_mpjdev_core_Native_sendArray = direct::send as Call::Send,
        (comm: long, array/length/element: array, off: int, count: int, dest: int, tag: int, synchronous: bool) -> void;
    "recvArray" Java_mpjdev_core_Native_recvArray = direct::recv as Call::Recv,
        (comm: long, array/length/element: array, off: int, count: int, source: int, tag: int, out: status) -> long;
    "recvArrayFrom" Java_mpjdev_core_Native_recvArrayFrom = direct::recv_from as Call::Recv,
        (comm: long, array/length/element: array, off: int, count: int, source: int, tag: int) -> long;
    "addressOf" Java_mpjdev_core_Native_addressOf = buffer::address, (buffer: direct) -> long;
    "sendBounced" Java_mpjdev_core_Native_sendBounced = bounced::send as Call::Send,
        (comm: long, address/count/element: bounced, dest: int, tag: int, synchronous: bool) -> void;
    "recvBounced" Java_mpjdev_core_Native_recvBounced = bounced::recv as Call::Recv,
        (comm: long, address/count/element: bounced, source: int, tag: int, out: status) -> long;
    "recvBouncedFrom" Java_mpjdev_core_Native_recvBouncedFrom = bounced::recv_from as Call::Recv,
        (comm: long, address/count/element: bounced, source: int, tag: int) -> long;
    "isendBounced" Java_mpjdev_core_Native_isendBounced = bounced::isend as Call::Isend,
        (comm: long, address/count/element: bounced, dest: int, tag: int, synchronous: bool) -> long;
    "irecvBouncedFrom" Java_mpjdev_core_Native_irecvBouncedFrom = bounced::irecv_from as Call::Irecv,
        (comm: long, address/count/element: bounced, length: int, off: int, source: int, tag: int) -> long;
    "isendArray" Java_mpjdev_core_Native_isendArray = direct::isend as Call::Isend,
        (comm: long, array/length/element: array, off: int, count: int, dest: int, tag: int, synchronous: bool) -> long;
    "irecvArray" Java_mpjdev_core_Native_irecvArray = direct::irecv as Call::Irecv,
        (comm: long, array/length/element: array, off: int, count: int, source: int, tag: int, out: status) -> long;
    "awaitArray" Java_mpjdev_core_Native_awaitArray = direct::wait as Call::Wait,
        (request: long, array/length/element: array, nanos: long, out: status) -> long;
    "testArray" Java_mpjdev_core_Native_testArray = direct::test as Call::Test, (request: long, array/length/element: array, out: status) -> long;
    "sendrecvArray" Java_mpjdev_core_Native_sendrecvArray = exchange::sendrecv as Call::Sendrecv,
        (comm: long, from/from_length/from_element: array, from_off: int, send_count: int, dest: int, send_tag: int,
         to/to_length/to_element: array, to_off: int, recv_count: int, source: int, recv_tag: int, out: status) -> long;
    "sendGathered" Java_mpjdev_core_Native_sendGathered = direct::send_gathered as Call::Send,
        (comm: long, array/length/element: array, count: int, offs: int, indexes/ints: ints, dest: int, tag: int) -> void;
    "isendGathered" Java_mpjdev_core_Native_isendGathered = direct::isend_gathered as Call::Isend,
        (comm: long, array/length/element: array, count: int, offs: int, indexes/ints: ints, dest: int, tag: int) -> long;
    "recvScattered" Java_mpjdev_core_Native_recvScattered = direct::recv_scattered as Call::Recv,
        (comm: long, array/length/element: array, count: int, offs: int, indexes/ints: ints, source: int, tag: int,
         out: status) -> long;
    "irecvScattered" Java_mpjdev_core_Native_irecvScattered = direct::irecv_scattered as Call::Irecv,
        (comm: long, array/length/element: array, count: int, offs: int, indexes/ints: ints, source: int, tag: int) -> long;
    "sendPatch" Java_mpjdev_core_Native_sendPatch = direct::send_patch as Call::Send,
        (comm: long, array/length/element: array, off: int, rank: int, exts: int, strs: int, indexes/ints: ints,
         dest: int, tag: int) -> void;
    "isendPatch" Java_mpjdev_core_Native_isendPatch = direct::isend_patch as Call::Isend,
        (comm: long, array/length/element: array, off: int, rank: int, exts: int, strs: int, indexes/ints: ints,
         dest: int, tag: int) -> long;
    "recvPatch" Java_mpjdev_core_Native_recvPatch = direct::recv_patch as Call::Recv,
        (comm: long, array/length/element: array, off: int, rank: int, exts: int, strs: int, indexes/ints: ints,
         source: int, tag: int, out: status) -> long;
    "irecvPatch" Java_mpjdev_core_Native_irecvPatch = direct::irecv_patch as Call::Irecv,
        (comm: long, array/length/element: array, off: int, rank: int, exts: int, strs: int, indexes/ints: ints,
         source: int, tag: int) -> long;
    "sendrecvIndexed" Java_mpjdev_core_Native_sendrecvIndexed = exchange::sendrecv_indexed as Call::Sendrecv,
        (comm: long, from/from_length/from_element: array, send_count: int, from_offs: int, from_indexes/from_ints: ints,
         dest: int, send_tag: int, to/to_length/to_element: array, recv_count: int, to_offs: int,
         to_indexes/to_ints: ints, source: int, recv_tag: int, out: status) -> long;
    "sendrecvPatch" Java_mpjdev_core_Native_sendrecvPatch = exchange::sendrecv_patch as Call::Sendrecv,
        (comm: long, from/from_length/from_element: array, from_off: int, from_rank: int, from_exts: int, from_strs: int,
         from_indexes/from_ints: ints, dest: int, send_tag: int, to/to_length/to_element: array, to_off: int, to_rank: int,
         to_exts: int, to_strs: int, to_indexes/to_ints: ints, source: int, recv_tag: int, out: status) -> long;
    "barrier" Java_mpjdev_core_Native_barrier = comm::barrier as Call::Barrier, (comm: long) -> void;
    "startBarrier" Java_mpjdev_core_Native_startBarrier = comm::start_barrier, (comm: long) -> long;
    "startDup" Java_mpjdev_core_Native_startDup = comm::start_dup, (comm: long) -> long;
    "startCreate" Java_mpjdev_core_Native_startCreate = comm::start_create, (comm: long, ids/length: ints) -> long;
    "startSplit" Java_mpjdev_core_Native_startSplit = comm::start_split, (comm: long, color: int, key: int) -> long;
    "startIntercomm" Java_mpjdev_core_Native_startIntercomm = comm::start_intercomm,
        (comm: long, leader: int, peer: long, remote_leader: int, tag: int) -> long;
    "startMerge" Java_mpjdev_core_Native_startMerge = comm::start_merge, (comm: long, high: bool) -> long;
    "advance" Java_mpjdev_core_Native_advance = comm::advance as Call::Create, (operation: long, blocking: bool) -> long;
    "freeOperation" Java_mpjdev_core_Native_freeOperation = comm::free_operation, (operation: long) -> void;
    "bcast" Java_mpjdev_core_Native_bcast = collective::bcast_items as Call::Bcast,
        (comm: long, datatype: long, array/length/element: array, off: int, count: int, root: int) -> void;
    "moveBlocks" Java_mpjdev_core_Native_moveBlocks = collective::move_blocks as collective::call_of_blocks(how),
        (comm: long, how: int, root: int, send_type: long, from/from_length/from_element: array,
         send_blocks/send_ints: ints, recv_type: long, to/to_length/to_element: array, recv_blocks/recv_ints: ints) -> void;
    "reduce" Java_mpjdev_core_Native_reduce = collective::reduce_items as collective::call_of_reduction(how),
        (comm: long, how: int, root: int, op: int, datatype: long, from/from_length/from_element: array, from_off: int,
         to/to_length/to_element: array, to_off: int, count: int, counts/counts_length: ints) -> void;
    "bcastBounced" Java_mpjdev_core_Native_bcastBounced = collective::bounced::bcast as Call::Bcast,
        (comm: long, address/count/element: bounced, root: int) -> void;
    "moveAtRootBounced" Java_mpjdev_core_Native_moveAtRootBounced =
        collective::bounced::move_at_root as collective::call_of_blocks(how),
        (comm: long, how: int, root: int, address/count/element: bounced) -> void;
    "moveBounced" Java_mpjdev_core_Native_moveBounced = collective::bounced::move_blocks as collective::call_of_blocks(how),
        (comm: long, how: int, address/count/element: bounced) -> void;
    "reduceBounced" Java_mpjdev_core_Native_reduceBounced =
        collective::bounced::reduce as collective::call_of_reduction(how),
        (comm: long, how: int, root: int, op: int, address/count/element: bounced) -> void;
    "reduceWith" Java_mpjdev_core_Native_reduceWith = collective::reduce_with as collective::call_of_reduction(how),
        (comm: long, how: int, root: int, commutative: bool, datatype: long,
         from/from_length/from_element: array, from_off: int, to/to_length/to_element: array, to_off: int, count: int,
         counts/counts_length: ints, combiner: combiner, low/low_length/low_element: array,
         high/high_length/high_element: array, base: int) -> void;
    "typeContiguous" Java_mpjdev_core_Native_typeContiguous = types::contiguous, (old: long, count: int) -> long;
    "typeVector" Java_mpjdev_core_Native_typeVector = types::vector,
        (old: long, count: int, block: int, stride: int, elements: bool) -> long;
    "typeIndexed" Java_mpjdev_core_Native_typeIndexed = types::indexed,
        (old: long, blocks/block_count: ints, displacements/displacement_count: ints, elements: bool) -> long;
    "typeStruct" Java_mpjdev_core_Native_typeStruct = types::structure,
        (blocks/block_count: ints, displacements/displacement_count: ints, types/type_count: longs) -> long;
    "typeInfo" Java_mpjdev_core_Native_typeInfo = types::info, (datatype: long, out/room: ints) -> void;
    "typeElements" Java_mpjdev_core_Native_typeElements = types::elements,
        (datatype: long, off: int, count: int, length: int, out/room: ints) -> int;
    "freeType" Java_mpjdev_core_Native_freeType = types::free, (datatype: long) -> void;
    "sendTyped" Java_mpjdev_core_Native_sendTyped = typed::send as Call::Send,
        (comm: long, datatype: long, array/length/element: array, off: int, count: int, dest: int, tag: int,
         synchronous: bool) -> void;
    "isendTyped" Java_mpjdev_core_Native_isendTyped = typed::isend as Call::Isend,
        (comm: long, datatype: long, array/length/element: array, off: int, count: int, dest: int, tag: int,
         synchronous: bool) -> long;
    "recvTyped" Java_mpjdev_core_Native_recvTyped = typed::recv as Call::Recv,
        (comm: long, datatype: long, array/length/element: array, off: int, count: int, source: int, tag: int,
         out: status) -> long;
    "recvTypedFrom" Java_mpjdev_core_Native_recvTypedFrom = typed::recv_from as Call::Recv,
        (comm: long, datatype: long, array/length/element: array, off: int, count: int, source: int, tag: int) -> long;
    "irecvTyped" Java_mpjdev_core_Native_irecvTyped = typed::irecv as Call::Irecv,
        (comm: long, datatype: long, array/length/element: array, off: int, count: int, source: int, tag: int,
         out: status) -> long;
    "sendrecvTyped" Java_mpjdev_core_Native_sendrecvTyped = typed::sendrecv as Call::Sendrecv,
        (comm: long, from_type: long, from/from_length/from_element: array, from_off: int, send_count: int, dest: int,
         send_tag: int, to_type: long, to/to_length/to_element: array, to_off: int, recv_count: int, source: int,
         recv_tag: int, out: status) -> long;
    "pack" Java_mpjdev_core_Native_pack = packing_unit::pack,
        (datatype: long, array/length/element: array, off: int, count: int, unit/room: bytes, position: int) -> int;
    "unpack" Java_mpjdev_core_Native_unpack = packing_unit::unpack,
        (unit/available: bytes, position: int, datatype: long, array/length/element: array, off: int, count: int) -> int;
    "unitSection" Java_mpjdev_core_Native_unitSection = packing_unit::section,
        (unit/available: bytes, position: int) -> long;
    "packObjects" Java_mpjdev_core_Native_packObjects = packing_unit::pack_objects,
        (handle: long, unit/room: bytes, position: int) -> int;
    "unpackObjects" Java_mpjdev_core_Native_unpackObjects = packing_unit::unpack_objects,
        (unit/available: bytes, position: int, handle: long) -> int;
    "groupCombine" Java_mpjdev_core_Native_groupCombine = topology::combine,
        (how: int, a/a_size: ints, b/b_size: ints, out/room: ints) -> int;
    "groupRanges" Java_mpjdev_core_Native_groupRanges = topology::ranges,
        (members/size: ints, ranges/count: ints, excluded: bool, out/room: ints) -> int;
    "groupTranslate" Java_mpjdev_core_Native_groupTranslate = topology::translate,
        (a/a_size: ints, ranks/count: ints, b/b_size: ints, out/room: ints) -> void;
    "groupCompare" Java_mpjdev_core_Native_groupCompare = topology::compare, (a/a_size: ints, b/b_size: ints) -> int;
    "members" Java_mpjdev_core_Native_members = topology::members, (comm: long, out/room: ints) -> void;
    "peerCount" Java_mpjdev_core_Native_peerCount = topology::peer_count, (comm: long) -> int;
    "peers" Java_mpjdev_core_Native_peers = topology::peers, (comm: long, out/room: ints) -> void;
    "compareComms" Java_mpjdev_core_Native_compareComms = topology::compare_comms, (a: long, b: long) -> int;
    "tagMax" Java_mpjdev_core_Native_tagMax = topology::tag_max, (comm: long) -> int;
    "dimsCreate" Java_mpjdev_core_Native_dimsCreate = topology::dims_create, (nodes: int, dims/rank: ints) -> void;
    "cartCheck" Java_mpjdev_core_Native_cartCheck = topology::cart_check,
        (size: int, dims/rank: ints, periods/period_count: ints) -> int;
    "cartRank" Java_mpjdev_core_Native_cartRank = topology::cart_rank,
        (dims/rank: ints, periods/period_count: ints, coords/coord_count: ints) -> int;
    "cartCoords" Java_mpjdev_core_Native_cartCoords = topology::cart_coords,
        (dims/dim_count: ints, periods/period_count: ints, rank: int, out/room: ints) -> void;
    "cartShift" Java_mpjdev_core_Native_cartShift = topology::cart_shift,
        (dims/dim_count: ints, periods/period_count: ints, rank: int, direction: int, disp: int) -> long;
    "cartPart" Java_mpjdev_core_Native_cartPart = topology::cart_part,
        (dims/dim_count: ints, periods/period_count: ints, rank: int, remains/remain_count: ints) -> long;
    "graphCheck" Java_mpjdev_core_Native_graphCheck = topology::graph_check,
        (size: int, index/nodes: ints, edges/edge_count: ints) -> int;
    "markCounts" Java_mpjdev_core_Native_markCounts = stats::mark, () -> void;
    "counts" Java_mpjdev_core_Native_counts = stats::since_mark, () -> text;
    "reportEnd" Java_mpjdev_core_Native_reportEnd = stats::report_end, () -> void;
    "pauseProfile" Java_mpjdev_core_Native_pauseProfile = stats::pause_profile, (paused: bool) -> void;
    "failureNames" Java_mpjdev_core_Native_failureNames = failure_names, () -> text;
    "constants" Java_mpjdev_core_Native_constants = constants, () -> text;
    "panic" Java_mpjdev_core_Native_panic = panic, (handle: long, text: string) -> void;
    "write" Java_mpjdev_core_Native_write = buffer::write,
        (handle: long, array/length/element: array, off: int, count: int, flags: int) -> void;
    "writeBounced" Java_mpjdev_core_Native_writeBounced = buffer::write_bounced,
        (handle: long, address/count/element: bounced, flags: int) -> void;
    "readBounced" Java_mpjdev_core_Native_readBounced = buffer::read_bounced,
        (handle: long, address/count/element: bounced, flags: int) -> void;
    "read" Java_mpjdev_core_Native_read = buffer::read,
        (handle: long, array/length/element: array, off: int, count: int, flags: int) -> void;
}

fn abi(env: &mut Env) -> Result<i32, Failure> {
    mpjdev_logging::start("library");
    boundary::load(env);
    handle::pool().set_reclaim(boundary::reclaim);
    handle::pool().set_make_room(boundary::make_room);
    Ok(ABI)
}

fn table(_: &mut Env) -> Result<String, Failure> {
    Ok(TABLE.to_owned())
}

fn failure_names(_: &mut Env) -> Result<String, Failure> {
    Ok(error::code::NAMES.join("\n"))
}

/// `NAME=value` of every number that both sides must agree on, one per line.
fn constants(_: &mut Env) -> Result<String, Failure> {
    let mpi = types::CONSTANTS.iter().chain(&topology::CONSTANTS).chain(&collective::CONSTANTS);
    let all = buffer::CONSTANTS.iter().chain(&comm::CONSTANTS).chain(&requests::CONSTANTS).chain(mpi);
    Ok(all.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("\n"))
}

/// Panics during the use of a buffer, so that a test can check the buffer afterwards.
fn panic(_: &mut Env, handle: i64, text: String) -> Result<(), Failure> {
    handle::with_any_buffer(handle, |_| panic!("{text}"))
}

fn open_buffers(_: &mut Env) -> Result<i32, Failure> {
    Ok(handle::open_buffers() as i32)
}

fn used_memory(_: &mut Env) -> Result<i64, Failure> {
    Ok(handle::pool().used() as i64)
}

/// Sets the limit on message memory. At the limit, the pool asks Java to collect garbage before it fails.
fn set_memory_limit(_: &mut Env, limit: i64) -> Result<(), Failure> {
    handle::pool().set_limit(u64::try_from(limit).unwrap_or(0));
    Ok(())
}

fn open_requests(_: &mut Env) -> Result<i32, Failure> {
    Ok(handle::open_requests() as i32)
}
