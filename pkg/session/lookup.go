package session

import "sync"

// Lookup is something that is found out when it is first asked for, and not again. Steps and checks that run side by side share it.
type Lookup[T any] struct {
	mu    sync.Mutex
	found bool
	what  T
	err   error
}

// Once returns what find said the first time, an error too.
func (l *Lookup[T]) Once(find func() (T, error)) (T, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.found {
		l.what, l.err = find()
		l.found = true
	}
	return l.what, l.err
}

// untilFound returns what find said the first time that it had no error.
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
