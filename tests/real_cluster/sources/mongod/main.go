// A server that speaks MongoDB's protocol: FerretDB with its SQLite handler, under mongod's name and options. It knows no
// users: --auth is accepted and has no effect.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/FerretDB/FerretDB/ferretdb"
)

func main() {
	port, directory := "27017", "/data/db"
	arguments := os.Args[1:]
	for index := 0; index < len(arguments); index++ {
		name, value, joined := strings.Cut(arguments[index], "=")
		if !joined && name != "--auth" && name != "--bind_ip_all" && index+1 < len(arguments) {
			index++
			value = arguments[index]
		}
		switch name {
		case "--auth", "--bind_ip_all", "--bind_ip":
		case "--port":
			port = value
		case "--dbpath":
			directory = value
		default:
			// As mongod reports it.
			fmt.Fprintf(os.Stderr, "Error parsing command line: unrecognised option '%s'\n", name)
			os.Exit(2)
		}
	}
	logger := slog.New(slog.NewJSONHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelWarn}))
	slog.SetDefault(logger)
	server, err := ferretdb.New(&ferretdb.Config{
		Listener:  ferretdb.ListenerConfig{TCP: "0.0.0.0:" + port},
		Logger:    logger,
		Handler:   "sqlite",
		SQLiteURL: "file:" + strings.TrimSuffix(directory, "/") + "/",
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("waiting for connections on port %s\n", port)
	running, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := server.Run(running); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
