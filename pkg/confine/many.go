package confine

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/fleetctl/fleetctl/pkg/plain"
)

// Many is the work on many things, one after the other.
type Many struct {
	watch *watch
	now   atomic.Pointer[func() string]
}

// BeginMany is Begin for many things that are worked on one after the other, and are too small to be told of one by one: name is that of
// all of them. Each has the time of one thing. What takes longer is refused by its own name, and the others are worked on. Where the
// process dies of something else, all of them are refused.
func BeginMany(ctx context.Context, name string) (many *Many, end func(), err error) {
	w, ok := ctx.Value(watchKey{}).(*watch)
	if !ok || w.to == nil {
		return &Many{}, func() {}, nil
	}
	many = &Many{watch: w}
	end, err = w.beginAs(frameMany, name, "", many.at)
	return many, end, err
}

// Next says what the task works on now. The error says why it is not to be worked on: it was what an earlier process died of.
func (m *Many) Next(name func() string) error {
	if m.watch == nil {
		return nil
	}
	m.now.Store(&name)
	if len(m.watch.refused) == 0 {
		return nil
	}
	if why := m.watch.refused[m.at()]; why != "" {
		return errors.New(why)
	}
	return nil
}

// at is the name of what the task works on now, as the process tells it.
func (m *Many) at() string {
	name := m.now.Load()
	if name == nil {
		return ""
	}
	return plain.Clip((*name)(), maxPlace)
}

// move notes the place that a process tells. Another one of many things has its time from now on.
func (a *activity) move(told []byte) error {
	place, _, err := text(told)
	if err == nil && a.many && place != a.place {
		a.since = time.Now()
	}
	a.place = place
	return err
}

// itself is what took too long: of many things the one that the process was at.
func (a *activity) itself() *activity {
	if !a.many || a.place == "" {
		return a
	}
	return &activity{name: a.place, since: a.since}
}
