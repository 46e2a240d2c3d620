package status

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// A watch asks the workload clusters once a minute. What they said stays until they say something else, or are gone.
func TestAnswersAreKeptInAWatch(t *testing.T) {
	has := handover.OwnRecord{Owner: capi.Owner{Fleet: "f", ManagementCluster: "second", UID: "u2", Epoch: 2}}
	a, b := kube.Key{Namespace: "n", Name: "a"}, kube.Key{Namespace: "n", Name: "b"}
	answer := func(records, without []string) handover.OwnRecords {
		o := handover.OwnRecords{Records: map[string]handover.OwnRecord{}, Without: map[string]bool{}}
		for _, name := range records {
			o.Records[name] = has
		}
		for _, name := range without {
			o.Without[name] = true
		}
		return o
	}
	kept, now := &Answers{}, time.Unix(1000, 0)
	for _, step := range []struct {
		story    string
		after    time.Duration
		clusters []kube.Key
		answer   handover.OwnRecords
		asks     bool
		want     []string
	}{
		{"the first round", 0, []kube.Key{a, b}, answer([]string{"n/a", "n/b"}, nil), true, []string{"n/a", "n/b"}},
		{"the next round", 2 * time.Second, []kube.Key{a, b}, answer(nil, nil), false, []string{"n/a", "n/b"}},
		{"nobody answers in time", time.Minute, []kube.Key{a, b}, answer(nil, nil), true, []string{"n/a", "n/b"}},
		{"one has no record any more", time.Minute, []kube.Key{a, b}, answer(nil, []string{"n/b"}), true, []string{"n/a"}},
		{"one is gone", time.Minute, []kube.Key{b}, answer(nil, []string{"n/b"}), true, nil},
		{"one of its name does not answer", time.Minute, []kube.Key{a, b}, answer(nil, nil), true, nil},
	} {
		asked := false
		now = now.Add(step.after)
		got := kept.latest(now, step.clusters, func() handover.OwnRecords { asked = true; return step.answer })
		if names := slices.Sorted(maps.Keys(got.Records)); asked != step.asks || !slices.Equal(names, step.want) {
			t.Errorf("%s: it asks: %t; got %v, want %v", step.story, asked, names, step.want)
		}
	}
	asks := 0
	for range 2 {
		(*Answers)(nil).latest(now, nil, func() handover.OwnRecords { asks++; return handover.OwnRecords{} })
	}
	if asks != 2 {
		t.Errorf("without a watch it asked %d times", asks)
	}
}
