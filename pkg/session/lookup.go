package session

import "sync"

// Lookup computes a value at the first request and keeps it. Steps and checks that run side by side share it.
type Lookup[T any] struct {
	mu    sync.Mutex
	found bool
	what  T
	err   error
}

// Once returns the result of the first call of find, also if it was an error.
func (l *Lookup[T]) Once(find func() (T, error)) (T, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.found {
		l.what, l.err = find()
		l.found = true
	}
	return l.what, l.err
}

// untilFound returns the first result of find without an error.
func (l *Lookup[T]) untilFound(find func() (T, error)) (T, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.found {
		what, err := find()
		if err != nil {
			return what, err
		}
		l.what, l.found = what, true
	}
	return l.what, nil
}
