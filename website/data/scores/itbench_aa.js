srearena.receive("scores/itbench_aa",[[1.0,1.0,0.0,1.0,1.0,1.0],[0.0,0.0,0.0,0.0,0.0,0.0]]);
