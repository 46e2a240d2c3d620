package node

import (
	"context"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/fleetctl/fleetctl/scripts/offline/internal/cache"
	"github.com/fleetctl/fleetctl/scripts/offline/internal/image"
	"github.com/fleetctl/fleetctl/scripts/offline/internal/recipe"
)

// proxyTools are the programs that kube-proxy drives. xtables loads its plugins by name, so nothing links to them.
var proxyTools = []string{
	"/usr/sbin/xtables-nft-multi", "/usr/sbin/xtables-legacy-multi", "/usr/sbin/nft", "/usr/sbin/conntrack", "/usr/sbin/ipset",
	"/usr/lib/*-linux-gnu/xtables/*.so",
}

// proxyNames are what kube-proxy calls xtables, in its newer form.
var proxyNames = []string{
	"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore",
}

// Proxy returns kube-proxy's image.
func (b Builder) Proxy(ctx context.Context, debian string) (v1.Image, error) {
	key := cache.NewKey("proxy-image/1").Add("debian", debian).Add("program", b.Programs["kubernetes"]).Add("tools", proxyTools...)
	return b.small(ctx, "image-kube-proxy", key, image.Config{User: "0"}, func() ([]image.File, error) {
		files, err := image.Closure(debian, proxyTools...)
		if err != nil {
			return nil, err
		}
		for _, name := range proxyNames {
			files = append(files, image.File{Path: "/usr/sbin/" + name, Link: "xtables-nft-multi"})
		}
		files = append(files, image.UsrMerge()...)
		files = append(files, image.File{Path: recipe.ProxyImage.Path, Source: b.Programs["kubernetes"]})
		for _, link := range recipe.ProxyImage.Links {
			files = append(files, image.File{Path: link, Link: recipe.ProxyImage.Path})
		}
		return files, nil
	})
}

// haproxyStart keeps HAProxy from raising its file limit, which a container may not do everywhere.
const haproxyStart = `#!/bin/sh
exec /usr/sbin/haproxy -n 4000 "$@"
`

// haproxyStub is what the load balancer runs with until the docker provider has written its real configuration.
const haproxyStub = `global
  log stdout format raw daemon
defaults
  mode tcp
  timeout connect 5s
  timeout client 50s
  timeout server 50s
frontend stub
  bind *:6443
`

// busyboxNames are the programs that the docker provider and kind run inside a load balancer.
var busyboxNames = []string{"sh", "cp", "mkdir", "cat", "kill", "ls", "mv", "rm", "chmod", "sleep"}

// HAProxy returns the image of the load balancer that stands before control planes.
func (b Builder) HAProxy(ctx context.Context, debian string) (v1.Image, error) {
	key := cache.NewKey("haproxy-image/1").Add("debian", debian).Add("files", haproxyStart, haproxyStub).Add("busybox", busyboxNames...)
	config := image.Config{
		Entrypoint: []string{"haproxy", "-W", "-db", "-f", "/usr/local/etc/haproxy/haproxy.cfg"},
		User:       "0", StopSignal: "SIGUSR1",
	}
	return b.small(ctx, "image-haproxy", key, config, func() ([]image.File, error) {
		files, err := image.Closure(debian, "/usr/sbin/haproxy", "/usr/bin/busybox")
		if err != nil {
			return nil, err
		}
		files = append(files, image.UsrMerge()...)
		for _, name := range busyboxNames {
			files = append(files, image.File{Path: "/usr/bin/" + name, Link: "busybox"})
		}
		return append(files,
			image.File{Path: "/usr/local/sbin/haproxy", Content: []byte(haproxyStart), Mode: 0o755},
			image.File{Path: "/usr/local/etc/haproxy/haproxy.cfg", Content: []byte(haproxyStub)},
			image.File{Path: "/var/lib/haproxy"},
		), nil
	})
}

// small makes an image of a few files.
func (b Builder) small(
	ctx context.Context,
	name string,
	key *cache.Key,
	config image.Config,
	list func() ([]image.File, error),
) (v1.Image, error) {
	dir, err := b.Cache.Make(ctx, name, key, func(_ context.Context, dir string) error {
		base, err := image.Base()
		if err != nil {
			return err
		}
		files, err := list()
		if err != nil {
			return err
		}
		return image.Write(dir, append(base, files...), config)
	})
	if err != nil {
		return nil, err
	}
	return image.Read(dir)
}
