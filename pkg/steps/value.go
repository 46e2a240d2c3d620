package steps

import (
	"context"
	"fmt"
	"sync"
)

// Value is a value that one step of a workflow makes, once, and that other steps take. A step names the values that it takes in its Work.
// Check refuses a workflow in which such a step does not need, directly or through others, the step that makes the value. So the slice of
// steps shows which step sets a value, and when.
type Value[T any] struct {
	name string
	once sync.Once
	made chan struct{}
	what T
}

// NewValue returns a value that no step has made yet. name describes it in errors, as in "the versions".
func NewValue[T any](name string) *Value[T] { return &Value[T]{name: name, made: make(chan struct{})} }

// Tell sets the value. Only the first call counts. A value that is set before the workflow begins needs no step. A step that knows the
// value long before the step ends calls Tell in the middle of its Work, and announces that with Work.Telling.
func (v *Value[T]) Tell(what T) {
	v.once.Do(func() {
		v.what = what
		close(v.made)
	})
}

// Peek returns the value, and whether it is set. It is for code outside of the workflow. A step takes the value instead.
func (v *Value[T]) Peek() (T, bool) {
	if !v.isMade() {
		var none T
		return none, false
	}
	return v.what, true
}

// Await returns the value when it is set. The error is ctx's.
func (v *Value[T]) Await(ctx context.Context) (T, error) {
	select {
	case <-v.made:
		return v.what, nil
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// Made returns a channel that is closed when the value is set.
func (v *Value[T]) Made() <-chan struct{} { return v.made }

func (v *Value[T]) isMade() bool {
	select {
	case <-v.made:
		return true
	default:
		return false
	}
}

func (v *Value[T]) title() string { return v.name }

func (v *Value[T]) take() (T, error) {
	what, made := v.Peek()
	if !made {
		return what, fmt.Errorf("%s was taken before it was made", v.name)
	}
	return what, nil
}

func (v *Value[T]) source() (of slot, later bool) { return v, false }

// slot is a Value of any type.
type slot interface {
	title() string
	isMade() bool
}

// Input is a value that a step takes: a *Value, or the result of Later.
type Input[T any] interface {
	take() (T, error)
	source() (of slot, later bool)
}

// Awaited is a value for which a step waits in the middle of its work.
type Awaited[T any] interface {
	Await(ctx context.Context) (T, error)
	// Made returns a channel that is closed when the value is set, for a select.
	Made() <-chan struct{}
}

// Later lets a step start before the value is set, in parallel with the step that makes it, and wait for the value during its work. Check
// refuses steps that would wait for each other.
func Later[T any](v *Value[T]) Input[Awaited[T]] { return later[T]{v} }

type later[T any] struct{ value *Value[T] }

func (l later[T]) take() (Awaited[T], error) { return l.value, nil }

func (l later[T]) source() (of slot, isLater bool) { return l.value, true }

// Work is the work of a step, with the values that it takes and makes. The functions Do… and Make… make it from a function that has these
// values in its signature.
type Work struct {
	run           func(ctx context.Context, detail func(string)) error
	takes, awaits []slot
	makes         []slot
}

// Telling announces values for which the function itself calls Tell, in the middle of its work. It must have done so when it ends without
// an error.
func (w Work) Telling(values ...slot) Work {
	w.makes = append(w.makes, values...)
	return w
}

func (w Work) is() bool { return w.run != nil }

// unmade returns an error if the step ended without a value that it has to make.
func (w Work) unmade() error {
	for _, v := range w.makes {
		if !v.isMade() {
			return fmt.Errorf("it ended without %s, which it makes", v.title())
		}
	}
	return nil
}

// taking records an input.
func (w *Work) taking(of slot, later bool) {
	if later {
		w.awaits = append(w.awaits, of)
	} else {
		w.takes = append(w.takes, of)
	}
}

// Do is work that takes and makes nothing.
func Do(run func(ctx context.Context, detail func(string)) error) Work { return Work{run: run} }

// Do1 is work that takes one value.
func Do1[A any](run func(ctx context.Context, a A, detail func(string)) error, from Input[A]) Work {
	w := Work{run: func(ctx context.Context, detail func(string)) error {
		a, err := from.take()
		if err != nil {
			return err
		}
		return run(ctx, a, detail)
	}}
	w.taking(from.source())
	return w
}

// Do2 is work that takes two values.
func Do2[A, B any](run func(ctx context.Context, a A, b B, detail func(string)) error, fromA Input[A], fromB Input[B]) Work {
	w := Do1(func(ctx context.Context, a A, detail func(string)) error {
		b, err := fromB.take()
		if err != nil {
			return err
		}
		return run(ctx, a, b, detail)
	}, fromA)
	w.taking(fromB.source())
	return w
}

// Do3 is work that takes three values.
func Do3[A, B, C any](
	run func(ctx context.Context, a A, b B, c C, detail func(string)) error, fromA Input[A], fromB Input[B], fromC Input[C],
) Work {
	w := Do2(func(ctx context.Context, a A, b B, detail func(string)) error {
		c, err := fromC.take()
		if err != nil {
			return err
		}
		return run(ctx, a, b, c, detail)
	}, fromA, fromB)
	w.taking(fromC.source())
	return w
}

// Do4 is work that takes four values.
func Do4[A, B, C, D any](
	run func(ctx context.Context, a A, b B, c C, d D, detail func(string)) error,
	fromA Input[A], fromB Input[B], fromC Input[C], fromD Input[D],
) Work {
	w := Do3(func(ctx context.Context, a A, b B, c C, detail func(string)) error {
		d, err := fromD.take()
		if err != nil {
			return err
		}
		return run(ctx, a, b, c, d, detail)
	}, fromA, fromB, fromC)
	w.taking(fromD.source())
	return w
}

// Make is work that makes a value, the result of run. If run returns a NothingToDo, it also returns the value.
func Make[T any](to *Value[T], run func(ctx context.Context, detail func(string)) (T, error)) Work {
	return Do(func(ctx context.Context, detail func(string)) error { return keep(to)(run(ctx, detail)) }).Telling(to)
}

// Make1 is Make for work that takes one value.
func Make1[T, A any](to *Value[T], run func(ctx context.Context, a A, detail func(string)) (T, error), from Input[A]) Work {
	return Do1(func(ctx context.Context, a A, detail func(string)) error {
		return keep(to)(run(ctx, a, detail))
	}, from).Telling(to)
}

// Make2 is Make for work that takes two values.
func Make2[T, A, B any](
	to *Value[T], run func(ctx context.Context, a A, b B, detail func(string)) (T, error), fromA Input[A], fromB Input[B],
) Work {
	return Do2(func(ctx context.Context, a A, b B, detail func(string)) error {
		return keep(to)(run(ctx, a, b, detail))
	}, fromA, fromB).Telling(to)
}

// Make3 is Make for work that takes three values.
func Make3[T, A, B, C any](
	to *Value[T], run func(ctx context.Context, a A, b B, c C, detail func(string)) (T, error), fromA Input[A], fromB Input[B], fromC Input[C],
) Work {
	return Do3(func(ctx context.Context, a A, b B, c C, detail func(string)) error {
		return keep(to)(run(ctx, a, b, c, detail))
	}, fromA, fromB, fromC).Telling(to)
}

// keep sets the value to the result of a function that returned no failure.
func keep[T any](to *Value[T]) func(T, error) error {
	return func(what T, err error) error {
		if err == nil || isNothingToDo(err) {
			to.Tell(what)
		}
		return err
	}
}
