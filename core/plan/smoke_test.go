package plan

import (
	"fmt"
	"testing"
)

func TestSmoke(t *testing.T) {
	for _, c := range []Input{
		{Machine: laptop(gib(8.3), gib(9.6)), Model: qwen.profile(t), Placement: projection("GPU0"), Params: request(t, "-c", "16384"), Policy: DefaultPolicy()},
		{Machine: desktop(gib(32), gib(12)), Model: qwen.profile(t), Params: request(t), Policy: DefaultPolicy()},
	} {
		p := Make(c)
		fmt.Println("=====", p.Regime, p.Outcome)
		for _, d := range p.Decisions {
			fmt.Printf("%s = %s [%s]\n     %s\n     > %s\n", d.Knob, d.Value, d.Source, d.Reason, d.Brief)
		}
		for _, r := range p.Ledger.Rows {
			fmt.Println(r)
		}
		for _, r := range p.Candidates {
			fmt.Printf("%+v\n", r)
		}
		fmt.Printf("%+v\n", p.Prediction)
	}
}
