package engine

import (
	"strings"
	"testing"
)

// Answers that engines have given, and variations of them.
var answers = []string{
	`[{"Id":"0123","Name":"/kind-control-plane","State":{"Status":"running","Running":true,"StartedAt":"2026-01-02T03:04:05.678901234Z"},"Config":{"Image":"kindest/node:v1.36.3","Labels":{"io.x-k8s.kind.cluster":"kind"}},"Mounts":[{"Type":"volume","Name":"v","Source":"/var/lib/docker/volumes/v/_data","Destination":"/var"}],"NetworkSettings":{"Networks":{"kind":{"IPAddress":"172.18.0.2"}}}}]`,
	`[{"Id":"4567","Name":"a","ImageName":"docker.io/kindest/node:v1.36.3","State":{"Status":"created","StartedAt":"0001-01-01T00:00:00Z"},"Config":{"Labels":null},"NetworkSettings":{"Networks":null}}]`,
	`[{"Name":"kind","IPAM":{"Config":[{"Subnet":"fc00::/64","Gateway":"fc00::1"},{"Subnet":"10.89.0.0/24","Gateway":"10.89.0.1"}]}}]`,
	`[{"name":"kind","subnets":[{"subnet":"10.89.0.0/24","gateway":"10.89.0.1"}]},{"plugins":[{"ipam":{"ranges":[[{"gateway":"fc00::1%eth0"}],[]]}}]}]`,
	`{"ServerVersion":"28.2.2","CgroupVersion":"2","DockerRootDir":"/var/lib/docker","OperatingSystem":"Docker Desktop","MemTotal":1024,"NCPU":2,"SecurityOptions":["name=rootless,x"],"MemoryLimit":false}`,
	`{"ServerErrors":["\n"]}`, `{"ServerErrors":["Cannot connect to the Docker daemon\nIs it running?"]}`,
	`{"host":{"cgroupVersion":"v2","cgroupControllers":["memory","pids"],"security":{"rootless":true},"remoteSocket":{"path":"unix:///run/user/1000/podman/podman.sock"}},"version":{"Version":"5.0.0"}}`,
	`[]`, `null`, `{}`, `[null]`, ``,
}

// Whatever an engine answers: what is made of it holds together, and a value that is not there is never one that is.
func FuzzAnswers(f *testing.F) {
	for _, answer := range answers {
		f.Add([]byte(answer))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		containers, err := parseContainers(answer)
		if err != nil && containers != nil {
			t.Errorf("%d containers beside an error", len(containers))
		}
		for _, c := range containers {
			if c.Networks == nil {
				t.Errorf("container %q has no networks to look into", c.Name)
			}
		}
		gateways, err := parseGateways(answer)
		if err != nil && gateways != nil {
			t.Errorf("%d gateways beside an error", len(gateways))
		}
		for _, gateway := range gateways {
			if !gateway.IsValid() {
				t.Error("a gateway is no address")
			}
		}
		for name, parse := range map[string]func([]byte) (Info, error){"docker": parseDockerInfo, "podman": parsePodmanInfo} {
			info, err := parse(answer)
			if err != nil {
				if err.Error() == "" || strings.Contains(err.Error(), "\n") {
					t.Errorf("%s: the error %q is not a line", name, err)
				}
				continue
			}
			if info.CgroupVersion < 0 || info.CgroupVersion > 2 || name == "podman" && !info.Rootless && len(info.MissingControllers) > 0 {
				t.Errorf("%s: %+v", name, info)
			}
		}
	})
}
