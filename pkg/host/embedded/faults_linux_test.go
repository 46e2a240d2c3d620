//go:build integration

package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/host/embedded"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/images/imagestest"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/process/processtest"
)

// noSpace is how the system says that a disk is full.
const noSpace = "no space left on device"

// disk is a file system of its own, so small that it can be filled.
type disk struct {
	*testing.T
	dir string
}

func newDisk(t *testing.T, size string) *disk {
	t.Helper()
	d := &disk{t, t.TempDir()}
	if err := syscall.Mount("tmpfs", d.dir, "tmpfs", 0, "size="+size); err != nil {
		t.Fatalf("mount a small disk: %v (this takes root, as .ci/run has it)", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(d.dir, 0); err != nil {
			t.Errorf("%v, used by %v", err, d.users())
		}
	})
	return d
}

// users are the processes that work in the disk or have a file of it open, with what.
func (d *disk) users() (found []string) {
	for _, pattern := range []string{"/proc/[0-9]*/cwd", "/proc/[0-9]*/exe", "/proc/[0-9]*/fd/*"} {
		links, _ := filepath.Glob(pattern)
		for _, link := range links {
			if to, err := os.Readlink(link); err == nil && strings.HasPrefix(to, d.dir) {
				line, _ := os.ReadFile(filepath.Join("/", "proc", strings.Split(link, "/")[2], "cmdline"))
				found = append(found, fmt.Sprintf("%s -> %s (%s)", link, to, strings.ReplaceAll(string(line), "\x00", " ")))
			}
		}
	}
	return found
}

func (d *disk) grow(size string) {
	d.Helper()
	if err := syscall.Mount("tmpfs", d.dir, "tmpfs", syscall.MS_REMOUNT, "size="+size); err != nil {
		d.Fatal(err)
	}
}

func (d *disk) used() int64 {
	d.Helper()
	var s syscall.Statfs_t
	if err := syscall.Statfs(d.dir, &s); err != nil {
		d.Fatal(err)
	}
	return int64(s.Blocks-s.Bfree) * s.Bsize
}

// fill writes to a file until nothing more fits, and returns its name. It can be called again, for room that somebody else has made.
func (d *disk) fill() string {
	d.Helper()
	f, err := os.OpenFile(filepath.Join(d.dir, "filler"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		d.Fatal(err)
	}
	for block := make([]byte, 64<<10); len(block) > 0; { // ever less at a time, to the last byte
		if _, err := f.Write(block); errors.Is(err, syscall.ENOSPC) {
			block = block[:len(block)/2]
		} else if err != nil {
			d.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		d.Fatal(err)
	}
	return f.Name()
}

func imagesOf(archive host.ImageArchive) func(context.Context) (host.ImageArchive, error) {
	return func(context.Context) (host.ImageArchive, error) { return archive, nil }
}

func wantError(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("it does not say %q: %v", w, err)
		}
	}
}

func TestFullDiskAtTheFirstStart(t *testing.T) {
	d := newDisk(t, "16m") // etcd's first file is larger
	dir := filepath.Join(d.dir, "host")
	h := newHost(t, embedded.Options{StateDir: dir, Programs: programs(t)})
	err := h.Create(t.Context(), host.CreateOptions{})
	wantError(t, err, noSpace, "etcd")
	holder, children := supervisor(t, dir)
	wantGone(t, append(children, holder)...)
	wantState(t, h, host.StateBroken)
	d.grow("1g")
	create(t, h)
}

func TestFullDiskAtALaterStartLosesNothing(t *testing.T) {
	d := newDisk(t, "512m")
	dir := filepath.Join(d.dir, "host")
	h := newHost(t, embedded.Options{StateDir: dir, Programs: programs(t)})
	create(t, h)
	makeNamespace(t, h, "kept")
	holder, children := supervisor(t, dir)
	filler := d.fill()
	if err := holder.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wantGone(t, append(children, holder)...)
	wantError(t, h.Create(t.Context(), host.CreateOptions{}), noSpace)
	wantState(t, h, host.StateStopped)
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	create(t, h)
	wantNamespace(t, h, "kept")
}

func TestFullDiskOfImages(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const image = "registry.example.com/test/manager:v1"
	archive := imagestest.Archive(t, map[string]imagestest.Image{image: {Program: exe}})
	opts := host.CreateOptions{Images: imagesOf(archive)}
	d := newDisk(t, "8m")
	h := newHost(t, embedded.Options{Programs: programs(t), ImageDir: filepath.Join(d.dir, "images")})
	wantError(t, h.Create(t.Context(), opts), noSpace, image)
	if used := d.used(); used > 1<<20 {
		t.Errorf("%d bytes of an image that did not fit are left over", used)
	}
	d.grow("1g")
	if err := h.Create(t.Context(), opts); err != nil {
		t.Error(err)
	}
	wantState(t, h, host.StateRunning)
}

// TestImagesOfTheControlPlane has images that cannot be run. Nothing is pulled: the way to registries is closed.
func TestImagesOfTheControlPlane(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	const etcd, server = "registry.k8s.io/etcd:3.6.8-0", "registry.k8s.io/kube-apiserver:v1.36.3"
	for name, c := range map[string]struct {
		images map[string]imagestest.Image
		words  []string
	}{
		"truncated":          {map[string]imagestest.Image{etcd: {Program: exe, Truncated: true}}, []string{etcd, "content has digest"}},
		"other architecture": {map[string]imagestest.Image{etcd: {Program: exe, Arch: "mips"}}, []string{etcd + " is for linux/mips"}},
		"missing":            {map[string]imagestest.Image{}, []string{"registry.k8s.io/"}},
		"another program": {map[string]imagestest.Image{
			etcd: {Program: exe}, server: {Program: exe}, "registry.k8s.io/kube-controller-manager:v1.36.3": {Program: exe},
		}, []string{"registry.k8s.io/", "has no program /usr/local/bin/"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "host")
			h := newHost(t, embedded.Options{StateDir: dir, ImageDir: filepath.Join(t.TempDir(), "images")})
			wantError(t, h.Create(t.Context(), host.CreateOptions{NodeImage: imagestest.Archive(t, c.images)}), c.words...)
			wantState(t, h, host.StateBroken)
			if alive, err := process.Running(filepath.Join(dir, "processes")); err != nil || len(alive) > 0 {
				t.Errorf("left over: %v, %v", alive, err)
			}
			if left, err := h.Delete(t.Context()); err != nil || len(left) > 0 {
				t.Errorf("Delete: %v, %v", left, err)
			}
		})
	}
}

// TestMirrorIsAskedWithTheUsersLogin has a mirror that knows who asks and has nothing: the supervisor pulls from it and from nowhere else.
func TestMirrorIsAskedWithTheUsersLogin(t *testing.T) {
	const password = "s3cret"
	var asked sync.Map
	mirror := imagestest.Serve(t, password, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.URL.Path, true)
		if r.URL.Path != "/v2/" {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	login := fmt.Sprintf(`{"auths":{%q:{"username":%q,"password":%q}}}`, mirror, imagestest.User, password)
	if err := os.WriteFile(filepath.Join(os.Getenv("DOCKER_CONFIG"), "config.json"), []byte(login), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "host")
	h := newHost(t, embedded.Options{
		StateDir: dir, ImageDir: filepath.Join(t.TempDir(), "images"), Mirrors: map[string]string{"registry.k8s.io": mirror + "/k8s"},
	})
	wantError(t, h.Create(t.Context(), host.CreateOptions{}), "registry.k8s.io/")
	found := false
	asked.Range(func(path, _ any) bool {
		found = found || strings.HasPrefix(path.(string), "/v2/k8s/")
		return true
	})
	if !found {
		t.Errorf("the mirror was never asked for an image: %v", &asked)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "supervisor.log"))
	if err != nil || strings.Contains(string(raw), password) {
		t.Errorf("the log of the supervisor: %v\n%s", err, raw)
	}
}

// TestOrphansOfAKilledSupervisor has a program with a child of its own: when the supervisor is killed, the kernel ends the program
// alone. The next start ends the child, and so does Delete.
func TestOrphansOfAKilledSupervisor(t *testing.T) {
	p := programs(t)
	note := filepath.Join(t.TempDir(), "child")
	p.ControllerManager = filepath.Join(t.TempDir(), "parent")
	script := "#!/bin/sh\nsleep 1000 &\necho $! >" + note + ".new\nmv " + note + ".new " + note + "\nexec sleep 1000\n"
	if err := os.WriteFile(p.ControllerManager, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "host")
	h := newHost(t, embedded.Options{StateDir: dir, Programs: p})
	orphan := func() process.Identity {
		t.Helper()
		create(t, h)
		child := childOf(t, note)
		holder, children := supervisor(t, dir)
		if err := holder.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		wantGone(t, append(children, holder)...)
		if !child.Alive() {
			t.Fatal("nothing is left over: the test shows nothing")
		}
		return child
	}
	first := orphan()
	second := orphan() // its start ends the first
	wantGone(t, first)
	if left, err := h.Delete(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("Delete: %v, %v", left, err)
	}
	if second.Alive() {
		t.Error("Delete has left a process")
	}
}

// childOf waits for the number that a program writes down, and takes it.
func childOf(t *testing.T, note string) process.Identity {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		raw, err := os.ReadFile(note)
		if err != nil && time.Now().After(deadline) {
			t.Fatal(err)
		}
		if err != nil {
			continue
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
		if err != nil {
			t.Fatal(err)
		}
		child, err := process.Find(pid)
		if err := errors.Join(err, os.Remove(note)); err != nil {
			t.Fatal(err)
		}
		return child
	}
}

// TestDiskFullWhileItRuns fills the disk under a running host. The host says so, keeps every object that it has confirmed, and goes on by
// itself when there is room again.
func TestDiskFullWhileItRuns(t *testing.T) {
	d := newDisk(t, "512m")
	dir := filepath.Join(d.dir, "host")
	h := newHost(t, embedded.Options{StateDir: dir, ImageDir: filepath.Join(t.TempDir(), "images"), Programs: programs(t)})
	createWithImage(t, h)
	deploy(t, h, "manager")
	wantManagers(t, h, dir, 1)
	holder, _ := supervisor(t, dir)
	etcd := programOf(t, dir, "etcd")
	filler := d.fill()
	api := client(t, h).CoreV1().ConfigMaps("default")
	large := strings.Repeat("x", 500<<10)
	var answered []string
	for i := 0; ; i++ {
		c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("kept-%d", i)}, Data: map[string]string{"large": large}}
		if _, err := api.Create(t.Context(), c, metav1.CreateOptions{}); err != nil {
			t.Logf("after %d objects: %v", i, err)
			break
		}
		answered = append(answered, c.Name)
	}
	eventually(t, "the host says that its disk is full", func() string {
		d.fill() // etcd gives up room of its own when it starts
		if err := h.Trouble(); err == nil || !strings.Contains(err.Error(), "no space left on the disk of "+dir) {
			return fmt.Sprint(err)
		}
		return ""
	})
	wantState(t, h, host.StateRunning)
	eventually(t, "etcd is started again, on the full disk", func() string {
		for id, line := range processtest.Of(t, dir) {
			if id != etcd && strings.Contains(line, "--name=embedded") {
				return ""
			}
		}
		return "it is not there"
	})
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	waitForLog(t, h, "supervisor", "etcd ended", noSpace)
	eventually(t, "it goes on", func() string {
		if err := h.Trouble(); err != nil {
			return err.Error()
		}
		c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "later"}}
		if _, err := api.Create(t.Context(), c, metav1.CreateOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
	for _, name := range answered {
		if c, err := api.Get(t.Context(), name, metav1.GetOptions{}); err != nil || c.Data["large"] != large {
			t.Errorf("%s is lost: %v", name, err)
		}
	}
	deploy(t, h, "later")
	wantManagers(t, h, dir, 2)
	if again, _ := supervisor(t, dir); again != holder {
		t.Error("its supervisor was started anew")
	}
}
