package releases

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/capi/releases/releasestest"
)

// aliasBomb returns a mapping that expands to 9^11 texts.
func aliasBomb() string {
	var b strings.Builder
	b.WriteString("a: &a [" + strings.TrimSuffix(strings.Repeat("x,", 9), ",") + "]\n")
	for c := 'b'; c < 'm'; c++ {
		fmt.Fprintf(&b, "%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 9), ","))
	}
	return b.String()
}

// bombs returns contents of a release that would exhaust the memory, or never end.
func bombs() map[string]func(t *testing.T, file string) {
	write := func(content string) func(*testing.T, string) {
		return func(t *testing.T, file string) { t.Helper(); releasestest.WriteFile(t, file, content) }
	}
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n"
	deep := "data: " + strings.Repeat("{a: ", 5000) + "b" + strings.Repeat("}", 5000) + "\n"
	return map[string]func(t *testing.T, file string){
		"aliases of aliases": write(object + aliasBomb()),
		"deep":               write(object + deep),
		"deep, many":         write(strings.Repeat("---\n"+object+deep, 50)),
		"too large":          write("data: [" + strings.Repeat("1,", maxRelease/2) + "1]\n"),
		"a pipe": func(t *testing.T, file string) {
			t.Helper()
			releasestest.WriteFile(t, file, "")
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Mkfifo(file, 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"a device": func(t *testing.T, file string) {
			t.Helper()
			releasestest.WriteFile(t, file, "")
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("/dev/zero", file); err != nil {
				t.Fatal(err)
			}
		},
	}
}

// TestBombsOfReleases checks that every reader of such a release soon returns an error that names it, without using much memory.
func TestBombsOfReleases(t *testing.T) {
	aws := Provider{Name: "aws", Type: Infrastructure, Version: "v1.14.2"}
	for name, write := range bombs() {
		for who, read := range map[string]func(ctx context.Context, s *Source) error{
			"variables": func(ctx context.Context, s *Source) error { _, err := s.Variables(ctx, aws); return err },
			"images":    func(ctx context.Context, s *Source) error { _, err := s.Images(ctx, []Provider{aws}); return err },
			"install":   func(ctx context.Context, s *Source) error { return s.Prefetch(ctx, []Provider{aws}) },
			"metadata":  func(ctx context.Context, s *Source) error { _, err := s.Components(ctx, aws); return err },
		} {
			t.Run(name+"/"+who, func(t *testing.T) {
				root := releasestest.Repository(t)
				file := "infrastructure-components.yaml"
				if who == "metadata" {
					file = "metadata.yaml"
				}
				write(t, filepath.Join(root, "infrastructure-aws", aws.Version, file))
				wantBounded(t, "infrastructure provider aws", func() error {
					return read(t.Context(),
						newTestSource(t, SourceOptions{Repository: root}))
				})
			})
		}
		t.Run(name+"/cert-manager", func(t *testing.T) {
			root := releasestest.Repository(t)
			write(t, filepath.Join(root, "cert-manager", "v1.11.5", "cert-manager.yaml"))
			wantBounded(t, "cert-manager", func() error { return newTestSource(t, SourceOptions{Repository: root}).Prefetch(t.Context(), nil) })
		})
	}
}

// wantBounded expects a short error that contains names, after little time and with little memory.
func wantBounded(t *testing.T, names string, read func() error) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begun := time.Now()
	err := read()
	took := time.Since(begun)
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), names) || len(err.Error()) > 1000 {
		t.Errorf("got %.2000v, want an error that names %s", err, names)
	}
	if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 256 || took > 20*time.Second {
		t.Errorf("it took %s and %d MiB", took, used)
	}
}

// TestReleaseIsReadOnce checks that the installed objects are the ones that were compared with fleet.lock, even if the server gives another
// answer the second time.
func TestReleaseIsReadOnce(t *testing.T) {
	root := releasestest.Repository(t)
	aws := Provider{Name: "aws", Type: Infrastructure, Version: "v1.14.2"}
	source := newTestSource(t, SourceOptions{Repository: root, Variables: map[string]string{"AWS_B64ENCODED_CREDENTIALS": "x"}})
	compared, err := source.Unread(t.Context(), aws)
	if err != nil {
		t.Fatal(err)
	}
	certs, err := source.CertManager(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"infrastructure-aws/v1.14.2/infrastructure-components.yaml", "cert-manager/v1.11.5/cert-manager.yaml"} {
		raw, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		releasestest.WriteFile(t, filepath.Join(root, file), strings.ReplaceAll(string(raw), "image: ", "image: evil.example/"))
	}
	other, err := source.WithVariables(map[string]string{"AWS_B64ENCODED_CREDENTIALS": "y"})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Source{source, other} {
		images, err := s.Images(t.Context(), []Provider{aws})
		if err != nil || strings.Contains(strings.Join(images, " "), "evil") || len(images) == 0 {
			t.Errorf("%v, %v", images, err)
		}
		again, err := s.Components(t.Context(), aws)
		if err != nil || string(again.YAML) != string(compared.YAML) {
			t.Errorf("read again: %v", err)
		}
		if again, err := s.CertManager(t.Context()); err != nil || string(again.YAML) != string(certs.YAML) {
			t.Errorf("read again: %v", err)
		}
	}
}

// TestVariablesGrow checks that components which would grow too much with their variables are refused before the variables are filled in.
func TestVariablesGrow(t *testing.T) {
	value := strings.Repeat("a", 8<<10)
	for name, text := range map[string]string{
		"repeated": strings.Repeat("${A} ", 1<<20),
		"replaced": "${A//a/" + strings.Repeat("b", 64<<10) + "}",
	} {
		root := releasestest.Repository(t)
		releasestest.WriteFile(t, filepath.Join(root, "infrastructure-aws", "v1.14.2", "infrastructure-components.yaml"),
			"apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\ndata: '"+text+"'\n")
		source := newTestSource(t, SourceOptions{Repository: root, Variables: map[string]string{"A": value}})
		err := source.Prefetch(t.Context(), []Provider{{Name: "aws", Type: Infrastructure, Version: "v1.14.2"}})
		if err == nil || !strings.Contains(err.Error(), "infrastructure provider aws v1.14.2: the components grow beyond 64 MiB") {
			t.Errorf("%s: %.500v", name, err)
		}
	}
}
