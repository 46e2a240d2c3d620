package gitrepo

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/storage"

	"github.com/fleetctl/fleetctl/pkg/contact"
)

// Bounds on the unpacked objects of a pack. go-git reads every object whole into memory, and a pack of a megabyte can have an object of a
// gigabyte.
const (
	// maxUnfolded bounds the unpacked bytes of all objects of a pack together, and so the time for screening them.
	maxUnfolded = 8 << 30
	// maxObjects bounds the number of objects, because go-git allocates room for all of them before it reads the first one.
	maxObjects = 4 << 20
)

// These bounds are variables, so that tests can lower them.
var (
	// maxObject bounds the bytes of one object, usually a file of the fleet repo.
	maxObject uint64 = 256 << 20
	// maxInMemory bounds the bytes of all objects of a pack that is kept in memory.
	maxInMemory uint64 = 512 << 20
)

// packHeader is the length of the header of a pack: "PACK", a version and the number of objects.
const packHeader = 12

// receivePack writes the objects of a pack into store. If they exceed the bounds, the error matches contact.ErrTooLarge.
func receivePack(store storage.Storer, pack io.Reader) error {
	header := make([]byte, packHeader)
	if _, err := io.ReadFull(pack, header); err != nil {
		return fmt.Errorf("%w: %w", packfile.ErrMalformedPackFile, err)
	}
	if n := binary.BigEndian.Uint32(header[8:]); n > maxObjects {
		return fmt.Errorf("%w: %d objects, and at most %d are taken", contact.ErrTooLarge, n, maxObjects)
	}
	most := maxInMemory
	if _, ok := store.(diskStore); ok {
		most = maxUnfolded
	}
	pack = io.MultiReader(bytes.NewReader(header), pack)
	from, to := io.Pipe()
	screened := make(chan error, 1)
	go func() {
		behind := &lagging{to: to}
		err := screenPack(io.TeeReader(pack, behind), most)
		if err == nil {
			err = behind.flush()
		}
		screened <- err
		_ = to.CloseWithError(err) // nil is the end
	}()
	err := packfile.UpdateObjectStorage(store, from)
	_ = from.CloseWithError(io.ErrClosedPipe) // ends the screening too
	why := <-screened
	if err == nil {
		return nil
	}
	if errors.Is(why, contact.ErrTooLarge) {
		err = why // the cause, instead of an error about the incomplete pack
	}
	if disk := diskOf(store); disk != nil {
		err = errors.Join(err, disk.dropTemps())
	}
	return err
}

// lagging passes on everything that is written to it except the last bytes. Otherwise the reader of a pack could overtake the screening,
// and unpack an object that is not screened yet. lagging keeps back more than a Scanner reads ahead (a few KiB), so that every complete
// object that it has passed on is screened.
type lagging struct {
	to   io.Writer
	held []byte
}

const lag = 64 << 10

// Write implements io.Writer.
func (l *lagging) Write(p []byte) (int, error) {
	l.held = append(l.held, p...)
	if len(l.held) < 2*lag {
		return len(p), nil
	}
	over := len(l.held) - lag
	if _, err := l.to.Write(l.held[:over]); err != nil {
		return 0, err
	}
	l.held = append(l.held[:0], l.held[over:]...)
	return len(p), nil
}

func (l *lagging) flush() error {
	_, err := l.to.Write(l.held)
	return err
}

// screenPack reads a pack to its end, and returns an error if its objects have more than most bytes together when unpacked.
func screenPack(pack io.Reader, most uint64) error {
	scanner := packfile.NewScanner(pack)
	_, objects, err := scanner.Header()
	if err != nil {
		return err
	}
	unfolded := uint64(0)
	for range objects {
		header, err := scanner.NextObjectHeader()
		if err != nil {
			return err
		}
		size := uint64(header.Length) //nolint:gosec // the scanner refuses what is too long for an int64
		if err := tooLarge(size, unfolded, most); err != nil {
			return err
		}
		var begin prefix
		if _, _, err := scanner.NextObject(&begin); err != nil {
			return err
		}
		if header.Type == plumbing.OFSDeltaObject || header.Type == plumbing.REFDeltaObject {
			unfolded += size // go-git unpacks the delta itself too
			if size, err = begin.deltaSize(); err != nil {
				return err
			}
			if err := tooLarge(size, unfolded, most); err != nil {
				return err
			}
		}
		unfolded += size
	}
	_, err = io.Copy(io.Discard, pack) // the store checks the checksum
	return err
}

// objectLimit is maxObject in the type of a file's size.
func objectLimit() int64 { return int64(maxObject) } //nolint:gosec // it is far below the largest int64

func tooLarge(size, before, most uint64) error {
	switch {
	case size > maxObject:
		return fmt.Errorf("%w: an object of %d MiB, and at most %d are taken", contact.ErrTooLarge, size>>20, maxObject>>20)
	case before+size > most:
		return fmt.Errorf("%w: objects of more than %d MiB altogether", contact.ErrTooLarge, most>>20)
	}
	return nil
}

// prefix keeps the first bytes that are written to it. In a delta they hold two sizes.
type prefix struct{ bytes.Buffer }

// Write implements io.Writer.
func (p *prefix) Write(b []byte) (int, error) {
	if room := 2*binary.MaxVarintLen64 - p.Len(); room > 0 {
		p.Buffer.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}

// deltaSize returns the size of a delta's result, which is the second number of the delta, after the size of its base.
func (p *prefix) deltaSize() (uint64, error) {
	from := bufio.NewReader(&p.Buffer)
	if _, err := binary.ReadUvarint(from); err != nil {
		return 0, fmt.Errorf("%w: a delta without sizes", packfile.ErrMalformedPackFile)
	}
	size, err := binary.ReadUvarint(from)
	if err != nil {
		return 0, fmt.Errorf("%w: a delta without sizes", packfile.ErrMalformedPackFile)
	}
	return size, nil
}
