package v1alpha1

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

var (
	digestA = strings.Repeat("a", 64)
	digestB = strings.Repeat("b", 64)
)

func TestLockRoundTrip(t *testing.T) {
	lock := &Lock{
		APIVersion: APIVersion, Kind: LockKind,
		Components: []LockedComponent{
			{Name: "flux", Type: ComponentFlux, Version: "v2.9.5", SHA256: digestB},
			{Name: "aws", Type: "infrastructure", Version: "v2.13.0", URL: "https://mirror.example.org/aws.yaml", SHA256: digestA},
		},
		Images: []LockedImage{
			{Name: "quay.io/b:v1", Digest: "sha256:" + digestB, Bundle: true},
			{Name: "quay.io/a:v1", Digest: "sha256:" + digestA},
		},
		Charts: []LockedChart{{Name: "docker", SHA256: digestA}, {Name: "aws-eks", Fleetctl: "v0.3.0", SHA256: digestB}},
		Features: []LockedFeature{
			{Name: "web", Chart: "oci://ghcr.io/acme/web", Version: "1.2.0", SHA256: digestA},
			{Name: "dns", Chart: "https://charts.example.com/dns", Version: "v0.3.0", SHA256: digestB},
		},
	}
	content, err := MarshalLock(lock)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeLock(LockFileName, content)
	if err != nil {
		t.Fatalf("%v\n%s", err, content)
	}
	// MarshalLock sorts, so that the same fleet has the same file.
	want := *lock // "flux" sorts before "infrastructure"
	want.Images = []LockedImage{lock.Images[1], lock.Images[0]}
	want.Charts = []LockedChart{lock.Charts[1], lock.Charts[0]}
	want.Features = []LockedFeature{lock.Features[1], lock.Features[0]}
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Error(diff)
	}
	again, err := MarshalLock(got)
	if err != nil || string(again) != string(content) {
		t.Errorf("written again it is\n%s%v", again, err)
	}
}

func TestDecodeLockErrors(t *testing.T) {
	head := "apiVersion: fleetctl.dev/v1alpha1\nkind: FleetLock\n"
	for name, tt := range map[string]struct{ content, want string }{
		"empty": {"", "fleet.lock:1:1: file is empty (`fleetctl lock` writes it)"},
		"kind": {
			"apiVersion: fleetctl.dev/v1alpha1\nkind: Fleet\n",
			"fleet.lock:2:7: kind: \"Fleet\" is not a known kind (expected `kind: FleetLock`)",
		},
		"field": {head + "component: []\n", `fleet.lock:3:1: unknown field "component" (did you mean components?)`},
		"missing": {
			head + "components:\n- name: aws\n  type: infrastructure\n  version: v1\n",
			"fleet.lock:4:3: components[0].sha256: required field is missing",
		},
		"no digest": {
			head + "components:\n- {name: aws, type: infrastructure, version: v1, sha256: abc}\n",
			"fleet.lock:4:58: components[0].sha256: not a SHA-256 digest: 64 hexadecimal digits (`fleetctl lock` writes it)",
		},
		"no image digest": {
			head + "images:\n- {name: a:1, digest: " + digestA + "}\n",
			"fleet.lock:4:23: images[0].digest: not the digest of an image: sha256: and 64 hexadecimal digits (`fleetctl lock` writes it)",
		},
		"image by digest": {
			head + "images:\n- {name: \"a@sha256:b\", digest: \"sha256:" + digestA + "\"}\n",
			"fleet.lock:4:10: images[0].name: a name with a digest needs no second digest (`fleetctl lock` writes it)",
		},
		"image twice": {
			head + "images:\n- {name: a:1, digest: \"sha256:" + digestA + "\"}\n- {name: a:1, digest: \"sha256:" + digestA + "\"}\n",
			"fleet.lock:5:3: images[1]: image \"a:1\" exists already, in line 4 (`fleetctl lock` writes it again)",
		},
		"feature twice": {
			head + "features:\n- {name: a, chart: \"oci://r/a\", version: 1.0.0, sha256: " + digestA + "}\n" +
				"- {name: a, chart: \"oci://r/a\", version: 1.1.0, sha256: " + digestB + "}\n",
			"fleet.lock:5:3: features[1]: feature \"a\" exists already, in line 4 (`fleetctl lock` writes it again)",
		},
		"component twice": {
			head + "components:\n- {type: core, name: cluster-api, version: v1.14.2, sha256: " + digestA + "}\n" +
				"- {type: core, name: cluster-api, version: v1.14.2, sha256: " + digestB + "}\n",
			"fleet.lock:5:3: components[1]: component \"core provider cluster-api v1.14.2\" exists already, in line 4 " +
				"(`fleetctl lock` writes it again)",
		},
		"twice": {
			head + "charts:\n- {name: a, sha256: " + digestA + "}\n- {name: a, sha256: " + digestB + "}\n",
			"fleet.lock:5:3: charts[1]: chart \"a\" exists already, in line 4 (`fleetctl lock` writes it again)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := DecodeLock(LockFileName, []byte(tt.content))
			if err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
	if _, err := LoadLock(filepath.Join(t.TempDir(), LockFileName)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestLockVerify(t *testing.T) {
	aws := LockedComponent{Name: "aws", Type: "infrastructure", Version: "v2.13.0", SHA256: digestA}
	lock := &Lock{Components: []LockedComponent{aws}}
	other, changed := aws, aws
	other.Version, other.SHA256 = "v2.14.0", digestB
	changed.SHA256 = digestB
	var none *Lock
	for _, err := range []error{lock.Verify(aws), lock.Verify(other), none.Verify(changed)} {
		if err != nil {
			t.Error(err)
		}
	}
	err := lock.Verify(changed)
	if mismatch, ok := errors.AsType[*DigestError](err); !ok || mismatch.Locked != digestA || diag.Hint(err) == "" {
		t.Errorf("got %v", err)
	}
}
