package templates_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/render"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// object is a Kubernetes object of a chart, decoded from JSON: its numbers are of type float64.
type object = map[string]any

// rendered returns the objects of a release, in the order in which Helm applies them. It returns an error if the schema or the templates
// refuse the values. It renders in this process, which is fast enough for a test that changes one value after the other. TestChartsRender
// uses Helm's own program.
func rendered(t *testing.T, release, flavour string, values map[string]any) ([]object, error) {
	t.Helper()
	in := layout.Layout{Cloud: "docker", Generation: "v1"}
	made, err := scaffold.ClusterFiles(scaffold.ClusterOptions{Name: "x", Layout: in, Environment: "dev", Flavour: flavour, Values: values})
	if err != nil {
		t.Fatal(err)
	}
	chart, err := scaffold.EnvironmentChart(in, "dev", flavour)
	if err != nil {
		t.Fatal(err)
	}
	fleet := &v1alpha1.Fleet{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.Kind, Metadata: v1alpha1.Metadata{Name: "test"}}
	fleet.Spec.Environments = []v1alpha1.Environment{{Name: "dev"}}
	fleet.Spec.ManagementClusters = []v1alpha1.ManagementCluster{{Name: "mgmt", Cloud: in.Cloud, Generation: in.Generation}}
	files := fstest.MapFS{chart.Path: &fstest.MapFile{Data: chart.Content}}
	for _, f := range made {
		content := bytes.Replace(f.Content, []byte("releaseName: x\n"), fmt.Appendf(nil, "releaseName: %q\n", release), 1)
		files[f.Path] = &fstest.MapFile{Data: content}
	}
	result, err := render.New(files, fleet, render.Options{}).Cluster(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Findings) > 0 {
		return nil, errors.New(result.Findings[0].String())
	}
	var objects []object
	for _, o := range result.Objects {
		if o.Owner.Kind != render.KindHelmRelease {
			continue
		}
		var fields object
		if err := json.Unmarshal(o.JSON, &fields); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, fields)
	}
	if len(objects) == 0 {
		t.Fatalf("%s makes nothing", flavour)
	}
	return objects, nil
}
