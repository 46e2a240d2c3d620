package steps

import (
	"context"
	"fmt"
	"sync"
)

// Value is what one step of a workflow makes and others take. It is made once. A step that takes the value says so in its Work. Check
// refuses the workflow unless that step needs, directly or through others, the step that makes the value. So who sets a value, and when,
// stands in the slice of steps.
type Value[T any] struct {
	name string
	once sync.Once
	made chan struct{}
	what T
}

// NewValue is a value that no step has made yet. Its name says what it is, as in "the versions".
func NewValue[T any](name string) *Value[T] { return &Value[T]{name: name, made: make(chan struct{})} }

// Tell makes the value; the first call counts. A value that is told before the workflow begins needs no step that makes it. A step that
// knows one long before it ends tells it in the middle of its Work, which has to announce it: see Work.Telling.
func (v *Value[T]) Tell(what T) {
	v.once.Do(func() {
		v.what = what
		close(v.made)
	})
}

// Peek is the value, where it was made by now. It is for those who look at a workflow from outside: a watcher, and the result. Steps take
// it.
func (v *Value[T]) Peek() (T, bool) {
	if !v.isMade() {
		var none T
		return none, false
	}
	return v.what, true
}

// Await waits until the value is made, or ctx ends.
func (v *Value[T]) Await(ctx context.Context) (T, error) {
	select {
	case <-v.made:
		return v.what, nil
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// Made is closed when the value is made.
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

// slot is a Value of whichever type.
type slot interface {
	title() string
	isMade() bool
}

// Input is what a step takes: a *Value, or what Later makes of one.
type Input[T any] interface {
	take() (T, error)
	source() (of slot, later bool)
}

// Awaited is a value that a step waits for in the middle of its work.
type Awaited[T any] interface {
	Await(ctx context.Context) (T, error)
	// Made is closed when the value is made, for those who wait for something else at the same time.
	Made() <-chan struct{}
}

// Later has a step take a value before it is made, and wait for it when it comes to that: it runs beside the step that makes it. Check
// refuses steps that would wait for each other.
func Later[T any](v *Value[T]) Input[Awaited[T]] { return later[T]{v} }

type later[T any] struct{ value *Value[T] }

func (l later[T]) take() (Awaited[T], error) { return l.value, nil }

func (l later[T]) source() (of slot, isLater bool) { return l.value, true }

// Work is what a step does, with the values that it takes and makes. The functions Do… and Make… tie them to a function that has them in
// its signature.
type Work struct {
	run           func(ctx context.Context, detail func(string)) error
	takes, awaits []slot
	makes         []slot
}

// Telling announces values that the function tells by itself, in the middle of its work. It must have told them when it ends without a
// failure.
func (w Work) Telling(values ...slot) Work {
	w.makes = append(w.makes, values...)
	return w
}

func (w Work) is() bool { return w.run != nil }

// unmade is an error where a step ended without a value that it was to make.
func (w Work) unmade() error {
	for _, v := range w.makes {
		if !v.isMade() {
			return fmt.Errorf("it ended without %s, which it makes", v.title())
		}
	}
	return nil
}

// taking notes an input.
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

// Make is work that makes a value: what the function returns. One that says NothingToDo returns the value beside that.
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

// keep makes a value of what a function returned without a failure.
func keep[T any](to *Value[T]) func(T, error) error {
	return func(what T, err error) error {
		if err == nil || isNothingToDo(err) {
			to.Tell(what)
		}
		return err
	}
}
