"""The code that the entries of all modules share: to unpack arguments, and to create arrays for results.

`data_of` returns the data pointer of an array, or null if it is not an array of this dtype and shape in C
order. The functions that the entries call take objects by their positions in the module's context, fill in
tables, and return whether everything was as expected.
"""

from __future__ import annotations

from functrans.compiler.native.python_integers import KEPT

# The layout of CPython's objects and of NumPy's arrays, in bytes. NumPy promises it in its C API.
TYPE, NUMBER = 8, 16
_SIZE, _ITEMS = 16, 24  # of tuples and lists
_DATA, _NDIM, _DIMENSIONS, _DTYPE, _FLAGS = 16, 24, 32, 56, 64
_C_ORDER_AND_ALIGNED = 0x0001 | 0x0100

FUNCTIONS = (
    "ft_items",
    "ft_entry",
    "ft_take_array",
    "ft_take_number",
    "ft_take_integer",
    "ft_make_array",
    "ft_hold",
    "ft_release",
)

_DATA_OF = f"""define internal ptr @data_of(ptr %value, ptr %type, ptr %dtype, i32 %ndim, ptr %lengths) {{
entry:
  %type_place = getelementptr i8, ptr %value, i64 {TYPE}
  %its_type = load ptr, ptr %type_place
  %is_array = icmp eq ptr %its_type, %type
  br i1 %is_array, label %array, label %other
array:
  %dtype_place = getelementptr i8, ptr %value, i64 {_DTYPE}
  %its_dtype = load ptr, ptr %dtype_place
  %same_dtype = icmp eq ptr %its_dtype, %dtype
  %ndim_place = getelementptr i8, ptr %value, i64 {_NDIM}
  %its_ndim = load i32, ptr %ndim_place
  %same_ndim = icmp eq i32 %its_ndim, %ndim
  %flags_place = getelementptr i8, ptr %value, i64 {_FLAGS}
  %its_flags = load i32, ptr %flags_place
  %set = and i32 %its_flags, {_C_ORDER_AND_ALIGNED}
  %in_order = icmp eq i32 %set, {_C_ORDER_AND_ALIGNED}
  %alike = and i1 %same_dtype, %same_ndim
  %fits = and i1 %alike, %in_order
  br i1 %fits, label %axes, label %other
axes:
  %count = sext i32 %ndim to i64
  %lengths_place = getelementptr i8, ptr %value, i64 {_DIMENSIONS}
  %its_lengths = load ptr, ptr %lengths_place
  br label %axis
axis:
  %k = phi i64 [ 0, %axes ], [ %next, %same ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %compare, label %good
compare:
  %have_place = getelementptr i64, ptr %its_lengths, i64 %k
  %have = load i64, ptr %have_place
  %want_place = getelementptr i64, ptr %lengths, i64 %k
  %want = load i64, ptr %want_place
  %equal = icmp eq i64 %have, %want
  br i1 %equal, label %same, label %other
same:
  %next = add i64 %k, 1
  br label %axis
good:
  %data_place = getelementptr i8, ptr %value, i64 {_DATA}
  %data = load ptr, ptr %data_place
  ret ptr %data
other:
  ret ptr null
}}"""

ARGUMENTS = f"""define internal ptr @object(ptr %context, i64 %place) {{
  %slot = getelementptr ptr, ptr %context, i64 %place
  %object = load ptr, ptr %slot
  ret ptr %object
}}

{_DATA_OF}

define ptr @ft_items(ptr %value, ptr %context, i64 %kind, i64 %count, i1 %is_list) {{
entry:
  %type = call ptr @object(ptr %context, i64 %kind)
  %type_place = getelementptr i8, ptr %value, i64 {TYPE}
  %its_type = load ptr, ptr %type_place
  %right = icmp eq ptr %its_type, %type
  br i1 %right, label %container, label %other
container:
  %size_place = getelementptr i8, ptr %value, i64 {_SIZE}
  %size = load i64, ptr %size_place
  %fits = icmp eq i64 %size, %count
  br i1 %fits, label %same, label %other
same:
  %items = getelementptr i8, ptr %value, i64 {_ITEMS}
  %filled = icmp ne i64 %count, 0
  %elsewhere = and i1 %filled, %is_list
  br i1 %elsewhere, label %list, label %tuple
list:
  %far = load ptr, ptr %items
  ret ptr %far
tuple:
  ret ptr %items
other:
  ret ptr null
}}

; The next entry of a dict, if its key is the string at this position of the context; else null. The
; function can see the order of the keys, so it is not enough that they exist.
define ptr @ft_entry(ptr %dict, ptr %position, ptr %context, i64 %place) {{
entry:
  %key = alloca ptr
  %value = alloca ptr
  %found = call i32 @PyDict_Next(ptr %dict, ptr %position, ptr %key, ptr %value)
  %is_there = icmp ne i32 %found, 0
  br i1 %is_there, label %look, label %other
look:
  %its_key = load ptr, ptr %key
  %wanted = call ptr @object(ptr %context, i64 %place)
  %same = icmp eq ptr %its_key, %wanted
  br i1 %same, label %good, label %types
types:
  %its_type_place = getelementptr i8, ptr %its_key, i64 {TYPE}
  %its_type = load ptr, ptr %its_type_place
  %type_place = getelementptr i8, ptr %wanted, i64 {TYPE}
  %type = load ptr, ptr %type_place
  %is_string = icmp eq ptr %its_type, %type
  br i1 %is_string, label %text, label %other
text:
  %order = call i32 @PyUnicode_Compare(ptr %its_key, ptr %wanted)
  %equal = icmp eq i32 %order, 0
  br i1 %equal, label %good, label %other
good:
  %its_value = load ptr, ptr %value
  ret ptr %its_value
other:
  ret ptr null
}}

define internal i1 @note(ptr %value, ptr %data, ptr %pointers, ptr %leaves, i64 %number) {{
  %place = getelementptr ptr, ptr %pointers, i64 %number
  store ptr %data, ptr %place
  %leaf = getelementptr ptr, ptr %leaves, i64 %number
  store ptr %value, ptr %leaf
  %good = icmp ne ptr %data, null
  ret i1 %good
}}

define i1 @ft_take_array(ptr %value, ptr %context, i64 %array, i64 %kind, i32 %ndim, ptr %lengths,
                         ptr %pointers, ptr %leaves, i64 %number) {{
  %type = call ptr @object(ptr %context, i64 %array)
  %dtype = call ptr @object(ptr %context, i64 %kind)
  %data = call ptr @data_of(ptr %value, ptr %type, ptr %dtype, i32 %ndim, ptr %lengths)
  %good = call i1 @note(ptr %value, ptr %data, ptr %pointers, ptr %leaves, i64 %number)
  ret i1 %good
}}

define i1 @ft_take_number(ptr %value, ptr %context, i64 %kind, ptr %pointers, ptr %leaves, i64 %number) {{
  %type = call ptr @object(ptr %context, i64 %kind)
  %type_place = getelementptr i8, ptr %value, i64 {TYPE}
  %its_type = load ptr, ptr %type_place
  %right = icmp eq ptr %its_type, %type
  %data = getelementptr i8, ptr %value, i64 {NUMBER}
  %found = select i1 %right, ptr %data, ptr null
  %good = call i1 @note(ptr %value, ptr %found, ptr %pointers, ptr %leaves, i64 %number)
  ret i1 %good
}}

; 0 for a value of another type, 1 for an integer, 2 for one with more digits than native code takes
define i32 @ft_take_integer(ptr %value, ptr %context, i64 %kind, ptr %pointers, ptr %leaves, i64 %number,
                            ptr %place) {{
entry:
  %type = call ptr @object(ptr %context, i64 %kind)
  %type_place = getelementptr i8, ptr %value, i64 {TYPE}
  %its_type = load ptr, ptr %type_place
  %right = icmp eq ptr %its_type, %type
  br i1 %right, label %read, label %other
read:
  %overflow = alloca i32
  %integer = call i64 @PyLong_AsLongLongAndOverflow(ptr %value, ptr %overflow)
  %over = load i32, ptr %overflow
  %inside = icmp eq i32 %over, 0
  %high = icmp sle i64 %integer, {KEPT[1]}
  %low = icmp sge i64 %integer, {KEPT[0]}
  %between = and i1 %high, %low
  %small = and i1 %inside, %between
  store i64 %integer, ptr %place
  %noted = call i1 @note(ptr %value, ptr %place, ptr %pointers, ptr %leaves, i64 %number)
  %result = select i1 %small, i32 1, i32 2
  ret i32 %result
other:
  ret i32 0
}}

define i1 @ft_make_array(ptr %context, i64 %maker, i64 %kind, i32 %ndim, ptr %lengths,
                         ptr %targets, ptr %arrays, i64 %number) {{
entry:
  %empty = call ptr @object(ptr %context, i64 %maker)
  %dtype = call ptr @object(ptr %context, i64 %kind)
  call void @Py_IncRef(ptr %dtype) ; the call takes one reference
  %array = call ptr %empty(i32 %ndim, ptr %lengths, ptr %dtype, i32 0)
  %made = icmp ne ptr %array, null
  br i1 %made, label %good, label %bad
good:
  %data_place = getelementptr i8, ptr %array, i64 {_DATA}
  %data = load ptr, ptr %data_place
  %noted = call i1 @note(ptr %array, ptr %data, ptr %targets, ptr %arrays, i64 %number)
  ret i1 true
bad:
  ret i1 false
}}

define void @ft_hold(ptr %objects, i64 %count) {{
entry:
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %following, %hold ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %hold, label %out
hold:
  %object = call ptr @object(ptr %objects, i64 %k)
  call void @Py_IncRef(ptr %object)
  %following = add i64 %k, 1
  br label %next
out:
  ret void
}}

define void @ft_release(ptr %objects, i64 %count) {{
entry:
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %following, %release ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %release, label %out
release:
  %object = call ptr @object(ptr %objects, i64 %k)
  call void @Py_DecRef(ptr %object) ; null is as good as none
  %following = add i64 %k, 1
  br label %next
out:
  ret void
}}

declare i32 @PyDict_Next(ptr, ptr, ptr, ptr)
declare i32 @PyUnicode_Compare(ptr, ptr)
declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
"""
