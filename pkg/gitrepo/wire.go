package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/storage"
)

// fetched is the result of a fetch: the commit of the remote branch (zero if there is no such branch), and whether the remote has no branch
// at all.
type fetched struct {
	head  plumbing.Hash
	empty bool
}

// fetch fetches the branch's commit, and all objects that it needs, into store. An empty store gets only that one commit (shallow), if the
// server supports this. haves are commits that the store has already.
func (r *remote) fetch(ctx context.Context, store storage.Storer, branch string, haves []plumbing.Hash) (*fetched, error) {
	session, err := r.upload(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = session.Close() }() // what counts has been read, or failed
	refs, err := advertised(ctx, session)
	if err != nil {
		return nil, err
	}
	head, ok := refs.References[plumbing.NewBranchReferenceName(branch).String()]
	if !ok {
		return &fetched{empty: len(refs.References) == 0}, nil
	}
	if store.HasEncodedObject(head) == nil {
		return &fetched{head: head}, nil
	}
	return &fetched{head: head}, receive(ctx, store, session, refs.Capabilities, []plumbing.Hash{head}, haves)
}

// receive fetches objects, and all objects that they need, into store, in an open session whose references have been read.
func receive(
	ctx context.Context,
	store storage.Storer,
	session transport.UploadPackSession,
	caps *capability.List,
	wants, haves []plumbing.Hash,
) error {
	req, err := fetchRequest(caps, store, wants, haves)
	if err != nil {
		return err
	}
	pack, err := session.UploadPack(ctx, req)
	if errors.Is(err, transport.ErrEmptyUploadPackRequest) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = pack.Close() }() // the whole pack has been read, or failed
	if err := receivePack(store, demux(req.Capabilities, pack, nil)); err != nil {
		return errors.Join(ctx.Err(), fmt.Errorf("receive objects: %w", err))
	}
	return updateShallow(store, pack)
}

func fetchRequest(caps *capability.List, store storage.Storer, wants, haves []plumbing.Hash) (*packp.UploadPackRequest, error) {
	req := packp.NewUploadPackRequestFromCapabilities(caps)
	req.Wants, req.Haves = wants, haves
	if caps.Supports(capability.NoProgress) {
		if err := req.Capabilities.Set(capability.NoProgress); err != nil {
			return nil, err
		}
	}
	shallows, err := store.Shallow()
	if err != nil {
		return nil, err
	}
	if !caps.Supports(capability.Shallow) {
		return req, nil
	}
	req.Shallows = shallows
	if len(haves) == 0 {
		req.Depth = packp.DepthCommits(1)
	}
	return req, req.Capabilities.Set(capability.Shallow)
}

// updateShallow records where the history now ends.
func updateShallow(store storage.Storer, pack *packp.UploadPackResponse) error {
	if len(pack.Shallows) == 0 && len(pack.Unshallows) == 0 {
		return nil
	}
	old, err := store.Shallow()
	if err != nil {
		return err
	}
	set := map[plumbing.Hash]bool{}
	for _, h := range append(old, pack.Shallows...) {
		set[h] = true
	}
	for _, h := range pack.Unshallows {
		delete(set, h)
	}
	all := make([]plumbing.Hash, 0, len(set))
	for h := range set {
		all = append(all, h)
	}
	plumbing.HashesSort(all)
	return store.SetShallow(all)
}

func demux(caps *capability.List, pack io.Reader, progress sideband.Progress) io.Reader {
	var d *sideband.Demuxer
	switch {
	case caps.Supports(capability.Sideband64k):
		d = sideband.NewDemuxer(sideband.Sideband64k, pack)
	case caps.Supports(capability.Sideband):
		d = sideband.NewDemuxer(sideband.Sideband, pack)
	default:
		return pack
	}
	d.Progress = progress
	return d
}

// refused is the server's answer to a push that it refuses.
type refused struct {
	// unpack is the server's error about the objects; "" if it accepted them. reason is its error about the reference.
	unpack, reason string
	// said is the output of the server and of its hooks, as one line.
	said string
}

func (e *refused) Error() string {
	text := "the server says: " + e.reason
	if e.unpack != "" {
		text = "the server could not unpack the objects: " + e.unpack
	}
	if e.said != "" {
		text += " (" + e.said + ")"
	}
	return text
}

// update is one update of a reference. It takes effect only if the reference is at old at that moment.
type update struct {
	name     plumbing.ReferenceName
	old, new plumbing.Hash
	// objects are sent along as a pack.
	objects []plumbing.Hash
}

// send asks the server for one update, in an open session whose references have been read. It returns *refused if the server refuses the
// update.
func send(ctx context.Context, session transport.ReceivePackSession, caps *capability.List, store storage.Storer, u update) error {
	req := packp.NewReferenceUpdateRequestFromCapabilities(caps)
	req.Commands = []*packp.Command{{Name: u.name, Old: u.old, New: u.new}}
	said := &saying{}
	if caps.Supports(capability.Sideband64k) {
		if err := req.Capabilities.Set(capability.Sideband64k); err != nil {
			return err
		}
		req.Progress = said
	}
	// Make the whole pack before sending it: fleet commits are small, and an incomplete pack must not reach the server.
	var pack bytes.Buffer
	const window = 10
	if _, err := packfile.NewEncoder(&pack, store, false).Encode(u.objects, window); err != nil {
		return fmt.Errorf("pack objects: %w", err)
	}
	req.Packfile = io.NopCloser(&pack)
	report, err := session.ReceivePack(ctx, req)
	if report == nil {
		if err == nil {
			err = io.ErrUnexpectedEOF // without an answer, the update may have failed
		}
		return err
	}
	return refusal(report, u.name, said.String())
}

// refusal reads a report; nil means that the update was made.
func refusal(report *packp.ReportStatus, name plumbing.ReferenceName, said string) error {
	if report.UnpackStatus != "ok" {
		return &refused{unpack: report.UnpackStatus, said: said}
	}
	for _, status := range report.CommandStatuses {
		if status.ReferenceName == name {
			if status.Status == "ok" {
				return nil
			}
			return &refused{reason: status.Status, said: said}
		}
	}
	return &refused{reason: "nothing about " + name.String(), said: said}
}

// saying keeps the beginning of a server's output.
type saying struct{ text []byte }

func (s *saying) Write(p []byte) (int, error) {
	const most = 1 << 10
	if room := most - len(s.text); room > 0 {
		s.text = append(s.text, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

// String returns the output as one line, without invalid UTF-8.
func (s *saying) String() string {
	return strings.Join(strings.Fields(strings.ToValidUTF8(string(s.text), "")), " ")
}

// missing lists the objects of tip that a server lacks if it has base and all its ancestors: the commits between, and the objects that each
// of them adds to its first parent. It does not enter equal trees, so its cost depends on the changes and not on the size of the
// repository.
func missing(ctx context.Context, store storage.Storer, tip, base plumbing.Hash) ([]plumbing.Hash, error) {
	h, err := newHistory(store)
	if err != nil {
		return nil, err
	}
	commits, err := h.between(ctx, tip, base)
	if err != nil {
		return nil, err
	}
	found := &collection{store: store, seen: map[plumbing.Hash]bool{}}
	for _, c := range commits {
		parent := plumbing.ZeroHash
		if parents := h.parents(c); len(parents) > 0 {
			p, err := object.GetCommit(store, parents[0])
			if err != nil {
				return nil, err
			}
			parent = p.TreeHash
		}
		found.add(c.Hash)
		if err := found.tree(ctx, c.TreeHash, parent); err != nil {
			return nil, err
		}
	}
	return found.hashes, nil
}

type collection struct {
	store  storage.Storer
	seen   map[plumbing.Hash]bool
	hashes []plumbing.Hash
}

func (c *collection) add(h plumbing.Hash) bool {
	if c.seen[h] {
		return false
	}
	c.seen[h] = true
	c.hashes = append(c.hashes, h)
	return true
}
