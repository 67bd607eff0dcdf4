srearena.receive("scores/root_cause_reasoning_partial",[[0.0,1.0,0.5,0.5,0.0,1.0],[0.0,0.0,0.0,0.0,0.0,0.0]]);
