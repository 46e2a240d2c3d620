package lifecycle

import "sync"

// lookup is something that is found out when it is first asked for, and not again. Steps and checks that run side by side share it.
type lookup[T any] struct {
	mu    sync.Mutex
	found bool
	what  T
	err   error
}

// once returns what find said the first time, an error too.
func (l *lookup[T]) once(find func() (T, error)) (T, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.found {
		l.what, l.err = find()
		l.found = true
	}
	return l.what, l.err
}

// untilFound returns what find said the first time that it had no error.
func (l *lookup[T]) untilFound(find func() (T, error)) (T, error) {
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
