package forge

import (
	"context"
	"net/http"
)

// Release is a release of a tag.
type Release struct {
	URL string `json:"url"`
	// Created means that the tag had no release before.
	Created bool `json:"created"`
}

// CheckRelease checks o without asking the forge. The error matches ErrUnknownForge, or says that the token is missing.
func CheckRelease(o Options) error {
	_, err := newClient(o, makeRelease)
	return err
}

// EnsureRelease makes a release of a tag that the forge has, with these notes in Markdown. A release that exists stays as it is. Errors
// name the forge and the reason of its refusal.
func EnsureRelease(ctx context.Context, o Options, tag, notes string) (*Release, error) {
	c, err := newClient(o, makeRelease)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, whole)
	defer cancel()
	there, err := c.released(ctx, tag)
	if err == nil && there == nil {
		if there, err = c.release(ctx, tag, notes); err == nil {
			there.Created = true
		}
	}
	if err != nil {
		return nil, explain("make a release of "+tag+" on "+o.Remote.Hostname(), err, o.Token, map[int]string{
			http.StatusUnauthorized: "the token needs the right to write releases of this repository",
			http.StatusForbidden:    "the token needs the right to write releases of this repository",
			http.StatusNotFound:     "check the URL, and that the token may write releases of this repository",
		})
	}
	there.URL = pageAt(o.Remote, there.URL)
	return there, nil
}

// absent turns the answer that there is no such release into nil.
func absent(status int, err error, there *Release) (*Release, error) {
	if status == http.StatusNotFound {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, withStatus(status, err)
	}
	return there, nil
}
