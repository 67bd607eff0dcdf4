// Records what Loki's own LogQL engine answers to the corpus beside it. Not part of any build. To record anew:
//
//	mkdir recorder && cp main.go recorder/ && cd recorder && go mod init recorder
//	go get github.com/grafana/loki/v3@v3.5.0 && go mod tidy && go build -o recorder .
//	python -m tests.logs.corpus | ./recorder | gzip -9 -n > tests/logs/golden/logql.jsonl.gz
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/go-kit/log"
	"github.com/grafana/dskit/user"
	"github.com/grafana/loki/v3/pkg/logproto"
	"github.com/grafana/loki/v3/pkg/logql"
	"github.com/grafana/loki/v3/pkg/logqlmodel"
	"github.com/grafana/loki/v3/pkg/util/validation"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"sort"
	"strconv"
)

type limits struct{}

func (limits) MaxQuerySeries(context.Context, string) int                        { return 500 }
func (limits) MaxQueryRange(context.Context, string) time.Duration               { return 0 }
func (limits) QueryTimeout(context.Context, string) time.Duration                { return time.Minute }
func (limits) BlockedQueries(context.Context, string) []*validation.BlockedQuery { return nil }
func (limits) EnableMultiVariantQueries(string) bool                             { return false }

type In struct {
	Streams []struct {
		Labels  string
		Entries [][2]any
	}
	Queries []struct {
		Query    string
		Start    int64
		End      int64
		Step     int64
		Backward bool
		Limit    uint32
	}
}

func value(f float64) string { return strconv.FormatFloat(f, 'g', 12, 64) }

func main() {
	var in In
	d := json.NewDecoder(os.Stdin)
	d.UseNumber()
	if err := d.Decode(&in); err != nil {
		panic(err)
	}
	var streams []logproto.Stream
	for _, s := range in.Streams {
		st := logproto.Stream{Labels: s.Labels}
		for _, e := range s.Entries {
			n, _ := e[0].(json.Number).Int64()
			st.Entries = append(st.Entries, logproto.Entry{Timestamp: time.Unix(0, n), Line: e[1].(string)})
		}
		streams = append(streams, st)
	}
	eng := logql.NewEngine(logql.EngineOpts{}, logql.NewMockQuerier(1, streams), limits{}, log.NewNopLogger())
	ctx := user.InjectOrgID(context.Background(), "fake")
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for _, q := range in.Queries {
		r := map[string]any{}
		dir := logproto.FORWARD
		if q.Backward {
			dir = logproto.BACKWARD
		}
		p, err := logql.NewLiteralParams(q.Query, time.Unix(0, q.Start), time.Unix(0, q.End), time.Duration(q.Step), 0, dir, q.Limit, nil, nil)
		if err != nil {
			r["error"] = err.Error()
			out.Encode(r)
			continue
		}
		func() {
			defer func() {
				if x := recover(); x != nil {
					r["panic"] = fmt.Sprint(x)
				}
			}()
			res, err := eng.Query(p).Exec(ctx)
			if err != nil {
				r["error"] = err.Error()
				return
			}
			switch v := res.Data.(type) {
			case logqlmodel.Streams:
				r["type"] = "streams"
				sort.Sort(v)
				var ss []any
				for _, s := range v {
					var es []any
					for _, e := range s.Entries {
						es = append(es, []any{strconv.FormatInt(e.Timestamp.UnixNano(), 10), e.Line})
					}
					ss = append(ss, map[string]any{"stream": s.Labels, "values": es})
				}
				r["result"] = ss
			case promql.Vector:
				r["type"] = "vector"
				var ss []any
				for _, s := range v {
					ss = append(ss, map[string]any{"metric": lbl(s.Metric), "value": value(s.F)})
				}
				r["result"] = ss
			case promql.Matrix:
				r["type"] = "matrix"
				var ss []any
				for _, s := range v {
					var es []any
					for _, e := range s.Floats {
						es = append(es, []any{e.T, value(e.F)})
					}
					ss = append(ss, map[string]any{"metric": lbl(s.Metric), "values": es})
				}
				r["result"] = ss
			case promql.Scalar:
				r["type"] = "scalar"
				r["result"] = value(v.V)
			default:
				r["type"] = fmt.Sprintf("%T", v)
			}
		}()
		out.Encode(r)
	}
}

func lbl(l labels.Labels) map[string]string { return l.Map() }
