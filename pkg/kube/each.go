package kube

import (
	"errors"

	"golang.org/x/sync/errgroup"
)

// Each calls do for every item, at most limit of them at a time. It tries all items, even if some fail. The error joins their errors in
// the order of the items.
func Each[T any](limit int, items []T, do func(item T) error) error {
	errs := make([]error, len(items))
	var group errgroup.Group
	group.SetLimit(limit)
	for i, item := range items {
		group.Go(func() error {
			errs[i] = do(item)
			return nil
		})
	}
	_ = group.Wait() // the errors are in errs, so that all items are tried
	return errors.Join(errs...)
}
