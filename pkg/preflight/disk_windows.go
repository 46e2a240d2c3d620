package preflight

import "golang.org/x/sys/windows"

// freeBytes is what this user may still write to the volume of the folder.
func freeBytes(folder string) (int64, error) {
	path, err := windows.UTF16PtrFromString(folder)
	if err != nil {
		return 0, err
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(path, &free, nil, nil); err != nil {
		return 0, err
	}
	return int64(free), nil //nolint:gosec // no volume is that big
}
