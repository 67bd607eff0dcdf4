srearena.receive("scores/root_cause_proximity_no_fp_f1",[[1.0,1.0,0.5,1.0,1.0,1.0],[0.0,0.0,0.0,0.0,0.0,0.0]]);
