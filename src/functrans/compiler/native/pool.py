"""The thread pool that shares the parts of large loops: created once, and asleep when there is nothing to do.

A job is a function of a table and the number of a part. Any free thread takes the next part, and so does the
caller, so a thread that is late, or never comes, only costs time. After a job, a thread polls for the next
one for about 50 microseconds, since loops often follow each other closely; then it sleeps.
"""

from __future__ import annotations

import re
import signal

_LOOKS = 2000  # for the next job, before a thread sleeps
_PATIENCE = 20000  # looks for the end of the last part, before the caller lets others run


def pool_text(pause: str) -> str:
    """The functions `ft_run`, which runs a job, and `ft_forget`, for a forked process without threads.

    `pause` is the call in waiting loops. `@word` holds the number of the job in its
    upper half, then the number of parts and that of the next part, 16 bits each. A part is taken by
    adding one to the word while it is unchanged: only then are `@function` and `@table`, read in
    between, those of the same job, since the next one is not set up before all parts of this one are done.
    """
    set_mask = int(getattr(signal, "SIG_SETMASK", 2))
    return f"""@word = internal global i64 0, align 64
@done = internal global i64 0, align 64
@function = internal global ptr null, align 64
@table = internal global ptr null
@busy = internal global i64 0, align 64
@started = internal global i64 0
@sleepers = internal global i64 0
@mutex = internal global [128 x i8] zeroinitializer, align 64
@morning = internal global [128 x i8] zeroinitializer, align 64

define internal i1 @is_open(i64 %word) {{
entry:
  %next = and i64 %word, 65535
  %shifted = lshr i64 %word, 16
  %count = and i64 %shifted, 65535
  %open = icmp ult i64 %next, %count
  ret i1 %open
}}

define internal void @work() {{
entry:
  br label %look
look:
  %word = load atomic i64, ptr @word acquire, align 8
  %open = call i1 @is_open(i64 %word)
  br i1 %open, label %take, label %out
take:
  %function = load atomic ptr, ptr @function monotonic, align 8
  %table = load atomic ptr, ptr @table monotonic, align 8
  %following = add i64 %word, 1
  %pair = cmpxchg ptr @word, i64 %word, i64 %following acq_rel acquire
  %mine = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %mine, label %run, label %look
run:
  %part = and i64 %word, 65535
  call void %function(ptr %table, i64 %part)
  %ignored = atomicrmw add ptr @done, i64 1 release
  br label %look
out:
  ret void
}}

define internal ptr @worker(ptr %nothing) {{
entry:
  br label %begin
begin:
  call void @work()
  br label %look
look:
  %looks = phi i64 [ 0, %begin ], [ %more, %again ]
  %seen = load atomic i64, ptr @word acquire, align 8
  %open = call i1 @is_open(i64 %seen)
  br i1 %open, label %begin, label %again
again:
  call {pause}
  %more = add i64 %looks, 1
  %tired = icmp ugt i64 %more, {_LOOKS}
  br i1 %tired, label %sleep, label %look
sleep:
  %locked = call i32 @pthread_mutex_lock(ptr @mutex)
  %before = atomicrmw add ptr @sleepers, i64 1 seq_cst
  br label %check
check:
  %word = load atomic i64, ptr @word seq_cst, align 8
  %called = call i1 @is_open(i64 %word)
  br i1 %called, label %awake, label %wait
wait:
  %woken = call i32 @pthread_cond_wait(ptr @morning, ptr @mutex)
  br label %check
awake:
  %after = atomicrmw sub ptr @sleepers, i64 1 seq_cst
  %unlocked = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %begin
}}

define internal void @start(i64 %count) {{
entry:
  %thread = alloca i64
  %all = alloca [128 x i8], align 8
  %mask = alloca [128 x i8], align 8
  %m = call i32 @pthread_mutex_init(ptr @mutex, ptr null)
  %c = call i32 @pthread_cond_init(ptr @morning, ptr null)
  %f = call i32 @sigfillset(ptr %all)
  %s = call i32 @pthread_sigmask(i32 {set_mask}, ptr %all, ptr %mask)
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %following, %made ], [ %following, %create ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %create, label %out
create:
  %following = add i64 %k, 1
  %failed = call i32 @pthread_create(ptr %thread, ptr null, ptr @worker, ptr null)
  %good = icmp eq i32 %failed, 0
  br i1 %good, label %made, label %next
made:
  %handle = load i64, ptr %thread
  %d = call i32 @pthread_detach(i64 %handle)
  br label %next
out:
  %r = call i32 @pthread_sigmask(i32 {set_mask}, ptr %mask, ptr null)
  store i64 1, ptr @started
  ret void
}}

define void @ft_run(ptr %function, ptr %table, i64 %count, i64 %threads) {{
entry:
  %pair = cmpxchg ptr @busy, i64 0, i64 1 acquire monotonic
  %mine = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %mine, label %first, label %alone
alone:
  %part = phi i64 [ 0, %entry ], [ %following, %alone ]
  call void %function(ptr %table, i64 %part)
  %following = add i64 %part, 1
  %left = icmp ult i64 %following, %count
  br i1 %left, label %alone, label %out
first:
  %started = load i64, ptr @started
  %is_started = icmp ne i64 %started, 0
  br i1 %is_started, label %set, label %prepare
prepare:
  call void @start(i64 %threads)
  br label %set
set:
  store atomic ptr %function, ptr @function monotonic, align 8
  store atomic ptr %table, ptr @table monotonic, align 8
  store atomic i64 0, ptr @done monotonic, align 8
  %old = load atomic i64, ptr @word monotonic, align 8
  %upper = and i64 %old, -4294967296
  %job = add i64 %upper, 4294967296
  %parts = shl i64 %count, 16
  %word = or i64 %job, %parts
  store atomic i64 %word, ptr @word seq_cst, align 8
  %sleepers = load atomic i64, ptr @sleepers seq_cst, align 8
  %asleep = icmp ne i64 %sleepers, 0
  br i1 %asleep, label %call, label %share
call:
  %locked = call i32 @pthread_mutex_lock(ptr @mutex)
  %told = call i32 @pthread_cond_broadcast(ptr @morning)
  %unlocked = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %share
share:
  call void @work()
  br label %look
look:
  %looks = phi i64 [ 0, %share ], [ %more, %again ], [ %more, %yield ]
  %done = load atomic i64, ptr @done acquire, align 8
  %finished = icmp eq i64 %done, %count
  br i1 %finished, label %free, label %wait
wait:
  call {pause}
  %more = add i64 %looks, 1
  %long = icmp ugt i64 %more, {_PATIENCE}
  br i1 %long, label %yield, label %again
again:
  br label %look
yield:
  %yielded = call i32 @sched_yield()
  br label %look
free:
  store atomic i64 0, ptr @busy release, align 8
  ret void
out:
  ret void
}}

define void @ft_forget() {{
entry:
  store i64 0, ptr @started
  store i64 0, ptr @sleepers
  store atomic i64 0, ptr @word monotonic, align 8
  store atomic i64 0, ptr @busy release, align 8
  ret void
}}

declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sigfillset(ptr)
declare i32 @sched_yield()
declare {re.sub(" 1", "", pause)}
"""
