package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// settleIdentity finds out which fleet this is, and whether the record of its management cluster on this machine is of that fleet. A fleet that
// has no identity yet gets one, which counts once it is in the repo: see identityFile.
func (s *session) settleIdentity() error {
	id, err := fleetrepo.ReadIdentity(s.opts.Dir)
	if err != nil {
		return err
	}
	s.self = ownership.NewRepo(s.opts.Dir, id, s.fleet)
	record, err := s.cluster.Load()
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) { // preflight says what is wrong with such a folder
		return err
	}
	if record != nil {
		s.stranger = s.checkRecord(record)
	}
	s.provisional = id == ""
	if s.provisional && record != nil && s.stranger == nil {
		id = record.FleetID // of a run that was killed before it committed it
	}
	if id == "" {
		id = string(uuid.NewUUID())
	}
	s.adopt(id)
	return nil
}

// checkRecord refuses the record of another fleet's management cluster, and one that follows another folder that is still there.
func (s *session) checkRecord(record *state.Record) error {
	if !s.self.Owns(record) {
		return s.self.NotOurs(record)
	}
	if s.self.URL == "" && record.GitURL == "" && record.Repo != "" && !ownership.SameFolder(record.Repo, s.opts.Dir) && ownership.HoldsFleet(record.Repo) && !s.opts.TakeOverFlux {
		return diag.Errorf("run it in "+record.Repo+"; or, if this folder is to take its place, give --take-over-flux",
			"Flux on the management cluster %s follows the folder %s, and this is a copy of it", record.Name, record.Repo)
	}
	return nil
}

// currentID is an identity that may become another one while steps run side by side.
type currentID struct{ now atomic.Pointer[string] }

// identity of the fleet. It is another one from the moment that another run turns out to have been faster.
func (s *session) identity() string {
	if id := s.id.now.Load(); id != nil {
		return *id
	}
	return ""
}

// adopt takes the identity that another run has given the fleet in place of one that was not in the repo yet.
func (s *session) adopt(id string) { s.id.now.Store(&id) }

// claim is what the management cluster is to know.
func (s *session) claim() *ownership.Claim {
	git := s.fleet.Spec.Git
	return &ownership.Claim{
		Fleet: s.identity(), Name: s.fleet.Metadata.Name, Cluster: s.mgmt.Name,
		URL: git.URL, Branch: git.Branch, Folder: s.opts.Dir, By: ownership.Somebody(),
	}
}

// checkClaim refuses a cluster that belongs to another fleet, or is another management cluster of this one. Where the repo has no identity yet
// and is the one that the cluster knows, it gets the cluster's.
func (s *session) checkClaim(c *ownership.Claim) error {
	if c == nil {
		return nil
	}
	samePlace := c.URL == "" && s.self.URL == "" && c.Folder == s.opts.Dir && !c.Confirmed
	if s.self.URL != "" {
		samePlace = ownership.SameRepository(c.URL, s.self.URL) && c.Branch == s.self.Branch
	}
	switch {
	case c.Fleet == s.identity():
	case samePlace && (s.provisional || !c.Confirmed):
		if s.provisional && c.Confirmed {
			s.adopt(c.Fleet)
		}
	default:
		return diag.Errorf(fmt.Sprintf("%s. A clone of its repo has the identity in %s, once that is committed and pushed", ownership.ChooseNameHint, fleetrepo.IdentityFile),
			"the cluster %s %w: %s; this is %s", s.mgmt.Name, ownership.ErrOtherFleet, c, ownership.Describe(s.self.Name, s.self.ID, s.self.Place()))
	}
	if c.Cluster != s.mgmt.Name {
		return diag.Errorf("give each management cluster a cluster of its own: host in fleet.yaml",
			"the cluster that fleet.yaml names for %s is %s", s.mgmt.Name, c)
	}
	return nil
}

// confirmClaim notes in the cluster where its fleet repo is, once the identity is there.
func (s *session) confirmClaim(ctx context.Context, client *kube.Client) error {
	const op = "note in the cluster which fleet it belongs to"
	for {
		there, err := ownership.ReadClaim(ctx, client)
		if err != nil {
			return err
		}
		if there == nil {
			return diag.Errorf("run the same command again", "the ConfigMap %s, which says which fleet the cluster belongs to, was deleted meanwhile", ownership.ClaimKey)
		}
		if err := s.checkClaim(there); err != nil {
			return err
		}
		wanted := s.claim()
		wanted.Confirmed, wanted.By, wanted.Version = true, there.By, there.Version
		if *wanted == *there {
			return nil
		}
		err = wanted.Update(ctx, client)
		if !apierrors.IsConflict(err) {
			return diag.Wrap(op, err, "")
		}
	}
}

// identityFile is the change that brings the identity into the repo, where it is not yet; root has what is committed. What another run has brought
// there counts.
func (s *session) identityFile(root string) ([]gitrepo.Change, error) {
	there, err := fleetrepo.ReadIdentity(root)
	if err != nil {
		return nil, err
	}
	if there != "" && there != s.identity() {
		if !s.provisional {
			return nil, diag.Errorf("see which of the two management clusters know, and commit that one",
				"%s in the remote is not the one in %s", fleetrepo.IdentityFile, s.opts.Dir)
		}
		s.adopt(there)
	}
	content := fleetrepo.IdentityContent(s.identity())
	if there != "" {
		return nil, nil
	}
	if now, err := os.ReadFile(filepath.Join(s.opts.Dir, fleetrepo.IdentityFile)); err == nil && !bytes.Equal(now, content) {
		if onDisk, err := fleetrepo.ReadIdentity(s.opts.Dir); err == nil && onDisk == s.identity() {
			return nil, nil // somebody is writing to it; the identity is the same
		}
	}
	return []gitrepo.Change{{Path: fleetrepo.IdentityFile, Content: content}}, nil
}
