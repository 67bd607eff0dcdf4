srearena.receive("scores/root_cause_reasoning",[[1.0,1.0,0.0,0.0,0.0,1.0]]);
