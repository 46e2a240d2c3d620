package bundle

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestImagesIn(t *testing.T) {
	for name, tt := range map[string]struct {
		manifest string
		want     []string
	}{
		"empty":   {"", []string{}},
		"no pods": {"kind: ConfigMap\ndata:\n  containers: 'image: a'\n---\n---\n# nothing\n", []string{}},
		"deployment and init": {`
kind: Deployment
spec:
  template:
    spec:
      containers:
      - name: manager
        image: registry.k8s.io/cluster-api/manager:v1
        env: [{name: image, value: not-this}]
      - image: busybox
      initContainers:
      - {name: init, image: quay.io/init:v2}
---
kind: CronJob
spec: {jobTemplate: {spec: {template: {spec: {containers: [{image: 'docker.io/library/busybox:latest'}, {image: late}]}}}}}
`, []string{
			"registry.k8s.io/cluster-api/manager:v1", "docker.io/library/busybox:latest", "quay.io/init:v2",
			"docker.io/library/late:latest",
		}},
		"list and pod": {
			"kind: List\nitems:\n- kind: Pod\n  spec:\n    containers: [{image: a:1}]\n- kind: Pod\n  spec: {ephemeralContainers: [{image: a:2}]}\n",
			[]string{"docker.io/library/a:1", "docker.io/library/a:2"},
		},
		"schema": {
			"kind: CustomResourceDefinition\nspec:\n  containers: {type: array, items: {properties: {image: {type: string}}}}\n",
			[]string{},
		},
		"aliases": {
			"x: &c [{image: &i a:1}]\nspec: {containers: *c, initContainers: [{image: *i}, {image: b:1}]}\n",
			[]string{"docker.io/library/a:1", "docker.io/library/b:1"},
		},
		"merged": {
			"x: &c {image: a:1}\nspec: {containers: [{<<: *c}, {<<: [{name: n}, *c], image: b:1}], initContainers: [{image: null}]}\n",
			[]string{"docker.io/library/a:1", "docker.io/library/b:1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ImagesIn([]byte(tt.manifest))
			must(t, err)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestImagesInTellsAllProblems(t *testing.T) {
	_, err := ImagesIn([]byte("spec:\n  containers:\n  - image: ${ONE}\n  - image: x/UPPER\n  - image: fine\n"))
	if err == nil || !strings.Contains(err.Error(), "line 3") || !strings.Contains(err.Error(), "line 4") {
		t.Errorf("error %v", err)
	}
	if _, err := ImagesIn([]byte("a: b: c")); err == nil {
		t.Error("no error for what is not YAML")
	}
}

// If ImagesIn followed each alias every time, this manifest would have 10^9 nodes.
func TestImagesInBomb(t *testing.T) {
	var b strings.Builder
	b.WriteString("a0: &a0 [{image: x}]\n")
	for i := 1; i < 10; i++ {
		prev := "*a" + string(rune('0'+i-1))
		b.WriteString("a" + string(rune('0'+i)) + ": &a" + string(rune('0'+i)) + " [" + strings.Repeat(prev+", ", 9) + prev + "]\n")
	}
	b.WriteString("containers: *a9\n")
	if _, err := ImagesIn([]byte(b.String())); err != nil {
		t.Error(err)
	}
}
