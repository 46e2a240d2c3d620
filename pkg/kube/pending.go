package kube

import (
	"slices"
	"strings"
	"sync"
)

// pending has the objects for which several watches still wait. It calls detail when they change.
type pending struct {
	mu     sync.Mutex
	left   map[Key]bool
	why    map[Key]string
	detail func(string)
	told   string
}

func newPending(keys []Key, detail func(string)) *pending {
	p := &pending{left: map[Key]bool{}, why: map[Key]string{}, detail: detail}
	for _, key := range keys {
		p.left[key] = true
	}
	return p
}

// set records whether the object key is ready.
func (p *pending) set(key Key, ready bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ready {
		delete(p.left, key)
	} else {
		p.left[key] = true
	}
	p.tell()
}

// explain records why the object key is not ready.
func (p *pending) explain(key Key, reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.why[key] = reason
	p.tell()
}

func (p *pending) tell() {
	if p.detail == nil || len(p.left) == 0 {
		return
	}
	names := make([]string, 0, len(p.left))
	for key := range p.left {
		name := key.Name
		if why := p.why[key]; why != "" {
			name += " (" + why + ")"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	text := "waiting for " + strings.Join(names, ", ")
	if text != p.told {
		p.told = text
		p.detail(text)
	}
}

// list returns the sorted keys of the objects that are not ready.
func (p *pending) list() []Key {
	p.mu.Lock()
	defer p.mu.Unlock()
	keys := make([]Key, 0, len(p.left))
	for key := range p.left {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b Key) int { return strings.Compare(a.String(), b.String()) })
	return keys
}
