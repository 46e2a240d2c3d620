// Command kube-control-plane is what the embedded host runs of Kubernetes, kube-apiserver and kube-controller-manager, and kubectl to look
// at them: it acts as the program whose name it was started under, or, for callers that cannot choose a name, as the one its first argument
// names.
//
// A node's programs are another (../kubernetes), which has all of Kubernetes as it was released. This one shares its versions with the
// controllers instead, and so most of what is compiled: it takes half as long to build.
package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	_ "time/tzdata" // CronJobs name time zones, and the image has no zone files

	"github.com/spf13/cobra"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubectl's credential plugins
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client-go's metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // the version metric
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

// programs maps a program's name to its main. Each main exits by itself when it has a code to give.
var programs = map[string]func(){
	"kube-apiserver":          component(apiserver.NewAPIServerCommand),
	"kube-controller-manager": component(controllermanager.NewControllerManagerCommand),
	"kubectl":                 runKubectl,
}

func main() {
	run, err := choose()
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(2)
	}
	run()
}

// choose finds the program to be, and removes its name from the arguments when it came as one.
func choose() (func(), error) {
	if run, ok := programs[filepath.Base(os.Args[0])]; ok {
		return run, nil
	}
	if len(os.Args) > 1 {
		if run, ok := programs[os.Args[1]]; ok {
			os.Args = os.Args[1:]
			return run, nil
		}
	}
	names := slices.Sorted(maps.Keys(programs))
	return nil, errors.New("link this program to, or give as first argument, one of: " + strings.Join(names, ", "))
}

// component delays building the command: each one registers flags in process-wide sets, so only the chosen one may.
func component(command func() *cobra.Command) func() {
	return func() { os.Exit(cli.Run(command())) }
}

func runKubectl() {
	logs.GlogSetter(kubectl.GetLogVerbosity(os.Args)) //nolint:errcheck // as kubectl's own main: a bad -v fails later
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
	}
}
