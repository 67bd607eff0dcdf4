srearena.receive("scores/root_cause_reasoning_partial",[[1.0,1.0,0.0,0.0,0.0,1.0]]);
