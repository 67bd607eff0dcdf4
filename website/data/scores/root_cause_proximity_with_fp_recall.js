srearena.receive("scores/root_cause_proximity_with_fp_recall",[[1.0,1.0,0.8571,1.0,1.0,1.0],[0.0,0.0,0.0,0.0,0.0,0.0]]);
