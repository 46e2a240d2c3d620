package store

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// packSuffix is the end of the names of packs.
const packSuffix = ".pack"

// A pack has records, then a list with the key, the offset and the length of each record, and at the end the number of records and a digest
// of the list. A record begins with a digest of its key and its content.
const (
	listedSize = len(Key{}) + 8 + 8
	footSize   = 8 + sha256.Size
)

// pack is a file of the cache. A finished pack never changes.
type pack struct {
	file *os.File
	size int64
	list []byte
}

var errPack = errors.New("not a pack, or one that was cut")

// openPack opens a pack and reads its list. A faulty record is noticed when it is read.
func openPack(name string) (p *pack, err error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = file.Close() // it was only read
		}
	}()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	p = &pack{file: file, size: info.Size()}
	foot := make([]byte, footSize)
	if p.size < int64(footSize) {
		return nil, errPack
	}
	if _, err := file.ReadAt(foot, p.size-int64(footSize)); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	n := binary.LittleEndian.Uint64(foot)
	if n > uint64(p.size)/uint64(listedSize) {
		return nil, errPack
	}
	p.list = make([]byte, int(n)*listedSize) //nolint:gosec // the list is smaller than the file
	if _, err := file.ReadAt(p.list, p.size-int64(footSize)-int64(len(p.list))); err != nil {
		return nil, errPack
	}
	if sha256.Sum256(p.list) != [sha256.Size]byte(foot[8:]) {
		return nil, errPack
	}
	return p, nil
}

// each visits the entries.
func (p *pack) each(visit func(k Key, at entry)) {
	size := uint64(p.size) //nolint:gosec // of a file
	for list := p.list; len(list) > 0; list = list[listedSize:] {
		k, at, length := Key(list), binary.LittleEndian.Uint64(list[len(Key{}):]), binary.LittleEndian.Uint64(list[len(Key{})+8:])
		if length <= size && at <= size-length {
			visit(k, entry{p, int64(at), int(length)}) //nolint:gosec // neither is more than the size
		}
	}
}

// record returns the content of an entry, or nil if it was changed.
func (e entry) record(k Key) []byte {
	text := make([]byte, e.length)
	if _, err := e.pack.file.ReadAt(text, e.at); err != nil || len(text) < sha256.Size {
		return nil
	}
	body := text[sha256.Size:]
	if recordSum(k, body) != [sha256.Size]byte(text) {
		return nil
	}
	return body
}

func recordSum(k Key, body []byte) (sum [sha256.Size]byte) {
	h := sha256.New()
	h.Write(k[:])
	h.Write(body)
	h.Sum(sum[:0])
	return sum
}

// packWriter writes a pack. After an error it writes nothing more.
type packWriter struct {
	dir  string
	file *os.File
	to   *bufio.Writer
	at   int
	list []byte
	err  error
	// replaces are packs whose records are all in this pack or in other packs.
	replaces []*pack
}

// newPack begins a pack in a folder, which need not exist.
func newPack(dir string) *packWriter {
	w := &packWriter{dir: dir}
	if w.err = os.MkdirAll(dir, 0o700); w.err != nil {
		return w
	}
	if w.file, w.err = os.CreateTemp(dir, "new-*"); w.err == nil {
		w.to = bufio.NewWriterSize(w.file, 1<<18)
	}
	return w
}

// add writes a record. It returns false after an error.
func (w *packWriter) add(k Key, body []byte) bool {
	if w.err != nil {
		return false
	}
	sum := recordSum(k, body)
	_, err := w.to.Write(sum[:])
	_, err2 := w.to.Write(body)
	w.err = errors.Join(err, err2)
	w.list = append(w.list, k[:]...)
	w.list = binary.LittleEndian.AppendUint64(w.list, uint64(w.at)) //nolint:gosec // it counts up
	w.list = binary.LittleEndian.AppendUint64(w.list, uint64(len(sum)+len(body)))
	w.at += len(sum) + len(body)
	return w.err == nil
}

// finish moves the pack to its final name. It does not flush the file, because the digests reveal a pack that a crash truncated.
func (w *packWriter) finish() error {
	if w.file == nil {
		return w.err
	}
	sum := sha256.Sum256(w.list)
	if w.err == nil {
		_, err := w.to.Write(w.list)
		_, err2 := w.to.Write(append(binary.LittleEndian.AppendUint64(nil, uint64(len(w.list)/listedSize)), sum[:]...))
		w.err = errors.Join(err, err2, w.to.Flush())
	}
	w.err = errors.Join(w.err, w.file.Close())
	name := w.file.Name()
	if w.err == nil {
		w.err = os.Rename(name, filepath.Join(w.dir, strings.TrimPrefix(filepath.Base(name), "new-")+packSuffix))
	}
	if w.err != nil {
		_ = os.Remove(name)
		return w.err
	}
	for _, p := range w.replaces {
		_ = os.Remove(p.file.Name()) // on an error the old pack does no harm
	}
	return nil
}
