package confine_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/confine"
)

// workingOnMany does what it is told for each thing, as one of many, and says what it could not work on.
var workingOnMany = confine.New("working on many", func(ctx context.Context, things []thing) ([]string, error) {
	if _, err := confine.Call(ctx, "started", nil); err != nil {
		return nil, err
	}
	many, end, err := confine.BeginMany(ctx, "all of them")
	defer end()
	var out []string
	for _, t := range things {
		why := err
		if why == nil {
			why = many.Next(func() string { return "the thing " + t.Name })
		}
		if why != nil {
			out = append(out, t.Name+": "+why.Error())
			continue
		}
		out = append(out, t.do())
	}
	return out, nil
})

func counted(starts *atomic.Int32) confine.Needs {
	return confine.Needs{Calls: map[string]func(context.Context, []byte) ([]byte, error){
		"started": func(context.Context, []byte) ([]byte, error) {
			starts.Add(1)
			return nil, nil
		},
	}}
}

// Of many things the one that takes too long is refused by itself, after one process has spent its time on it. The others have the time of
// one thing each.
func TestManyThings(t *testing.T) {
	l := limits
	l.Time = 3 * time.Second
	var starts atomic.Int32
	out, err := workingOnMany.Run(inside(t, l), []thing{
		{Name: "a", Trouble: "slow"},
		{Name: "b", Trouble: "slow"},
		{Name: "c", Trouble: "slow"},
		{Name: "d", Trouble: "slow"},
		{Name: "e", Trouble: "time"},
		{Name: "f"},
	}, counted(&starts))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a is fine", "b is fine", "c is fine", "d is fine", "e: out of time: it takes longer than 3s", "f is fine"}
	if !slices.Equal(out, want) || starts.Load() != 2 {
		t.Errorf("%d processes say %q", starts.Load(), out)
	}
}

// Where many things die of memory it is not known which one took it.
func TestManyThingsWithoutMemory(t *testing.T) {
	var starts atomic.Int32
	out, err := workingOnMany.Run(inside(t, limits), []thing{{Name: "a"}, {Name: "b", Trouble: "memory"}}, counted(&starts))
	if err != nil {
		t.Fatal(err)
	}
	for _, said := range out {
		if !strings.Contains(said, ": out of memory: ") {
			t.Errorf("got %q", said)
		}
	}
	if starts.Load() != 2 {
		t.Errorf("%d processes", starts.Load())
	}
}
