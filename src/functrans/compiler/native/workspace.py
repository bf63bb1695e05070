"""Large workspaces: the one that was used last is kept for the next call.

The system allocates memory of this size in fresh pages, each of which costs a page fault when it is first
touched; for a short computation, that takes longer than the computation. The allocator reuses smaller blocks
itself.
"""

from __future__ import annotations

KEPT_FROM = 1 << 24  # bytes
_KEPT_TO = 1 << 29  # larger ones are freed at once
_HEADER = 64  # before the block: its size, padded to a cache line

# Taking the kept block leaves null in its place, so two threads never have the same block.
WORKSPACE = f"""@kept = internal global ptr null, align 8

define ptr @ft_take_workspace(i64 %size) {{
entry:
  %old = atomicrmw xchg ptr @kept, ptr null acq_rel
  %is_there = icmp ne ptr %old, null
  br i1 %is_there, label %look, label %make
look:
  %its_size = load i64, ptr %old
  %enough = icmp uge i64 %its_size, %size
  %quarter = lshr i64 %its_size, 2
  %wasteful = icmp ugt i64 %quarter, %size
  %modest = xor i1 %wasteful, true
  %fits = and i1 %enough, %modest
  br i1 %fits, label %done, label %drop
drop:
  call void @free(ptr %old)
  br label %make
make:
  %all = add i64 %size, {_HEADER}
  %new = call ptr @malloc(i64 %all)
  %good = icmp ne ptr %new, null
  br i1 %good, label %mark, label %none
mark:
  store i64 %size, ptr %new
  br label %done
done:
  %block = phi ptr [ %old, %look ], [ %new, %mark ]
  %start = getelementptr i8, ptr %block, i64 {_HEADER}
  ret ptr %start
none:
  ret ptr null
}}

define void @ft_give_workspace(ptr %start) {{
entry:
  %block = getelementptr i8, ptr %start, i64 -{_HEADER}
  %size = load i64, ptr %block
  %small = icmp ule i64 %size, {_KEPT_TO}
  br i1 %small, label %keep, label %drop
keep:
  %old = atomicrmw xchg ptr @kept, ptr %block acq_rel
  call void @free(ptr %old) ; null is as good as none
  ret void
drop:
  call void @free(ptr %block)
  ret void
}}

declare ptr @malloc(i64)
declare void @free(ptr)
"""
