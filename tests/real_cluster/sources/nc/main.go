// Busybox's nc with -z, which Debian's build of busybox lacks: `nc -zv -w SECONDS HOST PORT` says whether a port is open.
// Everything else is left to Debian's.
package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	timeout := 10 * time.Second
	scan := false
	var rest []string
	arguments := os.Args[1:]
	for index := 0; index < len(arguments); index++ {
		word := arguments[index]
		scan = scan || strings.HasPrefix(word, "-") && strings.Contains(word, "z")
		switch {
		case strings.HasPrefix(word, "-") && strings.HasSuffix(word, "w") && index+1 < len(arguments):
			index++
			seconds, _ := strconv.Atoi(arguments[index])
			timeout = time.Duration(seconds) * time.Second
		case strings.HasPrefix(word, "-"):
		default:
			rest = append(rest, word)
		}
	}
	if !scan {
		if err := syscall.Exec("/bin/nc", os.Args, os.Environ()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if len(rest) != 2 {
		fmt.Fprintln(os.Stderr, "usage: nc -zv [-w SECONDS] HOST PORT")
		os.Exit(1)
	}
	host, port := rest[0], rest[1]
	connection, err := net.DialTimeout("tcp", net.JoinHostPort(host, port), timeout)
	if err != nil {
		fmt.Fprintf(os.Stderr, "nc: %s (%s:%s): %v\n", host, host, port, err)
		os.Exit(1)
	}
	fmt.Fprintf(os.Stderr, "%s (%s) open\n", host, connection.RemoteAddr())
	connection.Close()
}
