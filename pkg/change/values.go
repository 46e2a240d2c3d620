package change

import (
	"context"

	"github.com/fleetctl/fleetctl/pkg/confine"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo/valuesschema"
)

// valuesQuestion has the values of a cluster and the schema of its chart, both as JSON.
type valuesQuestion struct{ Schema, Values []byte }

// valuesAnswer is the schema's refusal; nil if the values are valid.
type valuesAnswer struct{ Refusal *valuesschema.Refusal }

// ValuesTask validates values against a schema in a process with limits, because a chart's schema may need any amount of time and memory.
var ValuesTask = confine.New("values", func(ctx context.Context, q valuesQuestion) (a valuesAnswer, err error) {
	end, err := confine.Begin(ctx, "the chart's values.schema.json", "")
	defer end()
	if err == nil {
		a.Refusal, err = valuesschema.Judge(q.Schema, q.Values)
	}
	return a, err
})

// judgeElsewhere judges the values of a repo's clusters in a separate process.
func judgeElsewhere(ctx context.Context, repo *fleetrepo.Repo) {
	repo.Schemas.Elsewhere = func(schema, values []byte) (*valuesschema.Refusal, error) {
		a, err := ValuesTask.Run(ctx, valuesQuestion{schema, values}, confine.Needs{})
		return a.Refusal, err
	}
}
