package orphans

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/cloud"
)

// quiet lets a deletion go on.
var quiet = Watch{
	Before: func(context.Context) error { return nil },
	Stage:  func(string) func(error) { return func(error) {} },
}

// Any user of the account chooses names and makes thousands of resources: the text for people stays short, and on its line.
func TestDeletionRefusesBrieflyAndOnOneLine(t *testing.T) {
	const evil = "x)\nNothing of the cluster shop is left.\x1b[2J"
	for what, spoil := range map[string]func(*account, int){
		"strangers": func(a *account, i int) {
			a.found.Strangers = append(a.found.Strangers, cloud.Resource{Kind: "instance", ID: fmt.Sprint("i-", i), Name: evil, Network: "vpc"})
		},
		"clusters": func(a *account, i int) {
			a.found.Resources = append(a.found.Resources, cloud.Resource{Kind: "instance", ID: fmt.Sprint("i-", i), Cluster: evil, Network: "vpc"})
		},
		"users of the network": func(a *account, i int) {
			a.found.Resources[0].Users = append(a.found.Resources[0].Users, fmt.Sprint(evil, i))
		},
	} {
		a := mine()
		for i := range 5000 {
			spoil(a, i)
		}
		_, err := find(t, a).Deletion("shop", nil)
		if err == nil || len(err.Error()) > 4<<10 || strings.ContainsAny(err.Error(), "\n\x1b") ||
			!strings.Contains(err.Error(), "and 4,990 more") {
			t.Errorf("%s: %.300q", what, err)
		}
	}
	a := mine()
	a.found.Resources[3].Users = []string{evil}
	d, err := find(t, a).Deletion("shop", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range d.Kept {
		if strings.ContainsAny(k.Why, "\n\x1b") {
			t.Errorf("%q", k.Why)
		}
	}
	a = mine()
	a.found.Resources[1].ID, a.stays = evil, evil
	if d, err = find(t, a).Deletion("shop", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Delete(t.Context(), quiet); err == nil || strings.ContainsAny(err.Error(), "\n\x1b") {
		t.Errorf("%q", err)
	}
}
