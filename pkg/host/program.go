package host

// Program is one that a host runs of its own, beside what is deployed on it.
type Program struct {
	// Name is that of its file, and Version what it has to say of itself ("v1.36.3").
	Name, Version string
	// Image is the reference of the image that it is taken from, Path where it lies in there.
	Image, Path string
}
