package gitrepo_test

import (
	"bytes"
	"compress/zlib"
	"crypto/rand"
	"crypto/sha1"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
)

// hostileGit is a Git server with scripted answers.
type hostileGit struct {
	// refs writes the references after the first one, pack the pack of a fetch, and report the report after a push. nil writes nothing.
	refs, pack, report func(w io.Writer) error
	sent               atomic.Int64
}

// countingWriter counts the bytes that the client has taken.
type countingWriter struct {
	w    io.Writer
	sent *atomic.Int64
}

func (c countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.sent.Add(int64(n))
	return n, err
}

func (h *hostileGit) advertise(w io.Writer) error {
	out := countingWriter{w, &h.sent}
	head := strings.Repeat("a", 40)
	capabilities := "ofs-delta report-status"
	if _, err := io.WriteString(out, pktLine(head+" HEAD\x00"+capabilities+"\n")+pktLine(head+" refs/heads/main\n")); err != nil {
		return err
	}
	if h.refs != nil {
		if err := h.refs(out); err != nil {
			return err
		}
	}
	_, err := io.WriteString(out, "0000")
	return err
}

func (h *hostileGit) answer(service string, w io.Writer) error {
	out, say := countingWriter{w, &h.sent}, h.report
	if service == "git-upload-pack" {
		say = h.pack
		if _, err := io.WriteString(out, pktLine("NAK\n")); err != nil {
			return err
		}
	}
	if say == nil {
		return nil
	}
	return say(out)
}

// overSSH serves the repository over SSH, and returns its URL.
func (h *hostileGit) overSSH(t *testing.T) (string, gitrepo.Auth) {
	t.Helper()
	s := gittest.NewSSH(t, gittest.Options{})
	s.Answer = func(service string, session io.ReadWriter) {
		if h.advertise(session) != nil || requested(session) != nil {
			return
		}
		_ = h.answer(service, session) // the client has gone
	}
	return s.URL, sshAuth(t, s, false)
}

// requested reads the request of a client to its end: "done", or a flush before a pack.
func requested(session io.Reader) error {
	for {
		var length int
		prefix := make([]byte, 4)
		if _, err := io.ReadFull(session, prefix); err != nil {
			return err
		}
		if _, err := fmt.Sscanf(string(prefix), "%04x", &length); err != nil {
			return err
		}
		if length == 0 {
			continue
		}
		line := make([]byte, length-4)
		if _, err := io.ReadFull(session, line); err != nil {
			return err
		}
		if string(line) == "done\n" || bytes.Contains(line, []byte(" refs/heads/")) {
			return nil
		}
	}
}

func (h *hostileGit) overHTTPS(t *testing.T) (string, gitrepo.Auth) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if service := r.URL.Query().Get("service"); service != "" {
			w.Header().Set("Content-Type", "application/x-"+service+"-advertisement")
			_, _ = io.WriteString(w, pktLine("# service="+service+"\n")+"0000")
			_ = h.advertise(w)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		service := filepath.Base(r.URL.Path)
		w.Header().Set("Content-Type", "application/x-"+service+"-result")
		_ = h.answer(service, w)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/a/b", gitrepo.Auth{
		Token: "s3cret",
		CA:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}
}

// each runs a test against the server over https and over SSH.
func (h *hostileGit) each(t *testing.T, test func(t *testing.T, url string, auth gitrepo.Auth)) {
	t.Helper()
	for name, serve := range map[string]func(*testing.T) (string, gitrepo.Auth){"ssh": h.overSSH, "https": h.overHTTPS} {
		t.Run(name, func(t *testing.T) {
			url, auth := serve(t)
			h.sent.Store(0)
			test(t, url, auth)
		})
	}
}

// endless repeats a part until the client stops reading, or until it has sent more than any bound.
func endless(part []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		for sent := 0; sent < 200<<20; sent += len(part) {
			if _, err := w.Write(part); err != nil {
				return err
			}
		}
		return nil
	}
}

// A server never ends its list of references, over https and over SSH.
func TestReferencesWithoutEnd(t *testing.T) {
	gitrepo.SetBounds(t, gitrepo.Bounds{Refs: 1 << 20, Pack: 1 << 20})
	line := pktLine(strings.Repeat("a", 40) + " refs/heads/" + "bbbbbb" + "\n")
	h := &hostileGit{refs: endless(bytes.Repeat([]byte(line), 1<<14))}
	h.each(t, func(t *testing.T, url string, auth gitrepo.Auth) {
		for name, look := range map[string]func() error{
			"probe": func() error { _, err := gitrepo.Probe(t.Context(), url, auth, "main"); return err },
			"clone": func() error { _, err := gitrepo.Clone(t.Context(), url, auth, "main", t.TempDir()); return err },
			"push":  func() error { return gitrepo.CheckPush(t.Context(), url, auth, "main") },
		} {
			h.sent.Store(0)
			if err := look(); err == nil || !strings.Contains(err.Error(), "too large") || diag.Hint(err) == "" {
				t.Errorf("%s: %.300v", name, err)
			}
			if n := h.sent.Load(); n > 20<<20 {
				t.Errorf("%s: %d MiB were taken", name, n>>20)
			}
		}
	})
}

// A server never ends its report about a push.
func TestReportWithoutEnd(t *testing.T) {
	h := &hostileGit{report: func(w io.Writer) error {
		if _, err := io.WriteString(w, pktLine("unpack ok\n")); err != nil {
			return err
		}
		return endless(bytes.Repeat([]byte(pktLine("ok refs/heads/other\n")), 1<<14))(w)
	}}
	h.each(t, func(t *testing.T, url string, auth gitrepo.Auth) {
		if err := gitrepo.CheckPush(t.Context(), url, auth, "main"); err == nil {
			t.Error("it was taken")
		}
		if n := h.sent.Load(); n > 20<<20 {
			t.Errorf("%d MiB were taken", n>>20)
		}
	})
}

// Kinds of objects in a pack.
const (
	packBlob     = 3
	packRefDelta = 7
)

// packObject is an object in the form of a pack. size is the size that it states, which may be false.
func packObject(kind byte, size uint64, base, content []byte) []byte {
	first := kind<<4 | byte(size&0x0f)
	size >>= 4
	var out bytes.Buffer
	for size > 0 {
		out.WriteByte(first | 0x80)
		first = byte(size & 0x7f)
		size >>= 7
	}
	out.WriteByte(first)
	out.Write(base)
	deflated := zlib.NewWriter(&out)
	_, _ = deflated.Write(content)
	_ = deflated.Close()
	return out.Bytes()
}

func packHeader(objects uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte("PACK"), 2), objects)
}

// varint returns a number in the encoding of deltas.
func varint(n uint64) []byte { return binary.AppendUvarint(nil, n) }

// A pack has no end, or is small and unpacks to more than the memory holds. Nothing of it is kept, and the error says why.
func TestHostilePacks(t *testing.T) {
	gitrepo.SetBounds(t, gitrepo.Bounds{Refs: 1 << 20, Pack: 16 << 20})
	noise := make([]byte, 1<<20)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	// go-git reads each object of a pack whole: this one of 300 MiB, after some 300 KiB of them.
	large := append(packHeader(1), packObject(packBlob, 300<<20, nil, make([]byte, 300<<20))...)
	bomb := func(w io.Writer) error { _, err := w.Write(large); return err }
	// A delta says "all of the base again" as often as it likes, with four bytes each; it is the last thing of the pack, and read with its
	// end.
	const again = 300
	copies := append(varint(16<<20-1), varint(again*(16<<20-1))...)
	for range again {
		copies = append(copies, 0x80|0x10|0x20|0x40, 0xff, 0xff, 0xff)
	}
	base := make([]byte, 16<<20-1)
	repeated := append(packHeader(2), packObject(packBlob, uint64(len(base)), nil, base)...)
	repeated = append(repeated, packObject(packRefDelta, uint64(len(copies)), blobName(base), copies)...)
	sum := sha1.Sum(repeated)
	repeated = append(repeated, sum[:]...)
	delta := func(w io.Writer) error { _, err := w.Write(repeated); return err }
	// Each object is small, but there are many: deltas of a few bytes that unpack to large objects.
	many := func(w io.Writer) error {
		base := make([]byte, 1<<16)
		parts := append(packHeader(101), packObject(packBlob, 1<<16, nil, base)...)
		for range 100 {
			parts = append(parts, packObject(packRefDelta, 7, blobName(base), append(varint(1<<16), varint(200<<20)...))...)
		}
		_, err := w.Write(parts)
		return err
	}
	count := func(w io.Writer) error {
		_, _ = w.Write(packHeader(1 << 30))
		return endless(packObject(packBlob, 1<<20, nil, noise))(w)
	}
	for name, tc := range map[string]struct {
		pack func(io.Writer) error
		want string
	}{
		"many objects": {count, "1073741824 objects"},
		"without end": {func(w io.Writer) error {
			_, _ = w.Write(packHeader(1 << 20))
			return endless(packObject(packBlob, 1<<20, nil, noise))(w)
		}, "more than 16 MiB"},
		"a large object":  {bomb, "300 MiB"},
		"a large delta":   {delta, "MiB"},
		"much altogether": {many, "altogether"},
	} {
		t.Run(name, func(t *testing.T) {
			h := &hostileGit{pack: tc.pack}
			h.each(t, func(t *testing.T, url string, auth gitrepo.Auth) {
				dir := t.TempDir()
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				_, err := gitrepo.Clone(t.Context(), url, auth, "main", dir)
				runtime.ReadMemStats(&after)
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%.300v", err)
				}
				if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 1<<10 {
					t.Errorf("it took %d MiB", took)
				}
				if n := h.sent.Load(); n > 40<<20 {
					t.Errorf("%d MiB were taken", n>>20)
				}
				left, err := os.ReadDir(dir)
				if err != nil || len(left) > 0 {
					t.Errorf("left: %v, %v", left, err)
				}
			})
		})
	}
}

// A refused fetch leaves nothing in an existing repository, such as a part of a pack.
func TestRefusedPackLeavesNothing(t *testing.T) {
	good := gittest.NewSSH(t, gittest.Options{})
	good.Seed(t, "main", map[string]string{"a": "1"})
	dir := t.TempDir()
	auth := sshAuth(t, good, false)
	repo, err := gitrepo.Clone(t.Context(), good.URL, auth, "main", dir)
	if err != nil {
		t.Fatal(err)
	}
	gitrepo.SetBounds(t, gitrepo.Bounds{Refs: 1 << 20, Pack: 4 << 20})
	noise := make([]byte, 1<<20)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	h := &hostileGit{pack: func(w io.Writer) error {
		_, _ = w.Write(packHeader(1 << 20))
		return endless(packObject(packBlob, 1<<20, nil, noise))(w)
	}}
	good.Answer = func(service string, session io.ReadWriter) {
		if h.advertise(session) == nil && requested(session) == nil {
			_ = h.answer(service, session)
		}
	}
	if _, err := repo.Sync(t.Context(), auth, put(), "m", gitrepo.Author{}); err == nil ||
		!strings.Contains(err.Error(), "too large: more than 4 MiB") {
		t.Fatalf("%.300v", err)
	}
	packs, err := os.ReadDir(filepath.Join(dir, ".git", "objects", "pack"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, p := range packs {
		if strings.HasPrefix(p.Name(), "tmp_") {
			info, err := p.Info()
			t.Errorf("left: %s, %v, %v", p.Name(), info, err)
		}
	}
}

// bombed makes the branch main of a repository a commit with nested folders: there are deep levels, each folder has the folder of the next
// level wide times under different names, and each name has name letters.
func bombed(t *testing.T, repo *gittest.Repo, deep, wide, name int) {
	t.Helper()
	blob := strings.TrimSpace(gitInput(t, repo.Dir, "x", "hash-object", "-w", "--stdin"))
	tree := strings.TrimSpace(gitInput(t, repo.Dir, "100644 blob "+blob+"\tf\n", "mktree"))
	for range deep {
		var lines strings.Builder
		for i := range wide {
			fmt.Fprintf(&lines, "040000 tree %s\t%0*d\n", tree, name, i)
		}
		tree = strings.TrimSpace(gitInput(t, repo.Dir, lines.String(), "mktree"))
	}
	commit := strings.TrimSpace(gittest.Git(t, repo.Dir, "commit-tree", "-m", "bomb", tree))
	gittest.Git(t, repo.Dir, "update-ref", "refs/heads/main", commit)
}

// A dozen small trees can stand for a billion files, and nested trees for a path of any length. fleetctl writes neither to disk.
func TestTreesOfTrees(t *testing.T) {
	for name, tc := range map[string]struct{ deep, wide, name int }{"wide": {5, 100, 2}, "deep": {30, 1, 200}} {
		t.Run(name, func(t *testing.T) {
			gitrepo.SetBounds(t, gitrepo.Bounds{Refs: 1 << 20, Pack: 1 << 20, Places: 1 << 14})
			s := gittest.NewHTTPS(t, gittest.Options{})
			bombed(t, s.Repo, tc.deep, tc.wide, tc.name)
			dir := t.TempDir()
			_, err := gitrepo.Clone(t.Context(), s.URL, tokenAuth(s), "main", dir)
			if err == nil || !strings.Contains(err.Error(), "more than") {
				t.Errorf("%.300v", err)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

// blobName returns the object name of a blob in the binary form that a pack has.
func blobName(content []byte) []byte {
	hash := plumbing.ComputeHash(plumbing.BlobObject, content)
	return hash[:]
}

// gitInput is gittest.Git with standard input.
func gitInput(t *testing.T, dir, input string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), gittest.Require(t, "git", "git"), args...)
	cmd.Dir, cmd.Stdin, cmd.Env = dir, strings.NewReader(input), append(os.Environ(), gittest.Environment()...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

// fleetctl keeps a branch of snapshots in memory, so its bounds are lower than those of a clone on disk.
func TestHostilePackInMemory(t *testing.T) {
	blob := packObject(packBlob, 200<<20, nil, make([]byte, 200<<20))
	h := &hostileGit{pack: func(w io.Writer) error {
		_, err := w.Write(append(packHeader(30), bytes.Repeat(blob, 30)...))
		return err
	}}
	h.each(t, func(t *testing.T, url string, auth gitrepo.Auth) {
		shelf, err := gitrepo.NewShelf(url, "main", auth)
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = shelf.Names(t.Context())
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), "altogether") {
			t.Errorf("%.300v", err)
		}
		if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 3<<10 {
			t.Errorf("it took %d MiB", took)
		}
	})
}
