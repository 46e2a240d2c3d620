package confine

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/fleetctl/fleetctl/pkg/plain"
)

// Many is the work on many small things, one after the other.
type Many struct {
	watch *watch
	now   atomic.Pointer[func() string]
}

// BeginMany is Begin for many things that are too small to be named one by one. name is the name of all of them. Each may take the time of
// one thing. A thing that takes longer is refused by its own name, and the task works on the others. If the process dies for another
// reason, all of the things are refused.
func BeginMany(ctx context.Context, name string) (many *Many, end func(), err error) {
	w, ok := ctx.Value(watchKey{}).(*watch)
	if !ok || w.to == nil {
		return &Many{}, func() {}, nil
	}
	many = &Many{watch: w}
	end, err = w.beginAs(frameMany, name, "", many.at)
	return many, end, err
}

// Next names the thing that the task works on now. If an earlier process has died of the thing, Next returns an error, and the task must
// leave the thing out.
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
