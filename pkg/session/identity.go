package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
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
	"github.com/fleetctl/fleetctl/pkg/within"
)

// settleIdentity finds the identity of this fleet, and refuses a record of its management cluster on this machine that belongs to another
// fleet. A fleet without an identity gets one, which counts once it is in the repo: see IdentityFile.
func (s *Session) settleIdentity() error {
	id, err := fleetrepo.ReadIdentity(s.Opts.Dir)
	if err != nil {
		return err
	}
	s.Self = ownership.NewRepo(s.Opts.Dir, id, s.Fleet)
	record, err := s.Cluster.Load()
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) { // preflight says what is wrong with such a folder
		return err
	}
	if record != nil {
		s.Stranger = s.checkRecord(record)
	}
	s.Provisional = id == ""
	if s.Provisional && record != nil && s.Stranger == nil {
		id = record.FleetID // of a run that was killed before it committed it
	}
	if id == "" {
		id = string(uuid.NewUUID())
	}
	s.adopt(id)
	return nil
}

// checkRecord refuses a record that belongs to another fleet, or whose management cluster follows another existing folder.
func (s *Session) checkRecord(record *state.Record) error {
	if !s.Self.Owns(record) {
		return s.Self.NotOurs(record)
	}
	if s.Self.URL == "" && !s.Opts.TakeOverFlux { // a remote that a folder has got since may be cloned anywhere
		return s.Self.CheckCopy(record)
	}
	return nil
}

// currentID is an identity that may change while steps run side by side.
type currentID struct{ now atomic.Pointer[string] }

// Identity of the fleet. It changes when another run turns out to have committed an identity first.
func (s *Session) Identity() string {
	if id := s.id.now.Load(); id != nil {
		return *id
	}
	return ""
}

// adopt replaces an identity that is not in the repo yet by the identity that another run has committed.
func (s *Session) adopt(id string) { s.id.now.Store(&id) }

// Claim is the claim that init writes into the management cluster.
func (s *Session) Claim() *ownership.Claim {
	git := s.Fleet.Spec.Git
	return &ownership.Claim{
		Fleet: s.Identity(), Name: s.Fleet.Metadata.Name, Cluster: s.Mgmt.Name,
		URL: git.URL, Branch: git.Branch, Folder: s.Opts.Dir, By: ownership.Somebody(),
	}
}

// CheckClaim refuses a cluster that belongs to another fleet, or is another management cluster of this fleet. If the repo has no identity
// yet and the claim names this repo, the session takes over the identity in the claim.
func (s *Session) CheckClaim(c *ownership.Claim) error {
	if c == nil {
		return nil
	}
	samePlace := c.URL == "" && s.Self.URL == "" && c.Folder == s.Opts.Dir && !c.Confirmed
	if s.Self.URL != "" {
		samePlace = ownership.SameRepository(c.URL, s.Self.URL) && c.Branch == s.Self.Branch
	}
	switch {
	case c.Fleet == s.Identity():
	case samePlace && (s.Provisional || !c.Confirmed):
		if s.Provisional && c.Confirmed {
			s.adopt(c.Fleet)
		}
	default:
		return diag.Errorf(fmt.Sprintf("%s. A clone of its repo has the identity in %s, once that is committed and pushed",
			ownership.ChooseNameHint, fleetrepo.IdentityFile),
			"the cluster %s %w: %s; this is %s", s.Mgmt.Name, ownership.ErrOtherFleet, c, ownership.Describe(s.Self.Name, s.Self.ID, s.Self.Place()))
	}
	if c.Cluster != s.Mgmt.Name {
		return diag.Errorf("name another cluster; in fleet.yaml, each management cluster has a cluster of its own (host)",
			"the cluster named for %s is already another management cluster of this fleet: %s", s.Mgmt.Name, c)
	}
	return nil
}

// OtherManagement returns the name of the management cluster of this fleet that the claim belongs to, if it is another one than the
// session's. It returns "" for a claim of the session's management cluster or of another fleet.
func (s *Session) OtherManagement(c *ownership.Claim) string {
	if c == nil || c.Fleet != s.Identity() || c.Cluster == s.Mgmt.Name {
		return ""
	}
	return c.Cluster
}

// ConfirmClaim notes in the cluster where its fleet repo is, once the repo has the identity.
func (s *Session) ConfirmClaim(ctx context.Context, client *kube.Client) error {
	const op = "note in the cluster which fleet it belongs to"
	for {
		there, err := ownership.ReadClaim(ctx, client)
		if err != nil {
			return err
		}
		if there == nil {
			return diag.Errorf("run the same command again",
				"the ConfigMap %s, which says which fleet the cluster belongs to, was deleted meanwhile", ownership.ClaimKey)
		}
		if err := s.CheckClaim(there); err != nil {
			return err
		}
		wanted := s.Claim()
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

// IdentityFile is the change that brings the identity into the repo. root has the committed files. If another run has committed an identity
// meanwhile, that identity counts.
func (s *Session) IdentityFile(root string) ([]gitrepo.Change, error) {
	there, err := fleetrepo.ReadIdentity(root)
	if err != nil {
		return nil, err
	}
	if there != "" && there != s.Identity() {
		if !s.Provisional {
			return nil, diag.Errorf("see which of the two management clusters know, and commit that one",
				"%s in the remote is not the one in %s", fleetrepo.IdentityFile, s.Opts.Dir)
		}
		s.adopt(there)
	}
	content := fleetrepo.IdentityContent(s.Identity())
	if there != "" {
		return nil, nil
	}
	if now, err := within.ReadFile(s.Opts.Dir, fleetrepo.IdentityFile, fleetrepo.MaxFile); err == nil && !bytes.Equal(now, content) {
		if onDisk, err := fleetrepo.ReadIdentity(s.Opts.Dir); err == nil && onDisk == s.Identity() {
			return nil, nil // somebody is writing to it; the identity is the same
		}
	}
	return []gitrepo.Change{{Path: fleetrepo.IdentityFile, Content: content}}, nil
}
