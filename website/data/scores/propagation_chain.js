srearena.receive("scores/propagation_chain",[[1.0,0.6207,0.5366,1.0,1.0,0.75],[0.0,0.0,0.0,0.0,0.0,0.0]]);
