package plain

import "testing"

func TestCount(t *testing.T) {
	for _, test := range []struct {
		n          int
		what, want string
	}{
		{0, "file", "0 files"},
		{1, "file", "1 file"},
		{2, "file", "2 files"},
		{1, "entry", "1 entry"},
		{2, "entry", "2 entries"},
		{2, "key", "2 keys"},
		{3, "changed object", "3 changed objects"},
		{2, "box", "2 boxes"},
		{2, "alias", "2 aliases"},
		{2, "patch", "2 patches"},
		{2, "NetworkPolicy", "2 NetworkPolicies"},
		{2, "StorageClass", "2 StorageClasses"},
		{1, "Endpoints", "1 Endpoints"},
		{2, "Endpoints", "2 Endpoints"},
		{2, "PodMetrics", "2 PodMetrics"},
		{999, "line", "999 lines"},
		{6229, "line", "6,229 lines"},
		{1234567, "line", "1,234,567 lines"},
		{-1000, "byte", "-1,000 bytes"},
	} {
		if got := Count(test.n, test.what); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

func TestPerKind(t *testing.T) {
	got := PerKind(map[string]int{"ConfigMap": 1, "NetworkPolicy": 2, "Endpoints": 3, "Role": 2, "Ingress": 2})
	if want := "1 ConfigMap, 3 Endpoints, 2 Ingresses, 2 NetworkPolicies, 2 Roles"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
