package engine

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// program puts a shell script under the name of an engine into an otherwise empty PATH.
func program(t *testing.T, dir string, name Name, script string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, string(name)), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestDetect(t *testing.T) {
	const (
		deadDocker      = `case "$1" in --version) echo "Docker version 28.2.2, build e6534b4";; *) echo "Cannot connect to the Docker daemon" >&2; exit 1;; esac`
		mutteringDocker = `case "$1" in --version) echo "Docker version 28.2.2, build e6534b4";; info) echo '{"ServerErrors":["Cannot connect to the Docker daemon"]}';; *) exit 1;; esac`
		podmanAsDocker  = `echo "podman version 4.3.1"`
		docker          = `case "$1" in --version) echo "Docker version 28.2.2, build e6534b4";; *) echo '{"ServerVersion":"28.2.2","CgroupVersion":"2"}';; esac`
		podman          = `echo '{"version":{"Version":"4.3.1"},"host":{"cgroupVersion":"v2"}}'`
	)
	for name, tc := range map[string]struct {
		programs map[Name]string
		variable string
		want     Name
		hint     string
	}{
		"docker before podman":             {map[Name]string{Docker: docker, Podman: podman}, "", Docker, ""},
		"a docker without daemon":          {map[Name]string{Docker: deadDocker, Podman: podman}, "", Podman, ""},
		"a docker that reports its daemon": {map[Name]string{Docker: mutteringDocker, Podman: podman}, "", Podman, ""},
		"podman-docker":                    {map[Name]string{Docker: podmanAsDocker, Podman: podman}, "", Podman, ""},
		"chosen":                           {map[Name]string{Docker: docker, Podman: podman}, "podman", Podman, ""},
		"chosen and dead":                  {map[Name]string{Docker: deadDocker, Podman: podman}, "docker", "", "start Docker"},
		"unknown":                          {map[Name]string{Docker: docker}, "rkt", "", "set it to docker"},
		"nothing installed":                {nil, "", "", "install Docker"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("PATH", dir)
			t.Setenv("DOCKER_HOST", "unix://"+filepath.Join(dir, "none.sock"))
			t.Setenv(ProviderVariable, tc.variable)
			for name, script := range tc.programs {
				program(t, dir, name, script)
			}
			e, err := Detect(t.Context())
			if tc.want == "" {
				if err == nil || !strings.Contains(diag.Hint(err), tc.hint) {
					t.Fatalf("error %v with hint %q, want hint %q", err, diag.Hint(err), tc.hint)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if e.Name() != tc.want {
				t.Errorf("detected %s, want %s", e.Name(), tc.want)
			}
		})
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	path := os.Getenv("PATH")
	program(t, dir, Podman, "PATH="+path+"\nsleep 30 & wait") // a grandchild keeps the pipes open
	t.Setenv("PATH", dir)
	cause := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(cause) })
	begin := time.Now()
	_, err := (&Engine{name: Podman}).Output(ctx, "ps")
	if !errors.Is(err, cause) || time.Since(begin) > 5*time.Second {
		t.Errorf("%v after %s", err, time.Since(begin))
	}
}

func TestCommandErrorHasTheLastLine(t *testing.T) {
	dir := t.TempDir()
	program(t, dir, Podman, "echo noise >&2; echo 'Error: no such thing' >&2; exit 125")
	t.Setenv("PATH", dir)
	_, err := (&Engine{name: Podman}).Output(t.Context(), "network", "inspect", "kind")
	var failed *CommandError
	if !errors.As(err, &failed) || err.Error() != "podman network inspect: exit status 125: Error: no such thing" {
		t.Errorf("got %v", err)
	}
}

func TestParseInfo(t *testing.T) {
	for name, tc := range map[string]struct {
		parse func([]byte) (Info, error)
		data  string
		want  Info
	}{
		"docker": {
			parseDockerInfo, `{"ServerVersion":"28.2.2","CgroupVersion":"2","DockerRootDir":"/var/lib/docker","OperatingSystem":"Debian","MemTotal":1024,"NCPU":2,"SecurityOptions":["name=seccomp,profile=builtin"],"MemoryLimit":true,"PidsLimit":true,"CPUShares":true}`,
			Info{Version: "28.2.2", CgroupVersion: 2, StoreDir: "/var/lib/docker", OperatingSystem: "Debian", MemoryBytes: 1024, CPUs: 2},
		},
		"docker rootless, not delegated": {
			parseDockerInfo, `{"ServerVersion":"27.0.1","CgroupVersion":"2","SecurityOptions":["name=rootless"],"MemoryLimit":true,"PidsLimit":true,"CPUShares":false}`,
			Info{Version: "27.0.1", CgroupVersion: 2, Rootless: true, MissingControllers: []string{"cpu"}},
		},
		"docker desktop": {
			parseDockerInfo, `{"ServerVersion":"27.0.1","CgroupVersion":"2","OperatingSystem":"Docker Desktop"}`,
			Info{Version: "27.0.1", CgroupVersion: 2, OperatingSystem: "Docker Desktop", Remote: true},
		},
		"podman": {
			parsePodmanInfo, `{"host":{"cgroupVersion":"v1","cgroupControllers":[],"memTotal":1024,"cpus":2,"serviceIsRemote":false,"distribution":{"distribution":"debian","version":"12"},"security":{"rootless":false},"remoteSocket":{"path":"/run/podman/podman.sock"}},"store":{"graphRoot":"/var/lib/containers/storage"},"version":{"Version":"4.3.1"}}`,
			Info{
				Version: "4.3.1", CgroupVersion: 1, MemoryBytes: 1024, CPUs: 2, OperatingSystem: "debian 12", Socket: "/run/podman/podman.sock",
				StoreDir: "/var/lib/containers/storage",
			},
		},
		"podman rootless": {
			parsePodmanInfo, `{"host":{"cgroupVersion":"v2","cgroupControllers":["memory","pids"],"security":{"rootless":true},"remoteSocket":{"path":"unix:///run/user/1000/podman/podman.sock"}},"version":{"Version":"5.0.0"}}`,
			Info{
				Version: "5.0.0", CgroupVersion: 2, Rootless: true, MissingControllers: []string{"cpu"},
				Socket: "/run/user/1000/podman/podman.sock",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tc.parse([]byte(tc.data))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got  %+v\nwant %+v", got, tc.want)
			}
		})
	}
}

func TestParseContainers(t *testing.T) {
	got, err := parseContainers([]byte(`[
	 {"Id":"1","Name":"/m-control-plane","Config":{"Image":"kindest/node:v1","Labels":{"io.x-k8s.kind.cluster":"m"}},
	  "State":{"Status":"running","Running":true,"StartedAt":"2026-01-02T03:04:05.6Z"},
	  "Mounts":[{"Type":"volume","Name":"v","Source":"/s","Destination":"/var","RW":true}],
	  "NetworkSettings":{"Networks":{"kind":{"IPAddress":"10.89.0.2"}}}},
	 {"Id":"2","Name":"m-control-plane","ImageName":"docker.io/kindest/node:v1","Config":{},
	  "State":{"Status":"created","Running":false,"StartedAt":"0001-01-01T00:00:00Z"},"Mounts":[]}]`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Container{
		{
			ID: "1", Name: "m-control-plane", Image: "kindest/node:v1", Labels: map[string]string{"io.x-k8s.kind.cluster": "m"},
			Status: "running", Running: true, Started: true, Networks: map[string]string{"kind": "10.89.0.2"},
			Mounts: []Mount{{Type: "volume", Name: "v", Source: "/s", Destination: "/var"}},
		},
		{
			ID: "2", Name: "m-control-plane", Image: "docker.io/kindest/node:v1", Status: "created",
			Networks: map[string]string{}, Mounts: []Mount{},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestParseGateways(t *testing.T) {
	for name, data := range map[string]string{
		"docker":         `[{"Name":"kind","IPAM":{"Config":[{"Subnet":"fc00::/64","Gateway":"fc00::1"},{"Subnet":"10.89.0.0/24","Gateway":"10.89.0.1"}]}}]`,
		"podman":         `[{"name":"kind","subnets":[{"subnet":"fc00::/64","gateway":"fc00::1"},{"subnet":"10.89.0.0/24","gateway":"10.89.0.1"}]}]`,
		"podman and CNI": `[{"plugins":[{"ipam":{"ranges":[[{"gateway":"fc00::1"}],[{"subnet":"10.89.0.0/24","gateway":"10.89.0.1"}]]}},{"type":"portmap"}]}]`,
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseGateways([]byte(data))
			want := []netip.Addr{netip.MustParseAddr("fc00::1"), netip.MustParseAddr("10.89.0.1")}
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func TestImageRef(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("a", 64)
	for ref, want := range map[string]string{
		"kindest/node:v1":                "docker.io/kindest/node:v1",
		"busybox":                        "docker.io/library/busybox:latest",
		"kindest/node:v1" + digest:       "docker.io/kindest/node" + digest,
		"localhost/node:v1":              "localhost/node:v1",
		"reg.example:5000/node":          "reg.example:5000/node:latest",
		"reg.example:5000/node" + digest: "reg.example:5000/node" + digest,
		"Not A Reference":                "Not A Reference",
	} {
		if got := (&Engine{name: Podman}).ImageRef(ref); got != want {
			t.Errorf("%s: got %s, want %s", ref, got, want)
		}
		if got := (&Engine{name: Docker}).ImageRef(ref); got != ref {
			t.Errorf("docker: %s became %s", ref, got)
		}
	}
}
