// One program that is any part of a Kubernetes control plane or node, chosen by its first argument or by the name it
// is called by: linking once costs a fifth of linking each part.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	arguments := os.Args
	name := filepath.Base(arguments[0])
	if strings.HasPrefix(name, "kubernetes") && len(arguments) > 1 {
		arguments = arguments[1:]
		name = arguments[0]
	}
	os.Args = arguments
	var command *cobra.Command
	switch name {
	case "etcd":
		etcdmain.Main(arguments)
		return
	case "kube-apiserver":
		command = apiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		command = controllers.NewControllerManagerCommand()
	case "kube-scheduler":
		command = scheduler.NewSchedulerCommand()
	case "kubelet":
		command = kubelet.NewKubeletCommand(context.Background())
	case "kube-proxy":
		command = proxy.NewProxyCommand()
	default:
		fmt.Fprintf(os.Stderr, "kubernetes: no part is called %q\n", name)
		os.Exit(2)
	}
	os.Exit(cli.Run(command))
}
