package main

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fleetctl/fleetctl/pkg/bundle/bundletest"
)

// hostile writes an archive that is not what it seems: hostile FILE traversal|absolute|symlink|hardlink|device|bomb
func hostile(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 2, "hostile FILE traversal|absolute|symlink|hardlink|device|bomb")
	blob := "blobs/sha256/" + strings.Repeat("a", 64)
	header, content := tar.Header{Typeflag: tar.TypeReg, Name: blob}, io.Reader(strings.NewReader("evil"))
	switch args[1] {
	case "traversal":
		header.Name = "../../../../../../../../" + strings.TrimPrefix(ts.MkAbs("evil"), "/")
	case "absolute":
		header.Name = ts.MkAbs("evil")
	case "symlink":
		header.Typeflag, header.Linkname, content = tar.TypeSymlink, ts.MkAbs("evil"), strings.NewReader("")
	case "hardlink":
		header.Typeflag, header.Linkname, content = tar.TypeLink, ts.MkAbs("evil"), strings.NewReader("")
	case "device":
		header.Typeflag, content = tar.TypeChar, strings.NewReader("")
	case "bomb":
		header.Size = 1 << 30 // zeros: some kilobytes when compressed
		content = io.LimitReader(zeros{}, header.Size)
	default:
		ts.Fatalf("unknown kind of archive %q", args[1])
	}
	if header.Typeflag == tar.TypeReg && header.Size == 0 {
		header.Size = int64(len("evil"))
	}
	var out bytes.Buffer
	z, err := zstd.NewWriter(&out, zstd.WithEncoderLevel(zstd.SpeedFastest))
	ts.Check(err)
	archive := tar.NewWriter(z)
	ts.Check(archive.WriteHeader(&header))
	_, err = io.Copy(archive, content)
	ts.Check(err)
	ts.Check(archive.Close())
	ts.Check(z.Close())
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), out.Bytes(), 0o600))
}

// zeros has no end.
type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// chart writes the archive of a small Helm chart: chart FILE NAME VERSION
func chart(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 3, "chart FILE NAME VERSION")
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), bundletest.Chart(tb(ts), args[1], args[2]), 0o600))
}
