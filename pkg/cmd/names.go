package cmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
)

// namesInFlags are the flags that name objects of the fleet repo. Each function returns an error, with the nearest known name, for a name
// that the fleet repo lacks.
var namesInFlags = map[string]func(r *fleetrepo.Repo, name string) error{
	"environment": (*fleetrepo.Repo).CheckEnvironment,
	"flavour":     among("flavour", func(r *fleetrepo.Repo, _ []string) []string { return r.Flavours() }, ""),
	"feature":     among("feature", featureNames, "`fleetctl feature add` makes one"),
	"tenant":      among("tenant", tenantNames, "`fleetctl tenant add` makes one"),
	"cluster":     hasCluster,
}

func hasCluster(r *fleetrepo.Repo, name string) error {
	_, err := r.Cluster(name)
	return err
}

// among returns a check that a name is one of the choices in the fleet repo.
func among(what string, choices func(*fleetrepo.Repo, []string) []string, orElse string) func(*fleetrepo.Repo, string) error {
	return func(r *fleetrepo.Repo, name string) error {
		known := choices(r, nil)
		if slices.Contains(known, name) {
			return nil
		}
		return diag.Unknown(what, name, known, orElse)
	}
}

// checkNames returns an error for the first flag that names something that the fleet repo lacks, so that a mistyped name is reported
// before whatever else is missing. In a folder without a readable fleet repo it returns nil, because the command reports that itself, or
// makes the fleet repo. It also returns nil for a change of what the remote has, where others may have declared the name.
func (f *factory) checkNames(c *cobra.Command, args []string) (err error) {
	if changesRemote(c) {
		return nil
	}
	var repo *fleetrepo.Repo
	c.LocalNonPersistentFlags().VisitAll(func(flag *pflag.Flag) {
		check := namesInFlags[flag.Name]
		if check == nil || err != nil || !flag.Changed {
			return
		}
		if repo == nil {
			var unreadable error
			if repo, unreadable = f.fleetRepo(); unreadable != nil {
				repo = nil
				return
			}
		}
		for _, name := range given(flag) {
			if name != "" && err == nil {
				err = check(repo, name)
			}
		}
	})
	if err != nil {
		return err
	}
	return f.checkWorkload(c, args)
}

// changesRemote tells whether a command changes what the remote has, whatever the files here are.
func changesRemote(c *cobra.Command) bool {
	return slices.ContainsFunc([]string{"push", "pr"}, func(name string) bool {
		flag := c.Flags().Lookup(name)
		return flag != nil && flag.Value.String() == "true"
	})
}

// checkCluster returns an error for a workload cluster that the fleet repo does not declare, before a command misses a flag. Like
// checkNames, it leaves a change of what the remote has to the command.
func (f *factory) checkCluster(name string) error {
	if changesRemote(f.command) {
		return nil
	}
	repo, err := f.fleetRepo()
	if err != nil {
		return err
	}
	return hasCluster(repo, name)
}

// given returns the values that a flag was given.
func given(flag *pflag.Flag) []string {
	if several, ok := flag.Value.(pflag.SliceValue); ok {
		return several.GetSlice()
	}
	return []string{flag.Value.String()}
}

// checkWorkload returns an error for a workload cluster that the fleet repo does not declare, for commands that also work with other
// clusters, if nothing says which management cluster to ask. To ask for the management cluster of a mistyped name would mislead.
func (f *factory) checkWorkload(c *cobra.Command, args []string) error {
	name := ""
	switch strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ") {
	case "status", "why", "kubeconfig", "cluster drain", "cluster detach":
		if len(args) == 1 {
			name = args[0]
		}
	}
	return f.checkDeclared(name)
}

// checkDeclared is checkWorkload for one name; "" is none.
func (f *factory) checkDeclared(name string) error {
	if name == "" || f.flags.management != "" {
		return nil
	}
	repo, err := f.fleetRepo()
	if err != nil || slices.Contains(repo.Names(), name[strings.LastIndexByte(name, '/')+1:]) {
		return nil //nolint:nilerr // the command meets the same error
	}
	if _, err := f.declaredTarget(); diag.Code(err) != diag.ExitUsage {
		return nil
	}
	if w, err := f.findWorkload(name); err != nil || w.declared != nil {
		return err
	}
	hint := "name the management cluster of an undeclared cluster with --management: " + strings.Join(repo.ManagementClusterNames(), ", ")
	if known := diag.Among(name, repo.Names()); known != "" {
		hint = known + "; or " + hint
	}
	return &diag.Error{Err: fmt.Errorf("the fleet repo declares no cluster %q", name), Hint: hint, Code: diag.ExitUsage}
}
