package bundle

// Option changes how Open opens a .tar.zst.
type Option func(*options)

type options struct {
	cache  string
	limits Limits
}

// Limits bound the unpacked size of an archive.
type Limits struct {
	// Entries is the maximum number of files and folders.
	Entries int
	// Bytes is the maximum size of all content.
	Bytes int64
	// Ratio is the maximum ratio of the unpacked size to the archive's size. Layers are compressed already, so a real bundle grows only a
	// little.
	Ratio int64
}

// DefaultLimits returns limits that are enough for every usual bundle: 20,000 entries, 64 GiB, and a hundred times the archive's size.
func DefaultLimits() Limits { return Limits{Entries: 20_000, Bytes: 64 << 30, Ratio: 100} }

// WithCache keeps the unpacked archive in dir, under the archive's digest. The next Open of the same archive uses it.
func WithCache(dir string) Option { return func(o *options) { o.cache = dir } }

func newOptions(opts []Option) options {
	o := options{limits: DefaultLimits()}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// budget returns the maximum unpacked size, in bytes, of an archive of this size.
func (l Limits) budget(archive int64) int64 {
	const slack = 16 << 20 // small archives of text compress well
	if archive > l.Bytes/max(l.Ratio, 1) {
		return l.Bytes
	}
	return min(l.Bytes, archive*l.Ratio+slack)
}
