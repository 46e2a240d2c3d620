package repofiles

// SecretFiles lets tests with a real API server make what is encrypted alone, without the manifests that the other files need.
var SecretFiles = (*Content).secretFiles
