package gitrepo

import (
	"container/heap"
	"context"
	"errors"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage"
)

// history walks commits. Unlike go-git's walkers, it knows that the parents of a shallow commit are missing.
type history struct {
	store   storage.Storer
	shallow map[plumbing.Hash]bool
}

func newHistory(store storage.Storer) (*history, error) {
	hashes, err := store.Shallow()
	if err != nil {
		return nil, err
	}
	h := &history{store: store, shallow: map[plumbing.Hash]bool{}}
	for _, s := range hashes {
		h.shallow[s] = true
	}
	return h, nil
}

// parents returns the parents of a commit that the repository has.
func (h *history) parents(c *object.Commit) []plumbing.Hash {
	if h.shallow[c.Hash] {
		return nil
	}
	return c.ParentHashes
}

// relation is the relation between two commits.
type relation int

const (
	same relation = iota
	ahead
	behind
	diverged
)

// relate returns the relation of a to b: same, ahead (b is an ancestor of a), behind, or diverged. It searches from both sides in turn, so
// that it need not walk the whole history if the commits are close. The zero hash is behind all commits.
func (h *history) relate(ctx context.Context, a, b plumbing.Hash) (relation, error) {
	switch {
	case a == b:
		return same, nil
	case a.IsZero():
		return behind, nil
	case b.IsZero():
		return ahead, nil
	}
	fromA, fromB := h.search(a), h.search(b)
	for !fromA.exhausted() || !fromB.exhausted() {
		if err := ctx.Err(); err != nil {
			return diverged, err
		}
		if found, err := fromA.step(b); err != nil || found {
			return ahead, err
		}
		if found, err := fromB.step(a); err != nil || found {
			return behind, err
		}
	}
	return diverged, nil
}

type search struct {
	h     *history
	queue []plumbing.Hash
	seen  map[plumbing.Hash]bool
}

func (h *history) search(from plumbing.Hash) *search {
	return &search{h: h, queue: []plumbing.Hash{from}, seen: map[plumbing.Hash]bool{from: true}}
}

func (s *search) exhausted() bool { return len(s.queue) == 0 }

// step visits one commit, and tells whether it is the target. The search does not continue at a missing commit, such as one that was never
// fetched.
func (s *search) step(target plumbing.Hash) (bool, error) {
	if s.exhausted() {
		return false, nil
	}
	at := s.queue[0]
	s.queue = s.queue[1:]
	if at == target {
		return true, nil
	}
	c, err := object.GetCommit(s.h.store, at)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, p := range s.h.parents(c) {
		if !s.seen[p] {
			s.seen[p] = true
			s.queue = append(s.queue, p)
		}
	}
	return false, nil
}

// between returns the commits reachable from tip and from none of the bases (zero: nothing), newest first. It goes by commit dates, as
// git does; a badly skewed clock can make it return a few commits too many, never too few. It returns none if a base has the tip, whatever
// their dates.
func (h *history) between(ctx context.Context, tip plumbing.Hash, bases ...plumbing.Hash) ([]*object.Commit, error) {
	for _, base := range bases {
		if where, err := h.relate(ctx, tip, base); err != nil || !base.IsZero() && (where == same || where == behind) {
			return nil, err
		}
	}
	w := &walk{seen: map[plumbing.Hash]*visit{}}
	if err := h.push(w, tip, false); err != nil {
		return nil, err
	}
	for _, base := range bases {
		if base.IsZero() {
			continue
		}
		if err := h.push(w, base, true); err != nil && !errors.Is(err, plumbing.ErrObjectNotFound) {
			return nil, err
		}
	}
	var order []*visit
	for w.wanted > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		v, ok := heap.Pop(&w.queue).(*visit)
		if !ok {
			break
		}
		v.queued = false
		if !v.hidden {
			w.wanted--
			order = append(order, v)
		}
		for _, p := range h.parents(v.commit) {
			if err := h.push(w, p, v.hidden); err != nil && (!v.hidden || !errors.Is(err, plumbing.ErrObjectNotFound)) {
				return nil, err
			}
		}
	}
	var commits []*object.Commit
	for _, v := range order {
		if !v.hidden {
			commits = append(commits, v.commit)
		}
	}
	return commits, nil
}

// push puts a commit on the queue once, and once more if it was queued as wanted and turns out to be hidden.
func (h *history) push(w *walk, at plumbing.Hash, hidden bool) error {
	v := w.seen[at]
	if v == nil {
		c, err := object.GetCommit(h.store, at)
		if err != nil {
			return err
		}
		v = &visit{commit: c, hidden: hidden, queued: true}
		w.seen[at] = v
		heap.Push(&w.queue, v)
		if !hidden {
			w.wanted++
		}
		return nil
	}
	if !hidden || v.hidden {
		return nil
	}
	v.hidden = true
	if v.queued {
		w.wanted--
		return nil
	}
	v.queued = true
	heap.Push(&w.queue, v)
	return nil
}

// walk is the state of one call of between. wanted counts the queued commits that are not hidden.
type walk struct {
	queue  byDate
	seen   map[plumbing.Hash]*visit
	wanted int
}

type visit struct {
	commit         *object.Commit
	hidden, queued bool
}

// byDate is a heap, newest commit first.
type byDate []*visit

func (q byDate) Len() int { return len(q) }
func (q byDate) Less(i, j int) bool {
	return q[i].commit.Committer.When.After(q[j].commit.Committer.When)
}
func (q byDate) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *byDate) Push(x any)   { *q = append(*q, x.(*visit)) } //nolint:forcetypeassert // only visits are pushed
func (q *byDate) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}
