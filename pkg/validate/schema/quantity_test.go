package schema

import (
	"strings"
	"testing"
)

// A quantity that apimachinery would read for hours is refused unread; one that only has many digits in a text that is no quantity is not.
func TestEndlessQuantities(t *testing.T) {
	const (
		pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: b}\nspec: {containers: [{name: a, image: b, " +
			"resources: {limits: {cpu: '%'}}}]}"
		hpa = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: a, namespace: b}\nspec: {maxReplicas: 1, " +
			"scaleTargetRef: {kind: Deployment, name: a}, metrics: [{type: Resource, resource: {name: cpu, target: {type: Value, value: '%'}}}]}"
		disk = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: b}\nspec: {containers: [{name: a, image: b}], volumes: [{name: a, " +
			"emptyDir: {sizeLimit: '%'}}]}"
	)
	for _, value := range []string{
		"1e-999999999", " 1E-99999999", "+.1e-999999999", "0." + strings.Repeat("1", 1_000_000), strings.Repeat("9", 1_000_000) + "Ei",
	} {
		for at, text := range map[string]string{
			"spec.containers[0].resources.limits.cpu": pod, "spec.metrics[0].resource.target.value": hpa, "spec.volumes[0].emptyDir.sizeLimit": disk,
		} {
			problems, err := NewSet().Check(t.Context(), object(t, strings.Replace(text, "%", value, 1)))
			if err != nil || len(problems) != 1 || problems[0].Path != at || problems[0].Type != Invalid {
				t.Errorf("%.20s at %s: %v, %v", value, at, problems, err)
			}
		}
	}
	for _, text := range []string{
		strings.Replace(pod, "%", "1e3", 1), strings.Replace(pod, "%", "100000000000000000000000000000000000000000000000Ki", 1),
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\ndata: {a: '1e-999999999', b: '" + strings.Repeat("9", 1000) + "'}",
	} {
		if problems, err := NewSet().Check(t.Context(), object(t, text)); err != nil || len(problems) > 0 {
			t.Errorf("%.200s: %v, %v", text, problems, err)
		}
	}
}
