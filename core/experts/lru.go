package experts

func (c *class) unlink(i int32) {
	s := &c.slots[i]
	if s.prev >= 0 {
		c.slots[s.prev].next = s.next
	} else {
		c.head = s.next
	}
	if s.next >= 0 {
		c.slots[s.next].prev = s.prev
	} else {
		c.tail = s.prev
	}
}

func (c *class) pushFront(i int32) {
	s := &c.slots[i]
	s.prev, s.next = -1, c.head
	if c.head >= 0 {
		c.slots[c.head].prev = i
	}
	c.head = i
	if c.tail < 0 {
		c.tail = i
	}
}

func (c *class) pushBack(i int32) {
	s := &c.slots[i]
	s.prev, s.next = c.tail, -1
	if c.tail >= 0 {
		c.slots[c.tail].next = i
	}
	c.tail = i
	if c.head < 0 {
		c.head = i
	}
}

// touch makes the slot the last to be evicted.
func (c *class) touch(i int32) {
	if c.head != i {
		c.unlink(i)
		c.pushFront(i)
	}
}

// cool makes the slot the first to be evicted.
func (c *class) cool(i int32) {
	if c.tail != i {
		c.unlink(i)
		c.pushBack(i)
	}
}

// take gives the slice a slot, evicting the coldest that no graph call up to gen needs and no lane writes, or -1 where
// there is none. The slot is pinned until pin.
func (s *Store) take(t int32, expert int32, pin int64) int32 {
	c := s.tensors[t].class
	i := c.tail
	for i >= 0 && (c.slots[i].pin >= s.gen || c.slots[i].state == reading) {
		i = c.slots[i].prev
	}
	if i < 0 {
		return -1
	}
	v := &c.slots[i]
	if v.tensor >= 0 {
		s.tensors[v.tensor].slot[v.expert] = -1
	}
	v.tensor, v.expert, v.pin, v.state, v.fresh = t, expert, pin, empty, false
	v.claim.Store(claimed)
	s.tensors[t].slot[expert] = i
	c.touch(i)
	return i
}

// forget empties a slot whose read failed.
func (s *Store) forget(c *class, i int32) {
	v := &c.slots[i]
	if v.tensor >= 0 {
		s.tensors[v.tensor].slot[v.expert] = -1
	}
	v.tensor, v.state, v.pin = -1, empty, 0
	c.cool(i)
}

// address is where the slice in a slot begins: the slot keeps the misalignment of the slice's place in the file.
func (s *Store) address(t int32, i int32) uintptr {
	e := &s.tensors[t]
	off := e.Offset + int64(e.class.slots[i].expert)*e.Slice
	return e.class.base + uintptr(i)*uintptr(e.class.stride) + uintptr(off%s.align)
}
