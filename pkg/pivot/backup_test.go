package pivot

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/management"
)

// A folder that a snapshot makes may be the mount point of a volume that is not mounted. The next snapshot there makes none.
func TestBackupTellsOfANewFolder(t *testing.T) {
	root := filepath.Join(t.TempDir(), "mnt")
	o := BackupOptions{Dir: t.TempDir(), To: root, Target: &management.Target{Name: "play"}}
	for _, mounted := range []bool{false, true} {
		place, err := o.place()
		if err != nil {
			t.Fatal(err)
		}
		says := aboutNewFolder(place, "play")
		if mounted != (says == "") || !mounted && !strings.Contains(says, root+" had no folder for play before") {
			t.Errorf("mounted %t: %q", mounted, says)
		}
		if err := place.Save(t.Context(), "20260101T000000Z-abcdef", []byte("sealed")); err != nil {
			t.Fatal(err)
		}
	}
}

// The command that backup prints names the place as the flag --from takes it, not as people read it, and can be pasted into a shell.
func TestBackupNamesItsPlaceAsRestoreTakesIt(t *testing.T) {
	fleet := func(snapshots string) string {
		dir := t.TempDir()
		content := "apiVersion: fleetctl.dev/v1alpha1\nkind: Fleet\nmetadata: {name: play}\nspec:\n" + snapshots +
			"  git: {url: \"https://git.example.com/fleet.git\"}\n  environments: [{name: dev}]\n" +
			"  managementClusters: [{name: play, host: {type: embedded}, providers: [{name: docker}]}]\n"
		if err := os.WriteFile(filepath.Join(dir, "fleet.yaml"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	folder := filepath.Join(t.TempDir(), "my snapshots")
	for _, c := range []struct{ declared, to, place, command string }{
		{to: "branch:snapshots", place: "branch snapshots of", command: "restore --from branch:snapshots --snapshot ID --dry-run"},
		{to: "oci://registry.example.com/acme/snapshots", place: "oci://registry", command: "--from oci://registry.example.com/acme/snapshots -"},
		{to: folder, place: folder, command: "--from '" + folder + "' --snapshot"},
		{declared: "  snapshots: {to: \"branch:declared\"}\n", place: "branch declared of", command: "fleetctl restore --snapshot ID"},
		{declared: "  snapshots: {to: \"branch:declared\"}\n", to: "branch:other", place: "branch other of", command: "--from branch:other -"},
	} {
		o := BackupOptions{Dir: fleet(c.declared), To: c.to, Target: &management.Target{Name: "play"}}
		place, err := o.place()
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		if command := showCommand(o.To, "ID"); !strings.HasPrefix(place.String(), c.place) || !strings.Contains(command, c.command) {
			t.Errorf("%+v: %s: %s", c, place, command)
		}
	}
}
