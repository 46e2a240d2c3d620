package status

import (
	"time"

	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// askEvery is how often a watch asks the workload clusters for their own records of their owner. Each time, all their kubeconfigs are read,
// and it may take some seconds.
const askEvery = time.Minute

// Answers keeps what the workload clusters have said of their owners between the rounds of a watch. The zero value is ready for use.
type Answers struct {
	asked time.Time
	last  handover.OwnRecords
}

// latest returns the answers of these clusters. It asks if the last time was longer ago than askEvery. A cluster that does not answer this
// time keeps its last answer, so that the report does not change with who answers in time. A nil Answers asks each time.
func (a *Answers) latest(now time.Time, clusters []kube.Key, ask func() handover.OwnRecords) handover.OwnRecords {
	if a == nil {
		return ask()
	}
	if !a.asked.IsZero() && now.Sub(a.asked) < askEvery {
		return a.last
	}
	before := a.last
	a.asked, a.last = now, ask()
	for _, cluster := range clusters {
		name := cluster.String()
		if _, has := a.last.Records[name]; has || a.last.Without[name] {
			continue
		}
		if record, had := before.Records[name]; had {
			a.last.Records[name] = record
		}
	}
	return a.last
}
