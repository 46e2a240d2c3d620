package host

// Program is a program of the host itself, such as kube-apiserver, and not of a Deployment on the host.
type Program struct {
	// Name of the program's file, and the Version that the program has to report ("v1.36.3").
	Name, Version string
	// Image is the reference of the program's image, and Path the program's path in the image.
	Image, Path string
}
