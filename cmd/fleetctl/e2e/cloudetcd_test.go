//go:build e2e && clouds

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// etcdMember is a member as etcd's own gateway from JSON tells of it.
type etcdMember struct {
	ID        string   `json:"ID"`
	Name      string   `json:"name"`
	PeerURLs  []string `json:"peerURLs"`
	IsLearner bool     `json:"isLearner"`
}

func peerURL(address string) string   { return "https://" + net.JoinHostPort(address, "2380") }
func clientURL(address string) string { return "https://" + net.JoinHostPort(address, "2379") }

// startEtcd starts etcd on a machine. Without other, it begins a new etcd cluster. Otherwise it joins the etcd cluster of the member at the
// address other as kubeadm does: without a vote until it has caught up.
func (p *plane) startEtcd(ctx context.Context, other string) error {
	initial, state := p.machine.Hostname+"="+peerURL(p.machine.Address), "new"
	if other != "" {
		members, err := p.members(ctx, other)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(members, p.isMember) {
			add := map[string]any{"peerURLs": []string{peerURL(p.machine.Address)}, "isLearner": true}
			if err := p.askEtcd(ctx, other, "member/add", add, nil); err != nil {
				return err
			}
			if members, err = p.members(ctx, other); err != nil {
				return err
			}
		}
		var all []string
		for _, m := range members {
			name := m.Name
			if name == "" { // it has not started yet: it is this one
				name = p.machine.Hostname
			}
			all = append(all, name+"="+m.PeerURLs[0])
		}
		initial, state = strings.Join(all, ","), "existing"
	}
	address := p.machine.Address
	args := []string{
		"--name=" + p.machine.Hostname, "--data-dir=" + p.path("etcd"), "--log-level=warn", "--unsafe-no-fsync",
		"--listen-client-urls=" + clientURL(address), "--advertise-client-urls=" + clientURL(address),
		"--listen-peer-urls=" + peerURL(address), "--initial-advertise-peer-urls=" + peerURL(address),
		"--initial-cluster=" + initial, "--initial-cluster-state=" + state,
		"--client-cert-auth", "--trusted-ca-file=" + p.pki.cert(etcdAuthority), "--cert-file=" + p.pki.cert(etcdPair),
		"--key-file=" + p.pki.key(etcdPair),
		"--peer-client-cert-auth", "--peer-trusted-ca-file=" + p.pki.cert(etcdAuthority),
		"--peer-cert-file=" + p.pki.cert(etcdPair), "--peer-key-file=" + p.pki.key(etcdPair),
	}
	return p.start(ctx, "etcd", args, func(ctx context.Context) error {
		var status struct {
			IsLearner bool `json:"isLearner"`
		}
		if err := p.askEtcd(ctx, address, "maintenance/status", map[string]any{}, &status); err != nil || !status.IsLearner {
			return err
		}
		return p.promoteEtcd(ctx, other)
	})
}

// promoteEtcd gives a member its vote; etcd refuses until it has caught up.
func (p *plane) promoteEtcd(ctx context.Context, other string) error {
	members, err := p.members(ctx, other)
	if err != nil {
		return err
	}
	for _, m := range members {
		if m.IsLearner && p.isMember(m) {
			return p.askEtcd(ctx, other, "member/promote", map[string]any{"ID": m.ID}, nil)
		}
	}
	return nil
}

// isMember tells whether a member is this machine's.
func (p *plane) isMember(m etcdMember) bool { return m.PeerURLs[0] == peerURL(p.machine.Address) }

func (p *plane) members(ctx context.Context, at string) ([]etcdMember, error) {
	var told struct {
		Members []etcdMember `json:"members"`
	}
	err := p.askEtcd(ctx, at, "member/list", map[string]any{}, &told)
	return told.Members, err
}

func (p *plane) askEtcd(ctx context.Context, address, what string, body, answer any) error {
	config, err := p.pki.client(etcdClientPair, etcdAuthority)
	if err != nil {
		return err
	}
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, clientURL(address)+"/v3/"+pathOf(what), bytes.NewReader(content))
	if err != nil {
		return err
	}
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	said, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd at %s answers %s to %s: %s", address, response.Status, what, said)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(said, answer)
}

// pathOf is where etcd's gateway has a call.
func pathOf(what string) string {
	if strings.HasPrefix(what, "member/") {
		return "cluster/" + what
	}
	return what
}
