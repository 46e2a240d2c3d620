package bundle

// Option changes how Open opens a .tar.zst.
type Option func(*options)

type options struct {
	cache  string
	limits Limits
}

// Limits bound what an archive may unpack to.
type Limits struct {
	// Entries is the largest number of files and folders.
	Entries int
	// Bytes is the largest size of all content.
	Bytes int64
	// Ratio is how many times its own size an archive may unpack to. Layers are compressed already, so a real bundle
	// grows only a little.
	Ratio int64
}

// DefaultLimits are enough for every usual bundle: 20,000 entries, 64 GiB, a hundred times the archive's size.
func DefaultLimits() Limits { return Limits{Entries: 20_000, Bytes: 64 << 30, Ratio: 100} }

// WithCache keeps the unpacked archive in dir, under the archive's digest, for the next Open of the same archive.
func WithCache(dir string) Option { return func(o *options) { o.cache = dir } }

func newOptions(opts []Option) options {
	o := options{limits: DefaultLimits()}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// budget is how many bytes an archive of that size may unpack to.
func (l Limits) budget(archive int64) int64 {
	const slack = 16 << 20 // small archives of text compress well
	if archive > l.Bytes/max(l.Ratio, 1) {
		return l.Bytes
	}
	return min(l.Bytes, archive*l.Ratio+slack)
}
